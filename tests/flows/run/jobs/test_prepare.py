"""What is made ready before anything is submitted."""

import os
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from evalcube.deploy import slurm
from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.run.jobs import prepare as module
from evalcube.flows.run.jobs.prepare import place_of, prepare, submit

ROOT = str(Path(__file__).parents[4])


def made_ready(settings):
    return prepare(settings, place_of(settings))


def sweep(folder, *models, **cluster):
    return from_mapping(
        {
            "cube": str(folder / "all.zarr"),
            "cache": str(folder / "cache"),
            "models": [{"name": name, "endpoint": "sim:"} for name in models or ("a",)],
            "tasks": {"boolean": {"params": {"length": 4}}},
            "cluster": {"slurm": {**cluster}},
        }
    )


@pytest.mark.cluster
def test_script__starts_our_code_whatever_lies_in_the_users_directory(tmp_path):
    (tmp_path / "flows").mkdir()
    for name in ("queue.py", "flows/__init__.py", "flows/__main__.py"):
        (tmp_path / name).write_text("raise SystemExit('the code of others ran')")
    [script] = made_ready(sweep(tmp_path)).scripts
    environment = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}

    done = subprocess.run(
        ["bash", "-c", script.splitlines()[-1]],
        cwd=tmp_path, env={**environment, "PYTHONPATH": ROOT}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "this is no job of Slurm" in done.stderr
    assert "the code of others ran" not in done.stderr


@pytest.fixture
def queued(tmp_path, monkeypatch):
    """Number -> script of each job that was submitted and goes on."""
    jobs = {}

    def accept(script):
        number = len(jobs) + 1
        jobs[number] = script
        return number

    def states(name):
        found = [number for number, script in jobs.items() if f"--job-name={name}\n" in script]
        return dict.fromkeys(found, "PENDING")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(slurm, "submit", accept)
    monkeypatch.setattr(slurm, "live_jobs", states)
    return jobs


def test_submit__refuses_a_cube_on_which_a_chain_works(tmp_path, queued):
    first = submit(made_ready(sweep(tmp_path, "a", "b")))

    with pytest.raises(SweepError) as found:
        submit(made_ready(sweep(tmp_path)))

    assert len(queued) == 2
    assert re.fullmatch(
        rf".*all.zarr: {first.name} works on it already \(jobs 1, 2\). Let it go on, or end it first: "
        rf"evalcube stop {first.name}",
        str(found.value),
    )
    queued.clear()
    assert submit(made_ready(sweep(tmp_path))).parts[0].job == 1


def test_submit__of_two_in_the_same_instant_one_is_refused_with_the_others_job(tmp_path, queued, monkeypatch):
    both, look = threading.Barrier(2), module._refuse_second

    def look_together(prepared):
        look(prepared)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)

    monkeypatch.setattr(module, "_refuse_second", look_together)
    prepared = [made_ready(sweep(tmp_path)) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(submit, one) for one in prepared]
        errors = [one.exception() for one in waiting]

    [refused] = [error for error in errors if error is not None]
    [first] = [one.result() for one in waiting if one.exception() is None]
    assert len(queued) == 1
    assert f"{first.name} works on it already (job 1)" in str(refused)


def test_submit__says_that_another_one_takes_too_long(tmp_path, queued, monkeypatch):
    monkeypatch.setattr("evalcube.flows.run.jobs.submissions._LOCK_SECONDS", 0.05)

    with module.alone(), pytest.raises(SweepError, match="another `evalcube submit` of yours is at work"):
        submit(made_ready(sweep(tmp_path)))

    assert queued == {}
