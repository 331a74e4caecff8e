"""Small records beside a cube: what is read of those that anybody may have written."""

import json

import pytest

from evalcube.flows.state.records import (
    DRIVER,
    LIVE,
    NOTES,
    SPENT,
    STOP,
    Spent,
    ask_to_stop,
    cached_prices,
    priced_models,
    read_driver,
    read_live,
    read_notes,
    read_record,
    read_spent,
    who_stops,
)
from tests.storage.support.memory_space import MemorySpace


@pytest.fixture
def records():
    return MemorySpace("here")


def put(records, key, document):
    records.put(key, document if isinstance(document, bytes) else json.dumps(document).encode())


@pytest.mark.parametrize("document", [None, b"{", b"[1]", b'"a"', b"5", b"\xff", b"[" * 100_000])
def test_records__that_cannot_be_read_say_nothing(records, document):
    for key in (NOTES, SPENT, LIVE, DRIVER, STOP):
        if document is not None:
            put(records, key, document)

    assert read_notes(records) == {}
    assert read_spent(records) is read_live(records) is read_driver(records) is None
    assert who_stops(records, "token") == ""


def test_read_record__reads_no_more_than_it_may(records):
    put(records, "a", {"b": 1})

    assert read_record(records, "a") == {"b": 1}
    assert read_record(records, "a", 8) == {"b": 1}
    assert read_record(records, "a", 7) is None
    put(records, NOTES, {"name": "x"})
    assert read_notes(records) == {"name": "x"}


@pytest.mark.parametrize(
    ("document", "spent"),
    [
        ({"tokens": 5, "usd": 0.5}, Spent(5.0, 0.5)),
        ({"tokens": "5", "usd": 0}, Spent(5.0, 0.0)),
        ({"tokens": 5}, None),
        ({"tokens": 5, "usd": None}, None),
        ({"tokens": 1e999, "usd": 1}, None),
        ({"tokens": 1, "usd": -1e999}, None),
        ([], None),
    ],
)
def test_read_spent__is_of_finite_sums(records, document, spent):
    put(records, SPENT, document)

    assert read_spent(records) == spent


LIVELY = {
    **dict.fromkeys(
        ("time", "seconds", "trials", "done", "sent", "in_flight", "cached", "transport", "rate"), 1
    ),
    "retries": {"timeout": 1},
    "eta": None,
    "waiting": {"m": {"seconds": 0, "reason": "429"}},
}


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({}, True),
        ({"eta": 5.5}, True),
        ({"time": 999_999_999_999_999}, True),
        ({"time": 1e15}, False),
        ({"time": -1e15}, False),
        ({"done": True}, False),
        ({"rate": None}, False),
        ({"eta": "soon"}, False),
        ({"eta": 1e300}, False),
        ({"retries": []}, False),
        ({"waiting": None}, False),
        ({"waiting": {"m": {"seconds": 1e6, "reason": "429"}}}, False),
        ({"waiting": {"m": {"seconds": 999_999, "reason": "429"}}}, True),
        ({"waiting": {"m": {"seconds": -1, "reason": "429"}}}, False),
        ({"waiting": {"m": {"seconds": "1", "reason": "429"}}}, False),
        ({"waiting": {"m": {"seconds": 1, "reason": 429}}}, False),
        ({"waiting": {"m": 5}}, False),
        ({"waiting": {"m": {"reason": "429"}}}, False),
    ],
)
def test_read_live__has_numbers_that_can_be_shown(records, changes, read):
    put(records, LIVE, LIVELY | changes)

    assert read_live(records) == (json.loads(json.dumps(LIVELY | changes)) if read else None)


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({}, True),
        ({"lines": []}, True),
        ({"lines": [5]}, False),
        ({"lines": "a"}, False),
        ({"worker": 5}, False),
    ],
)
def test_read_driver__has_texts(records, changes, read):
    document = {"name": "n", "scheduler": "tcp://s", "worker": "w", "lines": ["a"]} | changes
    put(records, DRIVER, document)

    assert read_driver(records) == (document if read else None)


MODELS = [
    {"name": "a", "prices": {"prompt": 2.0, "completion": 4.0, "cached": 0.5}},
    {"name": "b", "prices": {"prompt": 2.0, "completion": 4.0}},
    {"name": "c"},
    {"name": "d", "prices": {"prompt": -2.0, "cached": 0.5}},
    {"name": "e", "prices": 5},
    7,
]


def test_prices__are_those_that_the_config_declares():
    notes = {"config": {"models": MODELS}}

    assert priced_models(notes) == {"a", "b", "d", "e"}
    assert cached_prices(notes) == {"a": -1.5}
    assert (
        priced_models({}) is priced_models({"config": []}) is priced_models({"config": {"models": 5}}) is None
    )
    assert cached_prices({}) == cached_prices({"config": {"models": 5}}) == {}


def test_cached_prices__are_those_of_batches_where_models_are_asked_so():
    model = {"name": "a", "prices": {"prompt": 2.0, "completion": 4.0, "cached": 0.5}}
    live, batch = (cached_prices({"config": {"models": [{**model, "batch": way}]}}) for way in (False, True))

    assert live == {"a": -1.5}
    assert batch.keys() == {"a"}


def test_who_stops__is_told_for_one_run_alone(records):
    ask_to_stop(records, "token", "ann\x1b[31m@host")

    assert who_stops(records, "token") == "ann[31m@host"
    assert who_stops(records, "other") == ""
    assert b"token" not in records.get(STOP).data
    for by, said in (("", "somebody"), (5, "somebody"), ("\x1b", "somebody"), ("a" * 300, "a" * 200)):
        document = json.loads(records.get(STOP).data)
        put(records, STOP, {**document, "by": by})
        assert who_stops(records, "token") == said
