"""A run stops in good order when somebody who can write its cube wants it, and no other run does."""

import json
import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.events import BlockDone, Extended, Noted, Traffic
from evalcube.flows.run import driver
from evalcube.flows.run.driver import Driver
from evalcube.flows.run.follow.records import EventLog
from evalcube.flows.run.stopping import Interrupt, RunInterrupted, StopWish, stop_run
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.flows.state.records import STOP, ask_to_stop, who_stops
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.lease import Lease
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, refused, simulator_stats, sweep_config
from tests.storage.support.memory_space import MemorySpace
from tests.waiting import PATIENCE

TOKEN = "token"


@pytest.fixture(params=["directory", "bucket"])
def records(request, tmp_path):
    if request.param == "bucket":
        return MemorySpace("memory").at("_evalcube")
    (tmp_path / "cube" / "_evalcube").mkdir(parents=True)
    return Directory(tmp_path / "cube").at("_evalcube")


def test_who_stops__is_whoever_asked_the_run_with_that_lease(records):
    ask_to_stop(records, TOKEN, "ada@laptop")

    assert who_stops(records, TOKEN) == "ada@laptop"
    assert who_stops(records, "another") == ""


ODD = (b"", b"[]", b"{}", b'{"run": 3}', b"{" * 5000, b"x" * 20_000)


@pytest.mark.parametrize("data", ODD, ids=[str(len(data)) for data in ODD])
def test_who_stops__of_what_is_no_wish_is_nobody(records, data):
    records.put(STOP, data)

    assert who_stops(records, TOKEN) == ""


def test_who_stops__shows_no_name_that_does_something_to_a_terminal(records):
    ask_to_stop(records, TOKEN, "\x1b[2J" + "x" * 9000)

    shown = who_stops(records, TOKEN)

    assert shown.isprintable()
    assert len(shown) <= 200


def test_stop_wish__is_heard_once_and_taken_away(records):
    said = []
    wish = StopWish(records, TOKEN, said.append)
    wish._seconds = 0.01
    ask_to_stop(records, TOKEN, "ada@laptop")

    with wish:
        wish._thread.join(PATIENCE)

    assert (wish.by, wish.stopped, len(said)) == ("ada@laptop", True, 1)
    assert "ada@laptop" in said[0]
    assert records.get(STOP) is None


def test_stop_wish__for_another_run_stops_nothing(records):
    wish = StopWish(records, TOKEN)
    wish._seconds = 0.01
    ask_to_stop(records, "an earlier one", "ada@laptop")

    with wish:
        time.sleep(0.05)

    assert (wish.by, wish.stopped) == ("", False)
    assert records.get(STOP) is None


def slow(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=40)
    for model in config["models"]:
        model["simulate"]["latency"] = 0.15
    return config


def test_run__that_is_asked_to_stop_ends_in_good_order_and_a_later_run_goes_on(tmp_path, simulator):
    config, seen = slow(tmp_path, simulator), []

    with ThreadPoolExecutor(1) as pool, EventLog(tmp_path / "log") as log:
        running = pool.submit(run, config, cluster=SHARED, subscribers=[seen.append, log])
        while not any(isinstance(event, Traffic) and event.sent for event in seen):
            time.sleep(0.02)
        code, output, _ = evalcube("stop", config["cube"], cwd=tmp_path)
        summary = running.result(PATIENCE)

    assert (code, output[:9]) == (0, "stopping:")
    assert summary.reason == "stopped"
    assert summary.ordered.startswith("stopped by ")
    assert 0 < summary.done < summary.trials
    logged = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert any("requested by" in str(line.get("message")) for line in logged)
    rest = run(config, cluster=SHARED)
    assert (rest.reason, rest.ordered) == ("complete", "")
    assert simulator_stats(simulator)["requests"] == summary.trials


