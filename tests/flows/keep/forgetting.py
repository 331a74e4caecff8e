"""What tests of forgetting share: a sweep of two models, what is stored of it, and a kill at a chosen step."""

from unittest.mock import patch

from evalcube.flows.keep.choice import Choice
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cube.cube import Cube
from tests.flows.support import simulator_stats, stored, sweep_config

BETA = Choice(("model=beta",))


def config_of(folder, served):
    return sweep_config(folder, served.base_url, models=("alpha", "beta"), trials=8, cells=2)


def statuses(config):
    """Status (model, task, params, trial, repeat)."""
    return stored(Cube.open(config["cube"]), "status")


def requests_sent(served):
    return simulator_stats(served)["requests"]


def assert_whole(config):
    """Receipts, counters and plan fit what is stored."""
    assert verify_cube(config["cube"]).whole


TRIALS = 3 * 8 * 2
"""Of one model: three points, eight trials, two repeats."""


class KilledError(Exception):
    """In the place of a kill."""


def killed_at(target, name, number):
    """A patch under which a method raises, before it does anything, at a call."""
    real, calls = getattr(target, name), []

    def method(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == number:
            raise KilledError
        return real(self, *args, **kwargs)

    return patch.object(target, name, method)
