"""A run obeys orders while it goes on; strangers may lower what it spends, and nobody but its user may raise it."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evalcube.flows.config.spend import Spend
from evalcube.flows.cubes.orders import order
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.control import Order, own_key, post
from evalcube.flows.plan.own_files import STATE_VARIABLE
from evalcube.flows.run import session
from evalcube.flows.run.control import Control
from evalcube.flows.run.driver import Driver
from evalcube.flows.run.events import Controlled, Started, Traffic
from evalcube.flows.run.spending import Spending
from evalcube.flows.run.subscribers.event_log import EventLog
from evalcube.flows.run.sweep import run
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.rates import Quota
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.holder import read_holder
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, refused, set_faults, simulator_stats, sweep_config
from tests.waiting import PATIENCE

TOKEN = "token"


@pytest.fixture
def controlled(tmp_path, monkeypatch):
    """A run's control, that obeys when it is asked to: sends orders, as its user or as a stranger."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    (tmp_path / "cube" / "_evalcube").mkdir(parents=True)
    records = Directory(tmp_path / "cube").at("_evalcube")
    own_key(make=True)
    events = []
    spending = Spending.__new__(Spending)
    spending.bound = Spend(tokens=1000).model_dump()
    control = Control(records, TOKEN, ("alpha", "beta"), spending, events.append)
    control.serve(
        {
            "alpha": Endpoint("alpha", "http://one/v1", connections=8, requests_per_minute=60.0),
            "beta": Endpoint("beta", "http://two/v1", connections=8),
        }
    )

    def say(command, *words, own):
        post(records, TOKEN, Order(command, words, "ada@laptop", time.time()), own_key() if own else None)
        control._read_orders()
        assert control.poll()
        return events[-1]

    return control, say


LOWER = [
    ("pause",),
    ("resume",),
    ("stop",),
    ("drop-model", "beta"),
    ("limits", "connections=7"),
    ("limits", "connections=8"),
    ("limits", "alpha", "requests_per_minute=30", "connections=2"),
    ("limits", "beta", "requests-per-minute=30"),
    ("limits", "tokens_per_minute=5000"),
    ("limits", "tokens=900"),
    ("limits", "usd=3"),
]
RAISE = [
    ("limits", "connections=9"),
    ("limits", "alpha", "requests_per_minute=61"),
    ("limits", "alpha", "requests_per_minute=none"),
    ("limits", "connections=2", "requests_per_minute=90"),
    ("limits", "tokens=1001"),
    ("limits", "tokens=none"),
    ("retry-errors",),
]
NONSENSE = [
    ("limits",),
    ("limits", "alpha"),
    ("limits", "speed=3"),
    ("limits", "connections=0"),
    ("limits", "connections=1.5"),
    ("limits", "connections=none"),
    ("limits", "connections=nan"),
    ("limits", "connections=4097"),
    ("limits", "usd=inf"),
    ("limits", "gamma", "connections=2"),
    ("limits", "alpha", "usd=2"),
    ("drop-model",),
    ("drop-model", "gamma"),
]


@pytest.mark.parametrize("words", LOWER, ids=" ".join)
def test_orders__that_lower_what_is_spent_are_obeyed_whoever_sends_them(controlled, words):
    control, say = controlled

    assert say(*words, own=False).obeyed
    assert control.steering.retries == 0


@pytest.mark.parametrize("words", RAISE, ids=" ".join)
def test_orders__that_raise_what_is_spent_are_the_users_alone(controlled, words):
    control, say = controlled
    before, bound = control.steering, dict(control._spending.bound)

    stranger = say(*words, own=False)

    assert (stranger.obeyed, stranger.own) == (False, False)
    assert "control.key" in stranger.message
    assert (control.steering, control._spending.bound) == (before, bound)
    user = say(*words, own=True)
    assert (user.obeyed, user.own) == (True, True)
    assert (control.steering, control._spending.bound) != (before, bound)


