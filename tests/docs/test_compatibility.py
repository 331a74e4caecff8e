"""What users rely on grows and does not shrink; `docs/compatibility.md` promises it."""

from __future__ import annotations

import json

import pytest

from tests.cases import with_cases
from tests.docs.pages import ROOT
from tests.docs.surface import declared, printed

RELEASED = json.loads((ROOT / "tests" / "data" / "surface.json").read_text())
DECLARED = declared()


def gone(before, now):
    """What was there and is not any more: names of lists, keys and values of mappings."""
    if isinstance(before, dict):
        below = {key: gone(value, now[key]) if key in now else value for key, value in before.items()}
        return {key: lost for key, lost in below.items() if lost or key not in now}
    if isinstance(before, list):
        return [name for name in before if name not in now]
    return [] if before == now else before


@with_cases("part", sorted(DECLARED))
def test_declared__grows_and_does_not_shrink(part):
    assert not gone(RELEASED[part], DECLARED[part])


@pytest.fixture(scope="module")
def offered(tmp_path_factory):
    """What commands print now."""
    return printed(tmp_path_factory.mktemp("surface"))


def version(keys):
    """Of a document's schema; 0 without one."""
    return max((int(key.partition("=")[2]) for key in keys if key.startswith("schema_version=")), default=0)


@pytest.mark.cluster
def test_json__keeps_its_keys_or_has_a_new_schema_version(offered):
    kept = {
        name: keys
        for name, keys in RELEASED["json"].items()
        if version(keys) == version(offered["json"][name])
    }

    assert gone(kept, offered["json"]) == {}


@pytest.mark.cluster
def test_json__of_every_command_names_its_schema_and_version(offered):
    assert [name for name, keys in offered["json"].items() if "schema" not in keys or not version(keys)] == []


@pytest.mark.cluster
def test_cube__keeps_its_variables_dimensions_and_counters(offered):
    assert gone(RELEASED["cube"], offered["cube"]) == {}
    assert offered["counters"][: len(RELEASED["counters"])] == RELEASED["counters"]


def test_gone__sees_what_is_lost():
    assert gone({"a": ["x", "y"], "b": {"c": 1}, "d": []}, {"a": ["y", "z"], "b": {"c": 2}}) == {
        "a": ["x"],
        "b": {"c": 1},
        "d": [],
    }
    assert not gone({"a": ["x"], "b": 1}, {"b": 1, "a": ["y", "x"]})
