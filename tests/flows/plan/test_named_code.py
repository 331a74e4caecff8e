"""Nothing that only a cube names is imported: a grader runs if this user's own config names it."""

from __future__ import annotations

import json
import sys

import pytest

from evalcube.flows.config.raw_config import named_code
from evalcube.flows.errors import SweepError, TemplateError
from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.selection import Part
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.trials.read import trials
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import acting_config
from evalcube.flows.share.export import export
from evalcube.stages import named_code as registry
from evalcube.stages.generate import TaskError
from evalcube.stages.generate.dataset import matching
from tests.cases import with_cases
from tests.flows.support import reset, sweep_config

MODULE = "grader_of_a_cube"
NAME = f"{MODULE}:grade"


CODE = [{"role": "user", "content": "{% if true %}{{ prompt }}{% endif %}"}]


def forget(monkeypatch, state):
    """As another process would be, of a user whose record of runs is in a folder."""
    registry._NAMED.clear()
    matching.load_grader.cache_clear()
    sys.modules.pop(MODULE, None)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))


@pytest.fixture(scope="module")
def made(tmp_path_factory, _served):
    """A folder with a cube that was graded by a function of its user's, and one whose template has code."""
    reset(_served)
    folder = tmp_path_factory.mktemp("made")
    ran = folder / "ran"
    (folder / f"{MODULE}.py").write_text(
        f"open({str(ran)!r}, 'w').close()\ndef grade(reply, context): return True\n"
    )
    (folder / "q.jsonl").write_text('{"q": "1+1?", "a": "2"}\n')
    params = {"file": str(folder / "q.jsonl"), "prompt": "q", "answer": "a", "grader": NAME}
    graded = sweep_config(folder, _served.base_url, trials=1, cube="graded.zarr")
    graded["tasks"] = {"mine": {"task": "dataset", "params": params}}
    coded = sweep_config(folder, _served.base_url, trials=1, cube="coded.zarr", templates={"coded": CODE})
    coded["views"] = {"easy": {"where": {"tier": "easy"}}}
    with pytest.MonkeyPatch.context() as monkeypatch:
        forget(monkeypatch, folder / "own")
        monkeypatch.syspath_prepend(folder)
        for config in (graded, coded):
            run(config)
    assert ran.exists()
    return folder


@pytest.fixture
def graded(made, monkeypatch):
    """Address of the first cube, its cache, and the file that its grader's module makes when it is imported."""
    monkeypatch.syspath_prepend(made)
    (made / "ran").unlink(missing_ok=True)
    return str(made / "graded.zarr"), str(made / "cache"), made / "ran"


@pytest.fixture
def coded(made):
    """Address of the second cube, and its cache."""
    return str(made / "coded.zarr"), str(made / "cache")


def test_readers__run_the_grader_that_this_user_ran(made, graded, monkeypatch):
    cube, cache, ran = graded
    forget(monkeypatch, made / "own")

    view = Reader(cube, cache).view(0, 0, 0, 0)

    assert (view.parsed, ran.exists()) == ("right", True)


def test_readers__show_what_was_recorded_where_only_the_cube_names_a_grader(graded, monkeypatch, tmp_path):
    cube, cache, ran = graded
    forget(monkeypatch, tmp_path)

    reader = Reader(cube, cache)
    view = reader.view(0, 0, 0, 0)
    table = trials(cube, columns=["status", "answer"], cache=cache)
    rows = list(table.rows())
    exported = export(cube, output=tmp_path / "out", cache=cache)

    assert (view.status, view.parsed, view.response is None) == ("correct", None, False)
    assert rows == [{"status": "correct", "answer": None}]
    for said in (reader.plan.not_run, table.notes, exported.notes):
        assert sum("is not run: only the cube names it" in note for note in said) == 1
    assert not ran.exists()


def test_rescore__refuses_a_grader_that_only_the_cube_names(graded, monkeypatch, tmp_path):
    cube, cache, ran = graded
    forget(monkeypatch, tmp_path)

    with pytest.raises(TaskError, match="Run a sweep whose config names it"):
        rescore_cube(cube, cache=cache)

    assert not ran.exists()


def test_acting_config__does_not_run_what_only_the_notes_name(graded, monkeypatch, tmp_path):
    cube, cache, ran = graded
    forget(monkeypatch, tmp_path)

    with pytest.raises(SweepError, match=r"is not run.*config of yours"):
        acting_config(cube, cache=cache, endpoints="sim:")

    assert not ran.exists()


def test_acting_config__takes_no_cluster_and_no_command_from_notes(small_sweep, monkeypatch, tmp_path):
    from evalcube.flows.state.records import NOTES, read_notes
    from evalcube.storage.cube.cube import Cube

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    opened = Cube.open(small_sweep / "cube.zarr")
    notes = read_notes(opened.records)
    config = {
        **notes["config"],
        "cluster": {"kind": "scheduler", "address": "tcp://evil:1"},
    }
    opened.records.put(NOTES, json.dumps({**notes, "config": config}).encode())

    acting = acting_config(small_sweep / "cube.zarr", cache=tmp_path / "cache", endpoints="sim:")

    assert acting.cluster is None


def test_readers__render_the_template_that_this_user_ran(made, coded, monkeypatch):
    forget(monkeypatch, made / "own")

    view = Reader(*coded).view(0, 0, 0, 0)

    assert view.messages[0]["role"] == "user"
    assert view.response is not None


def test_readers__compile_no_template_with_code_that_only_the_cube_has(coded, monkeypatch, tmp_path):
    cube, cache = coded
    forget(monkeypatch, tmp_path)

    view = Reader(cube, cache).view(0, 0, 0, 0)
    table = trials(cube, columns=["status", "messages", "response"], cache=cache)
    rows = list(table.rows())

    assert (view.messages[0]["role"], view.response) == ("note", None)
    assert "template 'coded'" in view.messages[0]["content"]
    assert rows[0] == {"status": view.status, "messages": None, "response": None}
    assert sum("template 'coded' is not run" in note for note in table.notes) == 1
    with pytest.raises(TemplateError, match="template 'coded'"):
        rescore_cube(cube, cache=cache)
    with pytest.raises(SweepError, match="template 'coded'"):
        acting_config(cube, cache=cache, endpoints="sim:")


def test_views__of_a_cube_are_read_without_the_rest_of_its_config(coded, monkeypatch, tmp_path):
    forget(monkeypatch, tmp_path)

    board = leaderboard(coded[0], Part(view="easy"))

    assert len(board.rows) == 1
    assert set() == registry._NAMED


@with_cases(
    ("tasks", "found"),
    [
        ({"a": {"params": {"grader": "m:f"}}}, {"m:f"}),
        ({"a": {"manifold": [{"grid": {"grader": ["m:f", "n:g"]}}]}}, {"m:f", "n:g"}),
        ({"a": {"manifold": [{"grid": {"grader": {"values": ["m:f"]}}}]}}, {"m:f"}),
        ({"a": {"params": {"grader": "installed", "prompt": "m:f"}}}, set()),
        ({"a": {"manifold": [{"grid": {"include_path": ["/a", "/b"]}}]}}, {"folder: /a", "folder: /b"}),
        (None, set()),
        (7, set()),
    ],
)
def test_named_code__are_found_wherever_a_point_may_name_them(tasks, found):
    assert named_code({"tasks": tasks, "grader": "x:y"}) == found
