"""A cube with the task of a package that is not installed: all is read but what only the package's code makes."""

from __future__ import annotations

import json
import pathlib
import shutil
from importlib.metadata import EntryPoint

import numpy as np
import pytest
import zarr

from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.report import report
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.trials.flips import flips
from evalcube.flows.read.trials.forms import csv_lines
from evalcube.flows.read.trials.read import trials
from evalcube.flows.run.sweep import run
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.flows.state.records import NOTES, read_notes
from evalcube.flows.state.store import cube_plan, sweep_cube
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.generate import TaskError, plugins
from evalcube.stages.generate.tasks.arithmetic import Arithmetic
from evalcube.storage.cube.cube import Cube
from tests.flows.support import change_attributes, evalcube, reset, sweep_config

REMEDY = "It is of package sum-games 1.2: pip install sum-games==1.2"


class Sums(Arithmetic):
    name = "sums"


def installed(monkeypatch, *points):
    found = tuple(EntryPoint(name, value, plugins.GROUP) for name, value in points)
    monkeypatch.setattr("evalcube.stages.generate.installed_plugins", lambda: found)


@pytest.fixture(scope="module")
def made(tmp_path_factory, _served):
    """Address of a cube with a bundled task and one of a package that is gone."""
    folder = tmp_path_factory.mktemp("absent")
    reset(_served)
    with pytest.MonkeyPatch.context() as monkeypatch:
        installed(monkeypatch, ("sums", f"{__name__}:Sums"))
        config = sweep_config(folder, _served.base_url, cells=1)
        config["tasks"]["sums"] = {"params": {"length": 3}}
        run(config)
    opened = Cube.open(config["cube"])
    noted = {**read_notes(opened.records), "packages": {"sums": "sum-games 1.2"}}
    opened.records.put(NOTES, json.dumps(noted).encode())
    return config["cube"]


@pytest.fixture
def cube(made, monkeypatch):
    """The same, which tests read, while no package is installed."""
    installed(monkeypatch)
    return made


def test_readers__what_a_stranger_calls_params_and_facets_does_nothing(cube, tmp_path):
    """Nobody checks the params of a task that is not installed, and labels are arrays of their own."""
    cube = str(shutil.copytree(cube, tmp_path / "cube.zarr"))
    change_attributes(
        pathlib.Path(cube), lambda spec: spec["tasks"][2]["points"][0]["params"].update({"=\x1b[2J": 1})
    )
    opened = zarr.open_group(cube, mode="r+")
    for name in ("facets", "params_json"):
        opened[name][...] = np.full(opened[name].shape, "[" * 100_000, dtype=np.dtypes.StringDType())

    table = trials(cube, columns=["param_=\x1b[2J", "difficulty"], where=["task=sums"], limit=1)

    assert list(csv_lines(table)) == ["param_=\\x1b[2J,difficulty", "1,"]
    assert "\x1b" not in str(table)
    assert leaderboard(cube).rows[0].facets == {}
    assert flips([cube, cube]).varying["sums"] == set()


def plan_of(address):
    opened = Cube.open(address)
    return cube_plan(opened, read_notes(opened.records))


def test_cube_plan__names_the_package_of_an_absent_task(cube):
    plan = plan_of(cube)

    assert plan.task_names == ("arithmetic", "boolean", "sums")
    assert [reason.partition(". ")[2] for reason in plan.absent] == [REMEDY]


def test_show__names_the_package_in_the_place_of_the_reply(cube, tmp_path):
    code, output, _ = evalcube("show", cube, "--task", "sums", cwd=tmp_path)

    shown = " ".join(output.replace("│", " ").split())
    assert (code, "does not hold" in shown) == (0, False)
    assert REMEDY in shown.partition("(the reply is not looked up: ")[2]


def test_cube_plan__shows_no_package_that_is_no_name(cube):
    opened = Cube.open(cube)
    for package in ("x; rm -rf ~", "a b c", "-r evil.txt 1", ""):
        plan = cube_plan(opened, {**read_notes(opened.records), "packages": {"sums": package}})

        assert plan.absent[0].endswith("group evalcube.tasks"), package


def test_cube_plan__a_broken_plugin_is_absent_too(cube, monkeypatch):
    installed(monkeypatch, ("sums", "no_such_module_here:Sums"))

    (reason,) = plan_of(cube).absent

    assert "loaded (ModuleNotFoundError" in reason


def test_all_that_needs_no_code__works_without_the_package(cube, tmp_path):
    copy, merged = (str(tmp_path / name) for name in ("copy.zarr", "merged.zarr"))

    publish_cube(cube, str(tmp_path / "published"))
    pull_cube(str(tmp_path / "published"), copy)
    merge_cubes(merged, [cube, copy])
    page = report(cube, tmp_path / "report.html")

    for address in (cube, copy, merged):
        assert not verify_cube(address).damages
        for name in ("difficulty", "in_tier"):
            assert Cube.open(address).read_label(name).tolist() == Cube.open(cube).read_label(name).tolist()
    assert REMEDY in plan_of(copy).absent[0]
    assert "sums" in page.read_text()
    assert leaderboard([cube, copy]) is not None


def test_trials__tell_of_an_absent_task_what_was_recorded(cube):
    table = trials(cube, where=["task=sums"], columns=["task", "status", "prompt", "answer"])

    rows = list(table.rows())

    assert len(rows) == 8
    assert {row["prompt"] for row in rows} == {row["answer"] for row in rows} == {None}
    assert {row["status"] for row in rows} <= {"correct", "incorrect"}
    assert any(REMEDY in note for note in table.notes)
    others = trials(cube, where=["task=boolean"], columns=["prompt"])
    assert all(row["prompt"] for row in others.rows())
    assert not any(REMEDY in note for note in others.notes)


def test_view__has_the_reason_in_the_place_of_the_question(cube):
    view = Reader(cube).view(0, 2, 0, 0)

    assert REMEDY in view.messages[0]["content"]
    assert view.status in ("correct", "incorrect")


def test_rescore__needs_the_package_and_says_so(cube):
    with pytest.raises(TaskError, match="install sum-games"):
        rescore_cube(cube)


def test_sweep_cube__of_an_absent_task_is_not_written_by_another_sweep(cube, tmp_path, simulator):
    from evalcube.flows.config.load import as_config
    from evalcube.flows.plan.build import build_plan
    from evalcube.flows.state.store import OtherSweepError

    config = as_config(sweep_config(tmp_path, simulator.base_url, cells=1))

    with pytest.raises(OtherSweepError, match="sum-games"):
        sweep_cube(build_plan(config), cube)
