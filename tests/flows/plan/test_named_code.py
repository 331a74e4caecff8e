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
from tests.flows.support import sweep_config

MODULE = "grader_of_a_cube"
NAME = f"{MODULE}:grade"


def forget(monkeypatch, tmp_path, state):
    """As another process would be, of a user with another record of runs."""
    registry._NAMED.clear()
    matching.load_grader.cache_clear()
    sys.modules.pop(MODULE, None)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state))
    (tmp_path / "ran").unlink(missing_ok=True)


@pytest.fixture
def graded(tmp_path, simulator, monkeypatch):
    """Address of a cube whose replies were graded by a function of its user's; the module says when it is imported."""
    forget(monkeypatch, tmp_path, "own")
    ran = tmp_path / "ran"
    (tmp_path / f"{MODULE}.py").write_text(
        f"open({str(ran)!r}, 'w').close()\ndef grade(reply, context): return True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "q.jsonl").write_text('{"q": "1+1?", "a": "2"}\n')
    config = sweep_config(tmp_path, simulator.base_url)
    params = {"file": str(tmp_path / "q.jsonl"), "prompt": "q", "answer": "a", "grader": NAME}
    config["tasks"] = {"mine": {"task": "dataset", "params": params}}
    config["trials"] = 1
    run(config)
    assert ran.exists()
    return config["cube"], str(tmp_path / "cache"), ran


def test_readers__run_the_grader_that_this_user_ran(graded, monkeypatch, tmp_path):
    cube, cache, ran = graded
    forget(monkeypatch, tmp_path, "own")

    view = Reader(cube, cache).view(0, 0, 0, 0)

    assert (view.parsed, ran.exists()) == ("right", True)


def test_readers__show_what_was_recorded_where_only_the_cube_names_a_grader(graded, monkeypatch, tmp_path):
    cube, cache, ran = graded
    forget(monkeypatch, tmp_path, "others")

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
    forget(monkeypatch, tmp_path, "others")

    with pytest.raises(TaskError, match="Run a sweep whose config names it"):
        rescore_cube(cube, cache=cache)

    assert not ran.exists()


def test_acting_config__does_not_run_what_only_the_notes_name(graded, monkeypatch, tmp_path):
    cube, cache, ran = graded
    forget(monkeypatch, tmp_path, "others")

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


CODE = [{"role": "user", "content": "{% if true %}{{ prompt }}{% endif %}"}]


@pytest.fixture
def coded(tmp_path, simulator, monkeypatch):
    """Address of a cube that was asked with a template that has code, and its cache."""
    forget(monkeypatch, tmp_path, "own")
    config = sweep_config(tmp_path, simulator.base_url)
    config |= {"templates": {"coded": CODE}, "trials": 1, "views": {"easy": {"where": {"tier": "easy"}}}}
    run(config)
    return config["cube"], str(tmp_path / "cache")


def test_readers__render_the_template_that_this_user_ran(coded, monkeypatch, tmp_path):
    forget(monkeypatch, tmp_path, "own")

    view = Reader(*coded).view(0, 0, 0, 0)

    assert view.messages[0]["role"] == "user"
    assert view.response is not None


def test_readers__compile_no_template_with_code_that_only_the_cube_has(coded, monkeypatch, tmp_path):
    cube, cache = coded
    forget(monkeypatch, tmp_path, "others")

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
    forget(monkeypatch, tmp_path, "others")

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
