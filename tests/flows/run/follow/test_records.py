"""The log of a run: JSON by line, bounded, without anything that a model or an endpoint said."""

import json
import logging
from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.flows.errors import SweepError
from evalcube.flows.events import (
    BlockDone,
    Finished,
    Noted,
    RegionWritten,
    Started,
    Traffic,
)
from evalcube.flows.run.follow.records import MOST_BYTES, EventLog, to_logging
from evalcube.stages.infer.jobs import Slowdown

STARTED = Started("run-1", "cube.zarr", 10, 2, ("alpha", "beta"))


def block(**changes):
    fields = {"key": (0, 1), "model": 1, "trials": 3, "cached": 1, "transport": 0, "missing": 0}
    return BlockDone(**{**fields, **changes})


def written(path, *events):
    with EventLog(path) as log:
        for event in events:
            log(event)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_log__one_object_per_event_with_time_run_and_name(tmp_path):
    summary = {"sent": 3, "details": {"http 401": "what the endpoint said"}}

    lines = written(
        tmp_path / "log.jsonl",
        STARTED,
        Traffic(sent=2, in_flight=2, worker="a"),
        Slowdown("alpha", 1.5, "429: Retry-After", overload=True, worker="a"),
        block(causes={"timeout": 2}, details={"timeout": "what the endpoint said"}),
        RegionWritten(0, True),
        Noted("two workers"),
        Finished("incomplete", summary),
    )

    names = ["started", "traffic", "slowed", "block", "region", "note", "traffic", "finished"]
    assert [line["event"] for line in lines] == names
    assert {line["run"] for line in lines} == {"run-1"}
    assert all(datetime.fromisoformat(line["time"]).tzinfo is not None for line in lines)
    assert (lines[2]["pause"], lines[2]["reason"]) == (1.5, "429: Retry-After")
    assert lines[3]["model"] == "beta"
    assert lines[3]["causes"] == {"timeout": 2}
    assert (lines[7]["reason"], lines[7]["sent"]) == ("incomplete", 3)
    assert "what the endpoint said" not in (tmp_path / "log.jsonl").read_text()


def test_log__traffic_names_what_is_waited_for(tmp_path):
    waiting = {"alpha": {"seconds": 45.0, "reason": "429: requests, Retry-After"}}

    lines = written(tmp_path / "log", STARTED, Traffic(waiting=waiting, worker="a"))

    assert lines[1]["waiting"]["alpha"]["reason"] == "429: requests, Retry-After"
    assert 0 < lines[1]["waiting"]["alpha"]["seconds"] <= 45


def test_log__runs_append(tmp_path):
    written(tmp_path / "log", STARTED)

    assert len(written(tmp_path / "log", STARTED, Noted("again"))) == 3


def test_log__traffic_of_many_workers_is_one_line(tmp_path):
    reports = [Traffic(sent=i, worker=str(i)) for i in range(50)]

    lines = written(tmp_path / "log", STARTED, *reports, *reports, Finished("complete"))

    assert [line["sent"] for line in lines if line["event"] == "traffic"] == [0, sum(range(50))]


@given(
    texts=st.lists(st.text(max_size=5000), min_size=1, max_size=300),
    number=st.floats(allow_nan=True, allow_infinity=True),
)
def test_log__lines_are_bounded_and_json(tmp_path_factory, texts, number):
    path = tmp_path_factory.mktemp("log") / "log"
    causes = dict.fromkeys(texts, number)

    lines = written(path, Started("r", texts[0], 1, 0, tuple(texts)), block(model=0, causes=causes))

    assert [line["event"] for line in lines] == ["started", "block"]
    assert all(len(line) <= MOST_BYTES for line in path.read_bytes().split(b"\n"))


def test_log__tells_how_a_run_failed(tmp_path):
    for error in (SweepError("the key is not set", "Set it"), ValueError("anything, perhaps a prompt")):
        with suppress(type(error)), EventLog(tmp_path / "log") as log:
            log(STARTED)
            raise error

    failed = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()][1::2]
    assert [line["error"] for line in failed] == ["SweepError", "ValueError"]
    assert [line["message"] for line in failed] == ["the key is not set. Set it", ""]


def test_log__that_cannot_be_opened_is_refused(tmp_path):
    with (
        pytest.raises(SweepError, match="cannot be written: No such file"),
        EventLog(tmp_path / "no" / "log"),
    ):
        pass


def test_log__a_full_disk_ends_the_log_and_not_the_run():
    with EventLog("/dev/full") as log:
        log(STARTED)
        log(Noted("more"))

    assert "/dev/full ends early: No space left" in log.problem


def test_to_logging__warns_of_what_a_reader_should_act_on(monkeypatch):
    heard, logger = [], logging.Logger("alone")
    monkeypatch.setattr("evalcube.flows.run.follow.records._LOGGER", logger)
    logger.addFilter(lambda record: heard.append((record.levelname, record.getMessage())))

    for event in (
        Noted("slow", said="the endpoint's words"),
        Noted("full", urgent=True),
        Finished("complete"),
        Finished("stopped"),
        block(),
    ):
        to_logging(event)

    assert [level for level, _ in heard] == ["INFO", "WARNING", "INFO", "WARNING"]
    assert [message.split()[-1] for _, message in heard] == ["slow", "full", "complete", "stopped"]