@pytest.mark.parametrize("words", NONSENSE, ids=" ".join)
def test_orders__that_make_no_sense_change_nothing(controlled, words):
    control, say = controlled
    before = control.steering

    assert not say(*words, own=True).obeyed
    assert control.steering == before


def test_orders__after_something_that_is_no_order_are_obeyed_and_it_is_said_once(controlled, tmp_path):
    control, say = controlled
    events = control._emit.__self__
    say("pause", own=True)
    (place,) = (tmp_path / "cube" / "_evalcube" / "control").iterdir()
    os.mkfifo(place / "000002.json")

    assert say("resume", own=True).obeyed
    assert [event.command for event in events] == ["pause", "not understood", "resume"]
    assert not control.paused


def test_orders__a_pause_of_the_user_ends_by_the_user_alone(controlled):
    control, say = controlled
    say("pause", own=True)

    assert not say("resume", own=False).obeyed
    assert control.steering.paused
    assert say("resume", own=True).obeyed
    assert not control.steering.paused


def test_orders__a_pause_of_a_stranger_ends_by_anybody(controlled):
    control, say = controlled

    assert say("pause", own=False).paused
    assert not say("resume", own=False).paused
    assert not control.steering.paused


def test_orders__what_was_tightened_is_the_new_measure(controlled):
    control, say = controlled
    say("limits", "alpha", "connections=4", own=False)

    assert not say("limits", "alpha", "connections=6", own=False).obeyed
    assert control.steering.quotas == {"alpha": Quota(4, 60.0)}
    assert control.connections("alpha") == 4


def orders_of(config, *said):
    """A subscriber that sends orders, as the run's user, once requests are sent."""
    waiting = list(said)

    def follow(event):
        if isinstance(event, Traffic) and event.sent and waiting:
            records = space_of(config["cube"]).at("_evalcube")
            token = read_holder(records)[0].token
            while waiting:
                post(records, token, Order(*waiting.pop(0), "ada@laptop", time.time()), own_key())

    return follow


def slow(tmp_path, simulator, **changes):
    config = sweep_config(tmp_path, simulator.base_url, trials=40, **changes)
    for model in config["models"]:
        model["simulate"]["latency"] = 0.15
    return config


def test_run__that_is_ordered_to_stop_ends_in_good_order_and_a_later_run_goes_on(tmp_path, simulator):
    config = slow(tmp_path, simulator)

    with EventLog(tmp_path / "log") as log:
        summary = run(config, cluster=SHARED, subscribers=[orders_of(config, ("stop", ())), log])

    assert summary.reason == "stopped"
    assert summary.ordered == "stopped by ada@laptop"
    assert 0 < summary.done < summary.trials
    logged = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    (said,) = [line for line in logged if line["event"] == "control"]
    assert (said["command"], said["own"], said["obeyed"]) == ("stop", True, True)
    rest = run(config, cluster=SHARED)
    assert (rest.reason, rest.ordered) == ("complete", "")
    assert simulator_stats(simulator)["requests"] == summary.trials


class StoppedAtTheEnd(Driver):
    """One that is asked to stop once all that the round began is recorded."""

    def _record(self, region, receipt):
        super()._record(region, receipt)
        self.stop()


def test_run__that_is_stopped_when_nothing_is_left_is_complete(tmp_path, simulator, monkeypatch):
    monkeypatch.setattr(session, "Driver", StoppedAtTheEnd)
    config = sweep_config(tmp_path, simulator.base_url, trials=2)

    summary = run(config, cluster=SHARED)

    assert (summary.reason, summary.left, summary.ordered) == ("complete", 0, "")


def test_run__that_is_stopped_between_two_rounds_is_not_complete(tmp_path, simulator, monkeypatch):
    monkeypatch.setattr(session, "Driver", StoppedAtTheEnd)
    config = sweep_config(tmp_path, simulator.base_url, precision={"base": 16, "target": 0.05, "max": 32})
    del config["trials"]

    assert run(config, cluster=SHARED).reason == "stopped"


