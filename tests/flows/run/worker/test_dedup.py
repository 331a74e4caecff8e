"""Tasks that the scheduler takes back, or whose run ends, while they wait: none of them stays, or keeps its claims."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed import Reschedule

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.servers import serve_models
from evalcube.flows.run.worker.context import RunContext
from evalcube.flows.run.worker.dedup import ask
from evalcube.flows.run.worker.plugin import SweepPlugin, plugin_name
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Job
from evalcube.storage.cache.cache import open_claims
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


class Asking:
    """A task in a thread of its own, as Dask has it."""

    def __init__(self, work, jobs=JOBS):
        self.error = None
        self._thread = threading.Thread(target=self._ask, args=(work, jobs), daemon=True)
        self._thread.start()

    def _ask(self, work, jobs):
        try:
            ask(work, "m", jobs, "task")
        except Reschedule as error:
            self.error = error

    def ended(self):
        self._thread.join(PATIENCE)
        return not self._thread.is_alive() and isinstance(self.error, Reschedule)


def of_another_run(work):
    """Claims of another run, which are older than those that come."""
    return open_claims(work.context.cache, "other").make([job.digest for job in JOBS])


def own_claims(work):
    return list(Path(work.context.cache).rglob("*-run.claim"))


def test_ask__of_a_task_that_is_taken_back_before_anything_was_sent_waits_for_no_other_run(work):
    theirs = of_another_run(work)
    asking = Asking(work)
    wait_until(lambda: own_claims(work))

    work.abandon("task")

    assert asking.ended()
    assert own_claims(work) == []
    theirs.release()


@pytest.mark.parametrize("elsewhere", [True, False], ids=["another run asks", "no share"])
def test_ask__ends_when_the_run_does(work, elsewhere):
    theirs = of_another_run(work) if elsewhere else None
    asking = Asking(work)
    wait_until(lambda: own_claims(work))

    work.close()

    if elsewhere:
        assert asking.ended()
        theirs.release()
    wait_until(lambda: own_claims(work) == [])


def test_ask__of_a_task_that_comes_when_the_run_is_over_makes_no_engine(work):
    work.close()

    with pytest.raises(Reschedule):
        ask(work, "m", JOBS, "task")

    assert own_claims(work) == []


def test_ask__of_a_task_that_was_taken_back_just_before_sends_nothing(work):
    work.engine()
    work.abandon("task")

    with pytest.raises(Reschedule):
        ask(work, "m", JOBS, "task")


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
