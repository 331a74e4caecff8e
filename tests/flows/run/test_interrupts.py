"""A signal in Python: the run stops in good order, and whoever called it does not go on unheard."""

import logging
import os
import signal

import pytest

from evalcube import events
from evalcube.flows.errors import SweepError
from evalcube.flows.events import BlockDone, Started
from evalcube.flows.run.sweep import run
from tests.flows.support import simulator_stats, sweep_config

pytestmark = pytest.mark.cluster


def test_run__stops_in_good_order_at_a_signal_and_raises_with_the_summary(tmp_path, simulator, caplog):
    config = sweep_config(tmp_path, simulator.base_url, trials=20, cells=8)
    config["models"][0]["simulate"]["latency"] = 0.05
    config["models"][0]["limits"] = {"connections": 4}
    # All tests share a handler, which pytest hangs on loggers of Dask, too: their silence may have been left on it.
    caplog.set_level(logging.WARNING, "evalcube")
    signalled = []

    def interrupt(event):
        if isinstance(event, BlockDone) and not signalled:
            signalled.append(os.kill(os.getpid(), signal.SIGINT))

    with pytest.raises(KeyboardInterrupt, match="by a signal") as caught:
        run(config, workers=1, subscribers=[interrupt])

    summary = caught.value.summary
    assert summary.reason == "stopped"
    assert 0 < summary.done < summary.trials
    assert any(
        record.getMessage().endswith("is stopped") for record in caplog.records if record.name == "evalcube"
    )
    asked = simulator_stats(simulator)["requests"]
    assert run(config).reason == "complete"
    assert simulator_stats(simulator)["requests"] == summary.trials
    assert asked < summary.trials


def test_run__stops_with_a_summary_at_a_signal_before_the_first_request(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=20, cells=8)
    before = simulator_stats(simulator)["requests"]

    def interrupt(event):
        if isinstance(event, Started):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(events.RunInterrupted) as caught:
        run(config, subscribers=[interrupt])

    assert caught.value.summary.reason == "stopped"
    assert (caught.value.summary.done, caught.value.summary.left) == (0, caught.value.summary.trials)
    assert simulator_stats(simulator)["requests"] == before
    assert run(config).reason == "complete"


@pytest.mark.parametrize("workers", [-1, 0, 257, "two"])
def test_run__refuses_a_number_of_workers_before_anything_else(workers):
    with pytest.raises(SweepError, match="`workers`: "):
        run({"name": "not even looked at"}, workers=workers)
