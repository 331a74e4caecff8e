"""How far the limits of endpoints were used."""

import re
from dataclasses import replace

import pytest

from evalcube.flows.events import Traffic
from evalcube.flows.run.endpoint_use import LimitUse, limit_use
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.summary import RunSummary
from evalcube.stages.infer.endpoint import Endpoint

SUMMARY = RunSummary("complete", "cube", "cache", 40.0, 90, 90, 0, 0, 90, 9, 9, asking_seconds=30.0)


def traffic(asked=(0.0, 30.0), **models):
    """Requests, seconds and tokens by model."""
    return Traffic(
        models={name: {"requests": n, "seconds": seconds} for name, (n, seconds, _) in models.items()},
        usage={name: (0.0, tokens) for name, (_, _, tokens) in models.items()},
        asked=dict.fromkeys(models, asked),
    )


def test_limit_use__is_that_of_the_limit_that_binds():
    here, there = "http://here/v1", "http://there/v1"
    endpoints = {
        "a": Endpoint("a", here, connections=8, requests_per_minute=100),
        "b": Endpoint("b", here, connections=4),
        "c": Endpoint("c", there, connections=2, tokens_per_minute=6000),
        "idle": Endpoint("idle", "http://idle/v1"),
    }

    used = limit_use(endpoints, traffic(a=(10, 60, 100), b=(41, 36, 100), c=(5, 6, 900)))

    assert used == (
        LimitUse(("a", "b"), "requests_per_minute", 100, pytest.approx(1.0), 30.0),
        LimitUse(("c",), "tokens_per_minute", 6000, pytest.approx(900 / 3180), 30.0),
    )


def test_limit_use__without_rates_is_that_of_connections():
    endpoints = {"a": Endpoint("a", "http://here/v1", connections=8)}

    (use,) = limit_use(endpoints, traffic((5.0, 15.0), a=(10, 60, 100)))

    assert (use.limit, use.value, use.used) == ("connections", 8, pytest.approx(0.75))


def test_limit_use__is_what_the_endpoint_sees_and_names_the_cpu_that_answers_wait_for():
    endpoints = {"a": Endpoint("a", "http://here/v1", connections=8)}

    quick, slow = (
        limit_use(endpoints, replace(traffic((0.0, 10.0), a=(10, 78, 100)), late={"a": late}))
        for late in (2.0, 30.0)
    )

    assert (slow[0].used, slow[0].late) == (pytest.approx(0.6), pytest.approx(0.375))
    assert "CPU" not in str(replace(SUMMARY, limits=quick))
    line = str(replace(SUMMARY, limits=slow)).splitlines()[-2]
    assert re.findall(r"[\d.]+", line) == ["60", "8", "10.0", "38"]


def test_limit_use__of_an_endpoint_that_was_done_early_is_that_of_its_time():
    endpoints = {name: Endpoint(name, f"http://{name}/v1", connections=8) for name in ("slow", "quick")}
    early, late = traffic((0.0, 0.2), quick=(32, 1.392, 64)), traffic((0.0, 30.0), slow=(50, 120, 900))
    both = Traffic(
        models={**early.models, **late.models},
        usage={**early.usage, **late.usage},
        asked={**early.asked, **late.asked},
    )

    slow, quick = used = limit_use(endpoints, both)
    summary = replace(SUMMARY, limits=used)

    assert (quick.used, quick.seconds) == (pytest.approx(0.87), pytest.approx(0.2))
    assert summary.efficiency == slow.used == pytest.approx(0.5)
    lines = [line for line in str(summary).splitlines() if line.startswith("efficiency")]
    assert [re.findall(r"[\d.]+|slow|quick", line) for line in lines] == [
        ["50", "8", "slow"],
        ["87", "8", "quick", "0.2"],
    ]


def test_limit_use__of_one_request_is_not_more_than_all():
    endpoints = {"a": Endpoint("a", "http://here/v1", requests_per_minute=10, tokens_per_minute=1000)}

    (use,) = limit_use(endpoints, traffic((0.0, 0.1), a=(1, 0.1, 100)))

    assert 0.9 < use.used <= 1.0


def test_limit_use__of_a_run_that_asked_nothing():
    endpoints = {"a": Endpoint("a", "http://here/v1")}

    assert limit_use(endpoints, Traffic()) == ()
    assert limit_use(endpoints, traffic((3.0, 3.0), a=(1, 1, 1))) == ()


def test_tracker__knows_when_an_endpoint_was_asked_whatever_the_clocks_of_workers_say():
    now = [100.0]
    tracker = Tracker(lambda: now[0])

    tracker(Traffic(sent=4, active=1.0, asked={"quick": (0.0, 0.5)}, worker="w"))
    now[0] = 130.0  # the message was a second on its way, and nothing was asked in between
    tracker(Traffic(sent=4, active=30.0, asked={"quick": (0.0, 0.5)}, worker="w"))
    tracker(Traffic(sent=1, active=5.0, asked={"quick": (1.0, 2.0)}, worker="v"))

    assert tracker.traffic().asked == {"quick": (99.0, 127.0)}
