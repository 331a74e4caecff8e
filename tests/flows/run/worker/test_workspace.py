"""Tasks that the scheduler takes back, or whose run ends, while they wait: none of them stays."""

import threading
from types import SimpleNamespace

import pytest
from distributed import Reschedule

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.servers import serve_models
from evalcube.flows.run.worker.context import RunContext
from evalcube.flows.run.worker.plugin import SweepPlugin, plugin_name
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Job
from tests.waiting import PATIENCE, wait_until

JOBS = [Job(f"{number:064x}", b"{}") for number in range(3)]


@pytest.fixture
def work(tmp_path):
    """A workspace that has no share of its endpoint yet, so that it sends nothing."""
    config = from_mapping(
        {
            "name": "late",
            "trials": 1,
            "cube": str(tmp_path / "cube.zarr"),
            "cache": str(tmp_path / "cache"),
            "models": [{"name": "m", "endpoint": "http://127.0.0.1:9/v1", "model": "m"}],
            "tasks": {"boolean": {"manifold": [{"points": [{"length": 4}]}]}},
        }
    )
    plan = build_plan(config)
    with serve_models(config.models) as served:
        parts = (plan.spec(), plan.trials, plan.repeats, plan.prices, config.cube, config.cache)
        work = Workspace(RunContext("run", *parts, served.routes, ""))
    yield work
    work.close()


def test_ask__ends_when_the_run_does(work):
    thread = threading.Thread(target=work.ask, args=("m", JOBS, "task"), daemon=True)
    thread.start()
    wait_until(lambda: work.traffic("worker") is not None)

    work.close()

    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_ask__of_a_task_that_comes_when_the_run_is_over_makes_no_engine(work):
    work.close()

    with pytest.raises(Reschedule):
        work.ask("m", JOBS, "task")


def test_ask__of_a_task_that_was_taken_back_just_before_sends_nothing(work):
    work.engine()
    work.abandon("task")

    with pytest.raises(Reschedule):
        work.ask("m", JOBS, "task")


def test_transition__a_task_that_begins_anew_is_wanted_again_and_one_that_is_taken_back_stays_so(work):
    context = SimpleNamespace(run="run")
    plugin = SweepPlugin(context)
    plugin.workspace = work

    plugin.transition("task", "ready", "executing")
    plugin.transition("task", "executing", "released")
    assert work.is_abandoned("task")
    plugin.transition("task", "ready", "executing")
    assert not work.is_abandoned("task")
    assert plugin.name == plugin_name("run")
