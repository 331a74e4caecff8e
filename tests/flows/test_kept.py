"""Cubes and a cache that an earlier evalcube wrote are read, resumed without a request, graded again and merged.

``tests/data/kept.tar.xz`` was made by running its two configs once. It is never made anew because a test fails: what
users measured must stay theirs.
"""

import json
import tarfile

import pytest

from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.schema import SAID
from tests.docs.pages import ROOT
from tests.flows.support import evalcube

pytestmark = pytest.mark.cluster
FIRST = {"alpha · plain": (32, 32), "gamma · plain": (29, 32), "gamma · terse": (32, 32)}
SECOND = {"beta · plain": (31, 32), "gamma · plain": (29, 32), "gamma · terse": (32, 32)}


@pytest.fixture
def kept(tmp_path):
    with tarfile.open(ROOT / "tests" / "data" / "kept.tar.xz") as archive:
        archive.extraction_filter = getattr(
            tarfile, "data_filter", None
        )  # not in Python 3.11.2, which Debian has
        archive.extractall(tmp_path)  # noqa: S202 - our own file
    return tmp_path


def counted(cube, folder):
    """Right answers and trials of each evaluation, as the cube's counters have them."""
    code, output, errors = evalcube("table", cube, "--by", "model,template", "--json", cwd=folder)
    assert code == 0, errors
    rows = json.loads(output)["rows"]
    return {row["model"]: (row["counters"]["correct"], row["counters"]["trials"]) for row in rows}


def test_kept__runs_go_on_without_a_request_and_merge_by_identity(kept):
    for name in ("first", "second"):
        code, output, errors = evalcube("run", f"{name}.yaml", cwd=kept)
        assert code == 0, errors
        assert "0 requests sent" in output + errors
        for command in ("rescore", "cube verify"):
            code, output, errors = evalcube(*command.split(), f"{name}.zarr", cwd=kept)
            assert code == 0, output + errors
    before = counted("first.zarr", kept), counted("second.zarr", kept)
    code, output, errors = evalcube("merge", "both.zarr", "first.zarr", "second.zarr", cwd=kept)
    assert code == 0, errors

    assert counted("both.zarr", kept) == before[0] | before[1]
    assert before == (FIRST, SECOND)
    assert set(SAID) <= set(
        Cube.open(kept / "first.zarr").trial_arrays
    )  # what endpoints said, from old replies


def test_kept__more_trials_are_asked_and_old_replies_shown(kept):
    code, output, errors = evalcube(
        "upsample", "first.zarr", "--trials", "8", "--config", "first.yaml", cwd=kept
    )
    assert code == 0, errors
    code, output, errors = evalcube("trials", "first.zarr", "--limit", "200", "--json", cwd=kept)

    rows = json.loads(output)["rows"]
    assert len(rows) == 120
    assert all(row["response"] for row in rows)
