"""How each fault ends where the endpoint speaks another API, or streams: as chat's table says, with few exceptions."""

import pytest

from evalcube.deploy.simulator.truth import HEADER, Truth, encode
from evalcube.stages.infer.jobs import Job
from tests.simulator.faults import STREAM_KINDS
from tests.stages.infer.conftest import make_jobs
from tests.stages.infer.test_wire import ALL_FAIL, ERROR, FAULTS, STATUS, STREAMED, graded

OTHER = {
    ("messages", False): {"no choices": (True, ERROR, "wrong shape")},
    ("messages", True): {"no choices": (False, "answer that cannot be read", "")},
}
"""What has another end."""
WAYS = [
    ("chat", True),
    ("completions", False),
    ("completions", True),
    ("messages", False),
    ("messages", True),
]
ALIKE = ("HTTP 4", "HTTP 5", "a redirect", "100 MB", "a small body", "the connection is", "no reply")
"""Ends before the API matters: tried with one of them only."""


def cases():
    for api, stream in WAYS:
        for case in FAULTS:
            if stream and case == "the reply drips in, but in time":
                continue  # it is longer; that pieces make no difference is tested with the parser
            if (
                (api, stream) == ("chat", True)
                or not case.startswith(ALIKE)
                or "429" in case
                or "529" in case
            ):
                yield api, stream, case


@pytest.mark.parametrize(("api", "stream", "case"), list(cases()))
def test_run__fault_elsewhere(engine_for, remote, store, api, stream, case):
    rule, *told = FAULTS[case]
    ends = OTHER.get((api, stream), {}).get(case, tuple(told))

    check(engine_for, remote, store, rule, ends, api=api, stream=stream)


@pytest.mark.parametrize("api", ["chat", "completions", "messages"])
@pytest.mark.parametrize("case", STREAMED)
def test_run__fault_in_a_stream(engine_for, remote, store, api, case):
    rule, *ends = STREAMED[case]

    check(engine_for, remote, store, rule, tuple(ends), api=api, stream=True)


def check(engine_for, remote, store, rule, ends, *, api, stream):
    again, end, cause = ends
    attempts = 3 if again else 1
    if rule["kind"] == "huge":
        rule = {**rule, "megabytes": 8}  # the simulator takes its time to make a stream of it
    remote.faults(rule)
    engine = engine_for(timeout=0.25 if cause == "timeout" else 60.0, api=api, stream=stream)
    jobs = make_jobs(1, ability=40.0, tokens=12, growth=0.0, api=api)

    (result,) = engine.run("m", [Job(job.digest, job.body, {HEADER: encode(Truth("7"))}) for job in jobs])

    assert (result.cause, result.attempts) == (cause, attempts)
    assert remote.stats()["requests"] == attempts * (2 if end in ALL_FAIL else 1)
    if end.startswith(ERROR) or end in ALL_FAIL:
        assert result.kind == "failed"
        assert not store.records
    else:
        assert result.kind == "stored"
        assert graded(*store.records.values()) is STATUS[end]


def test_streamed__all_kinds_are_tried_here():
    assert {rule["kind"] for rule, *_ in STREAMED.values()} >= STREAM_KINDS