def test_run__whose_event_is_set_ends_as_at_a_signal(tmp_path, simulator):
    config, stop, seen = slow(tmp_path, simulator), threading.Event(), []

    def set_it(event):
        seen.append(event)
        if isinstance(event, BlockDone):
            stop.set()

    with ThreadPoolExecutor(1) as pool:
        summary = pool.submit(run, config, subscribers=[set_it], stop=stop).result(PATIENCE)

    assert (summary.reason, "by the program" in summary.ordered) == ("stopped", True)
    assert 0 < summary.done < summary.trials
    assert not any("Ctrl-C" in event.message for event in seen if isinstance(event, Noted))
    with pytest.raises(SweepError, match=r"stopped: .* trials"):
        summary.raise_for_status()
    assert run(config).reason == "complete"
    assert simulator_stats(simulator)["requests"] == summary.trials


def test_run__whose_event_is_set_before_it_asks_nothing(tmp_path, simulator):
    config, stop = slow(tmp_path, simulator), threading.Event()
    stop.set()

    stopped = run(config, stop=stop)
    more = upsample(config, trials=2, stop=stop)

    assert (stopped.reason, stopped.done, more.reason) == ("stopped", 0, "stopped")
    assert simulator_stats(simulator)["requests"] == 0


def test_run__refuses_what_is_no_event():
    with pytest.raises(SweepError, match="`stop`: 3 "):
        run({}, stop=3)


class StoppedAtTheEnd(Driver):
    """One that is asked to stop once all that the round began is recorded."""

    def _record(self, region, receipt):
        super()._record(region, receipt)
        self._parts.wish.stop()


def test_run__that_is_stopped_when_nothing_is_left_is_complete(tmp_path, simulator, monkeypatch):
    monkeypatch.setattr(driver, "Driver", StoppedAtTheEnd)
    config = sweep_config(tmp_path, simulator.base_url, trials=2)

    summary = run(config, cluster=SHARED)

    assert (summary.reason, summary.left, summary.ordered) == ("complete", 0, "")


def test_run__that_is_stopped_between_two_rounds_is_not_complete(tmp_path, simulator, monkeypatch):
    monkeypatch.setattr(driver, "Driver", StoppedAtTheEnd)
    config = sweep_config(tmp_path, simulator.base_url, precision={"base": 16, "target": 0.05, "max": 32})
    del config["trials"]

    assert run(config, cluster=SHARED).reason == "stopped"


def test_run__heeds_a_signal_that_comes_between_two_rounds(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, precision={"base": 16, "target": 0.05, "max": 32})
    del config["trials"]

    def interrupt(event):
        if isinstance(event, Extended):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(RunInterrupted) as caught:
        run(config, cluster=SHARED, subscribers=[interrupt])

    assert caught.value.summary.reason == "stopped"


def test_stop__of_a_cube_without_a_run_says_so_and_stops_no_later_one(small_sweep):
    refused(evalcube("stop", "cube.zarr", cwd=small_sweep), "no run works on", "evalcube status")
    refused(evalcube("stop", "no.zarr", cwd=small_sweep), "no.zarr")

    assert space_of(str(small_sweep / "cube.zarr")).at("_evalcube").get(STOP) is None


def test_stop_run__that_is_not_heard_says_so(small_sweep, tmp_path):
    cube = str(tmp_path / "cube.zarr")
    shutil.copytree(
        small_sweep / "cube.zarr", cube
    )  # the wish stays in it, and other tests read the shared one

    with Lease.acquire(space_of(cube).at("_evalcube")), pytest.raises(SweepError, match="has not answered"):
        stop_run(cube, wait=0.0)


def test_interrupt__calls_stop_once_and_raises_at_the_next_signal():
    interrupt, stops = Interrupt(), []
    interrupt.stop = lambda: stops.append(interrupt.stopped)

    interrupt(signal.SIGTERM, None)
    assert (stops, interrupt.stopped) == ([True], True)

    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGTERM, None)
    assert stops == [True]


def test_interrupt__puts_a_first_signal_off_while_signals_are_held_and_no_second_one():
    interrupt, stops, built = Interrupt(), [], []
    interrupt.stop = lambda: stops.append(1)

    def build():
        with interrupt.hold_signals():
            interrupt(signal.SIGINT, None)
            built.append(list(stops))
            interrupt(signal.SIGINT, None)

    with pytest.raises(KeyboardInterrupt):  # the first one, once signals are let go
        build()
    assert (built, stops) == ([[]], [1])
