"""What this user ran is remembered outside of the cube, for this user, and found again where the cube has moved."""

import os
import stat

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.state.store import open_store
from evalcube.flows.state.trust import STATE_VARIABLE, remember_run, remembered_config
from evalcube.storage.cube.cube import Cube
from tests.flows.support import sweep_config

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv(STATE_VARIABLE, str(folder))
    return folder


def made(folder, **changes):
    """A cube where nothing has run."""
    config = sweep_config(folder, NOWHERE, trials=1, cells=1, **changes)
    return open_store(build_plan(from_mapping(config)), config["cube"]).cube


def records(state):
    return list(state.rglob("*.json"))


def test_remembered_config__of_a_cube_that_nobody_ran_is_none(tmp_path, state):
    assert remembered_config(made(tmp_path)) is None
    assert records(state) == []


def test_remember_run__the_last_run_counts_and_lies_outside_of_the_cube(tmp_path, state):
    cube = made(tmp_path)

    remember_run(cube, {"name": "first"})
    remember_run(cube, {"name": "second"})

    assert remembered_config(cube) == {"name": "second"}
    (record,) = records(state)
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700


def test_remembered_config__finds_a_cube_that_was_moved_by_what_it_measures(tmp_path, state):  # noqa: ARG001
    cube = made(tmp_path)
    remember_run(cube, {"name": "mine"})
    (tmp_path / "cube.zarr").rename(tmp_path / "moved.zarr")

    assert remembered_config(Cube.open(tmp_path / "moved.zarr")) == {"name": "mine"}


def test_remembered_config__of_the_same_place_comes_before_that_of_another(tmp_path, state):
    here, there = made(tmp_path), made(tmp_path, cube="other.zarr")
    remember_run(here, {"name": "here"})
    remember_run(there, {"name": "there"})
    for record in records(state):  # whichever is newer
        os.utime(record, (1, 1))

    assert remembered_config(here) == {"name": "here"}
    assert remembered_config(there) == {"name": "there"}


def test_remembered_config__of_a_moved_cube_is_of_the_last_run_whatever_clocks_say(tmp_path, state):
    for number, name in enumerate(("first", "second", "third")):
        remember_run(made(tmp_path, cube=f"{name}.zarr"), {"name": name})
        for record in records(state):
            os.utime(record, (1000 - number, 1000 - number))  # a clock that goes backwards
    newest = max(records(state), key=lambda record: "third" in record.read_text())
    os.utime(newest, (1, 1))
    (tmp_path / "first.zarr").rename(tmp_path / "moved.zarr")

    assert remembered_config(Cube.open(tmp_path / "moved.zarr")) == {"name": "third"}


def test_remembered_config__another_sweep_is_not_known(tmp_path, state):  # noqa: ARG001
    remember_run(made(tmp_path), {"name": "mine"})

    assert remembered_config(made(tmp_path, cube="other.zarr", seed=7)) is None


def test_remembered_config__a_record_of_another_user_does_not_count(tmp_path, state, monkeypatch):  # noqa: ARG001
    cube = made(tmp_path)
    remember_run(cube, {"name": "theirs"})
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    assert remembered_config(cube) is None


def test_remember_run__without_a_place_to_write_the_run_goes_on(tmp_path, state):
    state.write_text("no directory")
    cube = made(tmp_path)

    remember_run(cube, {"name": "mine"})

    assert remembered_config(cube) is None


@pytest.mark.parametrize("variable", ["relative/state", ""])
def test_remember_run__a_state_directory_that_is_no_absolute_path_is_the_home(
    tmp_path, monkeypatch, variable
):
    monkeypatch.setenv(STATE_VARIABLE, variable)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cube = made(tmp_path)

    remember_run(cube, {"name": "mine"})

    assert remembered_config(cube) == {"name": "mine"}
    assert records(tmp_path / "home" / ".local" / "state" / "evalcube" / "runs")
