"""The manifest that the page on clusters shows, by the schemas of Dask's operator and of Kubernetes."""

from pathlib import Path

import yaml

from evalcube.flows.config.load import parse_config
from tests.cases import with_cases
from tests.deploy.kubernetes.restricted import containers_of, violations
from tests.deploy.kubernetes.schemas import problems

DOCUMENTS = list(yaml.safe_load_all(Path("deploy/kubernetes/daskjob.yaml").read_text("utf-8")))

CLUSTER = DOCUMENTS[1]["spec"]["cluster"]["spec"]
PODS = [DOCUMENTS[1]["spec"]["job"]["spec"], CLUSTER["worker"]["spec"], CLUSTER["scheduler"]["spec"]]


def test_daskjob__is_what_the_operator_accepts():
    assert [problems(document) for document in DOCUMENTS] == [[], []]


def test_daskjob__leads_the_service_to_its_own_scheduler():
    config, job = DOCUMENTS
    cluster = job["spec"]["cluster"]["spec"]

    name = job["metadata"]["name"]
    assert cluster["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == name
    assert f"tcp://{name}-scheduler:8786" in config["data"]["cluster.yaml"]
    sweep = parse_config(config["data"]["sweep.yaml"])
    assert sweep.cube.startswith("/results/")


def test_daskjob__is_admitted_by_the_restricted_profile():
    assert [violations(pod) for pod in PODS] == [[], [], []]


def test_daskjob__bounds_every_container():
    limits = [container["resources"]["limits"].keys() for pod in PODS for container in containers_of(pod)]

    assert limits == [{"cpu", "memory"}] * 4


SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@with_cases(
    ("pod", "container", "field"),
    [
        ({"hostNetwork": True}, {}, "hostNetwork"),
        ({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}, {}, "volumes"),
        ({"securityContext": {"runAsNonRoot": True}}, {}, "seccompProfile"),
        ({}, {"ports": [{"hostPort": 80}]}, "hostPort"),
        ({}, {"securityContext": {**SAFE, "runAsUser": 0}}, "runAsUser"),
        ({}, {"securityContext": {**SAFE, "runAsNonRoot": False}}, "runAsNonRoot"),
        ({}, {"securityContext": {**SAFE, "privileged": True}}, "privileged"),
        ({}, {"securityContext": {**SAFE, "capabilities": {"drop": ["NET_RAW"]}}}, "capabilities"),
        ({}, {"securityContext": {"capabilities": {"drop": ["ALL"]}}}, "allowPrivilegeEscalation"),
    ],
)
def test_violations__name_the_field_that_the_profile_forbids(pod, container, field):
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    safe = {"name": "main", "securityContext": SAFE}

    assert violations({"securityContext": context, "containers": [safe]}) == []
    found = violations({"securityContext": context, "containers": [{**safe, **container}], **pod})
    assert [name for name in found if field in name] == found != []
