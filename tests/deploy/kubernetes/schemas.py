"""Strict schemas of what Dask's operator and Kubernetes itself accept, from the packages that have them."""

import importlib.util
import json
import runpy
from functools import cache
from pathlib import Path

import jsonschema
import yaml

CORE = "v1.33.0-local-strict"
_CORE_KINDS = {"ConfigMap": "io.k8s.api.core.v1.ConfigMap", "Job": "io.k8s.api.batch.v1.Job"}


def _folder(package):
    return Path(importlib.util.find_spec(package).origin).parent


@cache
def _core():
    path = _folder("kubernetes_validate") / "kubernetes-json-schema" / CORE / "_definitions.json"
    return json.loads(path.read_text().replace("#/$defs/", "#/definitions/"))["$defs"]


@cache
def _resources():
    return _folder("dask_kubernetes") / "operator" / "customresources"


def _resolved(value):
    """A schema whose references to other files lead to definitions."""
    if isinstance(value, list):
        return [_resolved(item) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref", "")
    name = reference.rsplit("/", 1)[-1]
    if reference.startswith("python://k8s_crd_resolver"):
        short = name.replace("io.k8s.api", "")
        return {"$ref": "#/definitions/" + next(key for key in _core() if key == name or key.endswith(short))}
    if reference.startswith("python://dask_kubernetes"):
        return {"$ref": f"#/definitions/{name}"}
    return {key: _resolved(item) for key, item in value.items()}


@cache
def _schema(kind):
    if kind in _CORE_KINDS:
        return {"$ref": f"#/definitions/{_CORE_KINDS[kind]}", "definitions": _core()}
    crd = yaml.safe_load((_resources() / f"{kind.lower()}.yaml").read_text())
    templates = yaml.safe_load((_resources() / "templates.yaml").read_text())["definitions"]
    (version,) = crd["spec"]["versions"]
    return {
        **_resolved(version["schema"]["openAPIV3Schema"]),
        "definitions": {**_core(), **_resolved(templates)},
    }


def problems(document):
    """What is wrong with a resource, each as its path and what the schema says."""
    found = jsonschema.Draft7Validator(_schema(document["kind"])).iter_errors(document)
    return [("/".join(map(str, error.path)), error.message[:200]) for error in found]


def constants():
    """The operator's own constants, such as the names that it takes."""
    return runpy.run_path(str(_folder("dask_kubernetes") / "constants.py"))
