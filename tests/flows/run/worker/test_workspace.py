"""Tasks that the scheduler takes back, or whose run ends, while they wait: none of them stays."""

import threading
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from distributed import Reschedule

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.servers import serve_models
from evalcube.flows.run.worker import workspace
from evalcube.flows.run.worker.context import RunContext
from evalcube.flows.run.worker.plugin import SweepPlugin, plugin_name
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Job, Slowdown
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


@dataclass
class Limits:
    requests: float
    window: float


class Engine:
    """An engine that has asked model m from 3 s to 5 s after the run's clock began at 10, and notes what it is told."""

    def __init__(self):
        self.told = []
        self.stats = SimpleNamespace(asked={"m": (13.0, 15.0)}, snapshot=lambda: {"sent": 4, "replies": 3})

    def __getattr__(self, name):
        answers = {
            "starved_models": ["m"],
            "waiting": {"m": {"seconds": 2.0}},
            "found_limits": {"m": Limits(5.0, 7.0)},
            "engines": {"m": [("a", "b")]},
            "given_up": True,
            "slowdowns": [Slowdown("m")],
        }

        def call(*arguments):
            self.told.append((name, *arguments))
            return answers.get(name)

        return call


def test_traffic__is_what_the_engine_and_the_meter_counted(work, monkeypatch):
    assert work.traffic("w") is None
    work.meter.add("m", requests=2, seconds=0.5)
    work.meter.add("m", requests=1, answers=1)
    bare = work.traffic("w")
    assert (bare.models, bare.worker, bare.sent) == (
        {"m": {"requests": 3, "answers": 1, "seconds": 0.5}},
        "w",
        0,
    )

    work._engine, work._began = Engine(), 10.0
    monkeypatch.setattr(workspace.time, "monotonic", lambda: 16.0)
    traffic = work.traffic("w")

    assert traffic == replace(
        bare, sent=4, replies=3, active=6.0, asked={"m": (3.0, 5.0)}, starved=("m",),
        waiting={"m": {"seconds": 2.0}}, found={"m": {"requests": 5.0, "window": 7.0}}, engines={"m": [["a", "b"]]},
    )  # fmt: skip
    monkeypatch.setattr(workspace, "_ROOM_BYTES", 0)
    assert work.traffic("w").starved == ()


def test_engine__is_told_what_workers_share_until_it_is_held(work):
    work.share_out(2, {"run": (1, 2)})
    assert (work.workers, work.given_up("m")) == (2, False)
    work._engine = engine = Engine()
    assert work.given_up("m")

    work.share_out(3, {})
    work.hold()
    work.share_out(4, {})
    work.revive("m")
    work.ask_again()
    work.slow_down(Slowdown("m", setting={"requests": 1.0}))
    work.begun.add((1,))

    assert work.workers == 0
    assert work.drain() == {(1,)}
    assert work.slowdowns() == [Slowdown("m")]
    assert work.revived == {"m": 1}
    assert [name for name, *_ in engine.told] == [
        *("given_up", "share_out", "share_out", "revive", "stop", "slow_down", "drain", "slowdowns")
    ]
    assert [rest for name, *rest in engine.told if name == "share_out"] == [[3, {}], [0, {}]]


def test_may_doubt__only_with_peers_that_reached_the_endpoint(work):
    def doubts(workers=2, reached=("x",), batch=None, *, drained=False, faulty=()):
        route = SimpleNamespace(endpoint=SimpleNamespace(batch=batch))
        work.context = SimpleNamespace(routes={"m": route}, proof=SimpleNamespace(reached=reached))
        work._share, work.drained, work.faulty = (workers, {}), drained, set(faulty)
        return work.may_doubt("m")

    assert doubts()
    assert not any(
        [doubts(1), doubts(reached=()), doubts(batch="b"), doubts(drained=True), doubts(faulty=["m"])]
    )


def test_fetch__asks_the_cache_for_few_replies_at_once(work, monkeypatch):
    keys = [f"{number:064x}" for number in range(5)]
    work.cache.put_many([(keys[1], b"1"), (keys[4], b"4")])
    work._written.put_all([(keys[2], b"2")])
    asked, get_many = [], work.cache.get_many
    monkeypatch.setattr(workspace, "_FETCHED", 2)
    monkeypatch.setattr(work.cache, "get_many", lambda some: (asked.append(list(some)), get_many(some))[1])

    assert [*work.fetch(keys)] == [None, b"1", b"2", None, b"4"]
    assert asked == [keys[:2], keys[3:4], keys[4:]]
    assert [*work.cached(keys)] == [False, True, True, False, True]
    assert asked[3:] == [keys[:2], keys[2:4], keys[4:]]


def test_make_trial__is_at_hand_if_there_is_room(work, monkeypatch):
    cell = work.plan.tasks[0].cells[0].cell
    monkeypatch.setattr(workspace, "_AT_HAND_BYTES", len(cell.trial(1).prompt) + 1)

    trials = [work.make_trial(cell, index) for index in range(4)]

    assert trials == [cell.trial(index) for index in range(4)]
    assert len(work._made) < 4
    assert work._made[cell.id, 0] is trials[0]
