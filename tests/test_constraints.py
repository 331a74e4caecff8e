"""The pinned versions, and the workflows that install them."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from ruamel.yaml import YAML

from tests.docs.pages import ROOT, blocks
from tests.installed import run

LOCKED = pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("constraints.txt", "dev"),
        ("constraints-docs.txt", "docs"),
        *(("constraints-adapters.txt", extra) for extra in ("gym", "lm-eval")),
    ],
)


def pins(name):
    """Canonical name -> (version, number of hashes) of each line of a file of pinned versions."""
    text = (ROOT / name).read_text()
    found = {}
    for block in re.split(r"\n(?=[a-z0-9])", text):
        match = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", block)
        if match:
            found[canonicalize_name(match[1])] = (Version(match[2]), block.count("--hash=sha256:"))
    return found


@LOCKED
def test_constraints__pin_each_dependency_within_its_range(name, extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = [
        *(project["build-system"]["requires"] if extra == "dev" else ()),
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"][extra],
    ]
    pinned = pins(name)

    unmet = [
        line
        for line in lines
        for wanted in [Requirement(line)]
        if canonicalize_name(wanted.name) not in pinned
        or pinned[canonicalize_name(wanted.name)][0] not in wanted.specifier
    ]

    assert unmet == [], f"run `make lock` and commit {name}"


@LOCKED
def test_constraints__each_pin_has_a_hash(name, extra):  # noqa: ARG001 - shares the parameters of the test above
    bare = [package for package, (_, hashes) in pins(name).items() if hashes == 0]

    assert bare == []


@pytest.mark.parametrize("name", ["constraints-docs.txt", "constraints-adapters.txt"])
def test_constraints__of_other_extras_agree_with_those_of_dev(name):
    ours, others = pins("constraints.txt"), pins(name)

    assert {package: others[package][0] for package in ours.keys() & others.keys()} == {
        package: ours[package][0] for package in ours.keys() & others.keys()
    }


@pytest.mark.cluster
def test_install_page__its_lines_take_the_hashes_off_the_pins(tmp_path):
    (text,) = (
        block.text for block in blocks(ROOT / "docs" / "install.md") if "constraints.txt > " in block.text
    )
    shutil.copy(ROOT / "constraints.txt", tmp_path)
    line, _ = text.splitlines()

    run("bash", "-c", line, cwd=tmp_path)

    # Nothing is asked for from an index: pip takes the pins for any wheel without a hash.
    wheel = tmp_path / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: some\nVersion: 1\n")
        archive.writestr("some-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--no-index",
        "--ignore-installed",
        "--no-deps",
    )
    assert "Would install some-1" in run(*pip, "-c", "pins.txt", wheel, cwd=tmp_path)
    pinned = {
        Requirement(line).name
        for line in (tmp_path / "pins.txt").read_text().splitlines()
        if re.match(r"\w", line)
    }
    assert set(map(canonicalize_name, pinned)) == pins("constraints.txt").keys()


# Workflows


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").iterdir()), ids=lambda path: path.stem
)
def test_workflows__call_what_is_there(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflow = YAML(typ="safe", pure=True).load(path.read_text())

    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]

    commands = "\n".join(step["run"] for step in steps if "run" in step)
    assert {"name", "on", "permissions"} <= workflow.keys()
    assert all(("run" in step) != ("uses" in step) for step in steps)
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= targets
    assert all((ROOT / script).is_file() for script in re.findall(r"[.]ci/\w+", commands))
    assert re.search(r"\bmake |[.]ci/", commands)
