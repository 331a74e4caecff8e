"""How far the limits of endpoints were used."""

import pytest

from flows.run.events import Traffic
from flows.run.summary import LimitUse, limit_use
from stages.infer.endpoint import Endpoint


def traffic(**models):
    """Requests, seconds and tokens by model."""
    return Traffic(
        models={name: {"requests": n, "seconds": seconds} for name, (n, seconds, _) in models.items()},
        usage={name: (0.0, tokens) for name, (_, _, tokens) in models.items()},
    )


def test_limit_use__is_that_of_the_limit_that_binds():
    here, there = "http://here/v1", "http://there/v1"
    endpoints = {
        "a": Endpoint("a", here, connections=8, requests_per_minute=100),
        "b": Endpoint("b", here, connections=4),
        "c": Endpoint("c", there, connections=2, tokens_per_minute=6000),
        "idle": Endpoint("idle", "http://idle/v1"),
    }

    used = limit_use(endpoints, traffic(a=(10, 60, 100), b=(40, 36, 100), c=(5, 6, 900)), 30.0)

    assert used == (
        LimitUse(("a", "b"), "requests_per_minute", 100, pytest.approx(1.0)),
        LimitUse(("c",), "tokens_per_minute", 6000, pytest.approx(0.3)),
    )


def test_limit_use__without_rates_is_that_of_connections():
    endpoints = {"a": Endpoint("a", "http://here/v1", connections=8)}

    (use,) = limit_use(endpoints, traffic(a=(10, 60, 100)), 10.0)

    assert (use.limit, use.value, use.used) == ("connections", 8, pytest.approx(0.75))


def test_limit_use__of_a_run_that_asked_nothing():
    endpoints = {"a": Endpoint("a", "http://here/v1")}

    assert limit_use(endpoints, Traffic(), 10.0) == ()
    assert limit_use(endpoints, traffic(a=(1, 1, 1)), 0.0) == ()