def test_run__without_a_dropped_model_ends_and_says_so(tmp_path, simulator):
    config = slow(tmp_path, simulator, models=("alpha", "beta"))

    summary = run(config, cluster=SHARED, subscribers=[orders_of(config, ("drop-model", ("beta",)))])

    done = {model.model.split("/")[0]: model.done == model.trials for model in summary.models}
    assert list(done.values()) == [True, False]
    assert summary.reason == "stopped"
    assert "beta" in summary.ordered
    assert run(config, cluster=SHARED).reason == "complete"
    assert simulator_stats(simulator)["requests"] == summary.trials


def test_run__that_is_paused_before_its_first_request_does_not_end_by_that(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2)
    sent = []

    def say(command):
        records = space_of(config["cube"]).at("_evalcube")
        post(records, read_holder(records)[0].token, Order(command, (), "", time.time()), own_key())

    def follow(event):
        if isinstance(event, Started):
            say("pause")
        if isinstance(event, Controlled) and event.paused:
            sent.append(simulator_stats(simulator)["requests"])
            threading.Timer(1.0, say, ["resume"]).start()

    summary = run(config, cluster=SHARED, subscribers=[follow])

    assert (summary.reason, sent) == ("complete", [0])


def test_run__asks_failed_trials_once_more_when_it_is_ordered(tmp_path, simulator):
    config = slow(tmp_path, simulator)
    set_faults(simulator, [{"kind": "status", "status": 400, "share": 0.2, "first": 1}])

    summary = run(config, cluster=SHARED, subscribers=[orders_of(config, ("retry-errors", ()))])

    assert (summary.reason, summary.left) == ("complete", 0)


def test_order__pauses_a_run_and_has_it_go_on(tmp_path, simulator):
    config = slow(tmp_path, simulator)
    seen = []

    def follow(event):
        seen.append(event)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, config, cluster=SHARED, subscribers=[follow])
        while not any(isinstance(event, Traffic) for event in seen):
            time.sleep(0.02)
        assert order(config["cube"], "pause").obeyed
        code, output, _ = evalcube("ctl", config["cube"], "limits", "connections=16", cwd=tmp_path)
        assert (code, output) == (0, "connections 16\n")
        assert any(isinstance(event, Controlled) and event.paused for event in seen)
        while simulator_stats(simulator)["in_flight"]:
            time.sleep(0.02)
        sent = simulator_stats(simulator)["requests"]
        assert sent < 200
        assert order(config["cube"], "resume").obeyed
        assert running.result(PATIENCE).reason == "complete"

    assert simulator_stats(simulator)["requests"] == 200


def test_order__without_a_run_or_sense_is_refused(small_sweep):
    cube = small_sweep / "cube.zarr"

    refused(evalcube("ctl", cube, "stop", cwd=small_sweep), "no run works on", "evalcube run")
    refused(evalcube("ctl", cube, "halt", cwd=small_sweep), "COMMAND: 'halt' is none", "drop-model")
    refused(evalcube("ctl", cube, "limits", cwd=small_sweep), "connections=4")
    refused(evalcube("ctl", cube, "stop", "now", cwd=small_sweep), "takes nothing more, got 'now'")
    refused(evalcube("ctl", "no.zarr", "stop", cwd=small_sweep), "no.zarr")


def test_order__that_was_left_for_an_earlier_run_stops_no_later_one(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=2)
    run(config, cluster=SHARED)
    with pytest.raises(SweepError, match="no run works"):
        order(config["cube"], "stop")
    post(space_of(config["cube"]).at("_evalcube"), "an earlier token", Order("stop"), own_key())

    again = run({**config, "trials": 4}, cluster=SHARED)

    assert again.reason == "complete"
    assert not list(space_of(config["cube"]).at("_evalcube").list("control/"))
