"""What a run found of its endpoints, and what the next one makes of it."""

import json
from dataclasses import replace

import pytest

from evalcube.flows.config.load import parse_config
from evalcube.flows.events import Traffic
from evalcube.flows.run.endpoint_use import FoundLimit, found_limits, recall, remember
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.summary import lines_of
from evalcube.flows.run.worker.context import Route
from evalcube.stages.infer.endpoint import Endpoint
from tests.cases import with_cases
from tests.flows.config.sources import text
from tests.flows.run.test_endpoint_use_efficiency import SUMMARY
from tests.storage.support.memory_space import MemorySpace

ENDPOINT = Endpoint("a", "http://h/v1", connections=256, start=16)


def found(**limits):
    return Traffic(found={"a": {"requests": None, "connections": None, "window": None, **limits}})


def start_after(window, endpoint=ENDPOINT, before=None):
    records, models = (
        MemorySpace("here"),
        parse_config(text(models="- {name: a, endpoint: http://h/v1}")).models,
    )
    if before is not None:
        records.put("in_flight.json", json.dumps(before).encode())
    remember(records, models, {"a": endpoint}, found(window=window))
    return recall(records, models, {"a": Route(endpoint)})["a"].endpoint.start


@with_cases(("window", "start"), [(200, 100), (20, 16), (4, 4), (None, 16), (2000, 256)])
def test_recalled__begins_with_half_but_not_below_the_first_start(window, start):
    assert start_after(window) == start


def test_remember__a_run_that_did_not_come_to_look_changes_nothing():
    assert start_after(16, before={"http://h/v1": 80}) == 40


def test_recalled__what_is_declared_is_not_looked_for():
    assert start_after(100, replace(ENDPOINT, connections=8, start=None)) is None


@pytest.mark.parametrize("record", [[], {"http://h/v1": "many"}, {"http://h/v1": -3}, {"http://h/v1": True}])
def test_recalled__a_record_that_is_none_says_nothing(record):
    assert start_after(None, before=record) == 16


def test_tracker__windows_of_workers_add_up_and_the_strictest_rate_holds():
    tracker = Tracker()
    tracker(replace(found(window=10, requests=3.0), worker="v"))
    tracker(replace(found(window=12, requests=2.0), worker="w"))

    assert tracker.traffic().found == {"a": {"requests": 2.0, "connections": None, "window": 22}}


def test_found_limits__what_nobody_refused_is_named_as_what_it_is():
    (limit,) = found_limits({"a": ENDPOINT}, found(window=181))

    assert limit == FoundLimit(("a",), "connections", 181)
    assert any("181" in line and "(a)" in line for line in lines_of(replace(SUMMARY, found_limits=(limit,))))
    late = [replace(limit, late=share) for share in (0.0, 0.06, 0.5)]
    remarks = [line.partition("(a)")[2] for line in lines_of(replace(SUMMARY, found_limits=late))[-4:-1]]
    assert remarks[0] == ""
    assert ["6%" in remarks[1], "limited" in remarks[1]] == [True, False]
    assert ["50%" in remarks[2], "limited" in remarks[2]] == [True, True]
