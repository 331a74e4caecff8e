"""How each fault of an endpoint ends, against a real simulator. The table here is the one in docs/faults.md."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from evalcube.deploy.simulator.truth import HEADER, Truth, encode
from evalcube.stages.infer import reply, retry, wire
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.jobs import Job
from evalcube.stages.process.grading import grade_trial
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from tests.ports import free_port
from tests.simulator.faults import KINDS, STREAM_KINDS
from tests.stages.infer.conftest import kinds
from tests.stages.infer.echo import GOOD, Echo, http
from tests.waiting import PATIENCE

DOC = Path(__file__).parents[3] / "docs" / "faults.md"
ERROR = "transport error"
REFUSED = "refused, if others are answered"
TOO_LONG = "truncated, if others are answered"
ALL_FAIL = (REFUSED, TOO_LONG)
"""Transport errors where all requests fail, of which a harmless one then is sent, too."""
CONTEXT = '{"error": {"type": "exceed_context_size_error", "code": 400}}'
FILTER = '{"error": {"code": "content_filter"}}'
PARAMETER = '{"error": {"message": "Unsupported value", "param": "max_tokens"}}'
UNPAID = '{"error": {"code": "insufficient_quota"}}'


def status(code, **more):
    return {"kind": "status", "status": code, **more}


# What happens: rule of the simulator, tried again, end, cause
FAULTS = {
    "HTTP 400": (status(400), False, REFUSED, "http 400"),
    "HTTP 400, whose text says that something is too long": (
        status(400, body='{"error": {"msg": "That is too long for me"}}'),
        False,
        TOO_LONG,
        "http 400",
    ),
    "HTTP 400, whose code says that the prompt exceeds the context": (
        status(400, body=CONTEXT),
        False,
        "truncated",
        "context",
    ),
    "HTTP 400, a content filter refuses the prompt": (status(400, body=FILTER), False, "refused", "filter"),
    "HTTP 400 or 422 about a parameter, before any request with the same sampler was answered": (
        status(400, body=PARAMETER),
        False,
        f"{ERROR}, model disabled",
        "http 400: max_tokens",
    ),
    "HTTP 401": (status(401), False, f"{ERROR}, endpoint disabled", "http 401"),
    "HTTP 402": (status(402), False, f"{ERROR}, endpoint disabled", "http 402"),
    "HTTP 403": (status(403), False, f"{ERROR}, model disabled", "http 403"),
    "HTTP 403 that mentions moderation": (
        status(403, body='{"error": {"message": "Your input was flagged"}}'),
        False,
        REFUSED,
        "http 403",
    ),
    "HTTP 404": (status(404), False, f"{ERROR}, model disabled", "http 404"),
    "HTTP 405": (status(405), False, f"{ERROR}, model disabled", "http 405"),
    "HTTP 407": (status(407), False, f"{ERROR}, endpoint disabled", "http 407"),
    "HTTP 410": (status(410), False, f"{ERROR}, model disabled", "http 410"),
    **{
        f"HTTP {code}": (status(code), True, ERROR, f"http {code}") for code in sorted(reply._CAPACITY_STATUS)
    },
    "HTTP 413": (status(413), False, TOO_LONG, "http 413"),
    "HTTP 418, or any other 4xx": (status(418), False, REFUSED, "http 418"),
    "HTTP 422": (status(422), False, REFUSED, "http 422"),
    "HTTP 429 with `Retry-After` in seconds": (status(429, retry_after="0"), True, ERROR, "http 429"),
    "HTTP 429 with `Retry-After` as a date": (status(429, retry_after="date+0"), True, ERROR, "http 429"),
    "HTTP 429, the account has no money left": (
        status(429, body=UNPAID),
        False,
        f"{ERROR}, endpoint disabled",
        "http 429",
    ),
    "HTTP 500": (status(500), True, ERROR, "http 500"),
    "HTTP 500 with a text": (status(500, body="oh no"), True, ERROR, "http 500"),
    "HTTP 529": (status(529), True, ERROR, "http 529"),
    "a redirect, also one to itself": (
        {"kind": "redirect_loop"},
        False,
        f"{ERROR}, endpoint disabled",
        "redirect",
    ),
    "the connection is reset before the reply": ({"kind": "reset"}, True, ERROR, "reset"),
    "the connection is reset amid the headers": ({"kind": "reset_head"}, True, ERROR, "reset"),
    "the connection is reset amid the body": ({"kind": "reset_body"}, True, ERROR, "cut reply"),
    "the body is shorter than its content-length": ({"kind": "cut_body"}, True, ERROR, "cut reply"),
    "the JSON is cut, and content-length fits it": ({"kind": "bad_json"}, True, ERROR, "invalid json"),
    "no reply ever comes": ({"kind": "hang"}, True, ERROR, "timeout"),
    "the reply drips in too slowly": ({"kind": "drip", "seconds": 0.05}, True, ERROR, "timeout"),
    "the reply drips in, but in time": ({"kind": "drip", "seconds": 0.001}, False, "answer", ""),
    "an HTML page with status 200": (
        {"kind": "wrong_type"},
        True,
        f"{ERROR}, model disabled",
        "invalid json",
    ),
    "valid JSON of the wrong shape": ({"kind": "wrong_shape"}, True, ERROR, "wrong shape"),
    "no choices": ({"kind": "empty_choices"}, True, REFUSED, "no choices"),
    "the content is null": ({"kind": "null_content"}, False, "answer that cannot be read", ""),
    "the content is a list of parts": ({"kind": "parts_content"}, False, "answer", ""),
    "usage is missing": ({"kind": "missing_usage"}, False, "answer", ""),
    "NaN among the numbers of the reply's JSON": ({"kind": "nan"}, False, "answer", ""),
    "the same choice twice": ({"kind": "duplicate"}, False, "answer", ""),
    "tool calls that nobody asked for": ({"kind": "tool_calls"}, False, "answer that cannot be read", ""),
    "another model's name in the reply": ({"kind": "wrong_model"}, False, "answer", ""),
    "100 MB of body": ({"kind": "huge", "megabytes": 100}, False, ERROR, "too large"),
    "a small body that unpacks to 100 MB": (
        {"kind": "gzip_bomb", "megabytes": 100},
        False,
        ERROR,
        "too large",
    ),
}


def error(code):
    return {"kind": "stream_error", "status": code}


STREAMED = {
    "a stream ends regularly, but without a finish reason and without its closing event": (
        {"kind": "stream_end"},
        True,
        ERROR,
        "cut reply",
    ),
    "a stream's connection breaks before a finish reason or closing event": (
        {"kind": "cut_body"},
        True,
        ERROR,
        "cut reply",
    ),
    "a stream stands still": ({"kind": "stream_stall"}, True, ERROR, "timeout"),
    "a stream with a finish reason but without its closing event": ({"kind": "no_done"}, False, "answer", ""),
    "a stream reports overload": (error(529), True, ERROR, "http 529"),
    "a stream reports a rate limit": (error(429), True, ERROR, "http 429"),
    "a stream reports an error of the server": (error(500), True, ERROR, "http 500"),
    "a stream reports an error in the request": (error(400), False, REFUSED, "http 400"),
}
"""As above, with `stream: true`. All others end as without."""

STATUS = {
    "answer": Status.CORRECT,
    "answer that cannot be read": Status.INVALID,
    "truncated": Status.TRUNCATED,
    "refused": Status.REFUSED,
}
"""As graded where the right answer was sent."""

# The same without a simulator that could cause it: what happens, tried again, end, cause
ELSEWHERE = {
    "nothing listens at the address, or no connection is made within 30 seconds (or `timeout`, if shorter)": (
        True,
        f"{ERROR}, endpoint disabled",
        "connect",
    ),
    "the host has no address": (True, f"{ERROR}, endpoint disabled", "dns"),
    "TLS fails": (True, f"{ERROR}, endpoint disabled", "tls"),
    "the certificate is not accepted": (False, f"{ERROR}, endpoint disabled", "tls"),
    "a proxy refuses to connect to the endpoint, with HTTP 403 or 407": (
        False,
        f"{ERROR}, endpoint disabled",
        "proxy",
    ),
    "the address is not an HTTP address": (False, f"{ERROR}, endpoint disabled", "address"),
    "the finish reason is `error`, `abort` or another error": (True, ERROR, "broken off"),
    "the finish reason names a content filter": (False, "refused", ""),
    "the finish reason names a limit": (False, "truncated", ""),
    "the finish reason is a word that evalcube does not know": (False, "answer, `unknown end: WORD`", ""),
    "a whole reply without a finish reason, of an endpoint that never gave one": (
        False,
        "answer, `unknown end: (none)`",
        "",
    ),
    "a whole reply without a finish reason, of an endpoint that gave one before": (True, ERROR, "cut reply"),
    "any other HTTP status from 500 to 599": (True, ERROR, "http STATUS"),
    "a complete stream with an event that the API does not define": (False, "answer, without the event", ""),
    "an incomplete stream with an event that the API does not define": (
        True,
        ERROR,
        "http STATUS` if it has an error message, else `cut reply",
    ),
    "any other `event: error`, or an object with `error`, in a stream": (True, ERROR, "http STATUS"),
    "more refusals than a fifth of a model's trials": (False, ERROR, "more than a fifth refused"),
    "headers that are not valid HTTP, or too large": (True, ERROR, "cut reply"),
    "a mistake in evalcube itself": (False, ERROR, "client"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_run__fault(engine_for, remote, store, jobs, case):
    rule, again, end, cause = FAULTS[case]
    attempts = 3 if again else 1
    # It takes as many that fail alike; one about a parameter ends its sampler.
    count = retry.FIRST_REQUESTS if "disabled" in end and "max_tokens" not in cause else 1
    remote.faults(rule)
    engine = engine_for(timeout=0.25 if cause == "timeout" else 60.0)

    results = engine.run("m", [with_truth(job) for job in jobs(count, ability=40.0, tokens=2, growth=0.0)])

    assert {(result.cause, result.attempts) for result in results} == {(cause, attempts)}
    requests = attempts * (2 if end in ALL_FAIL else count)
    assert remote.stats()["requests"] == requests == engine.stats.sent
    assert sum(engine.stats.retries.values()) == requests - requests // attempts
    if end.startswith(ERROR) or end in ALL_FAIL:
        assert {result.kind for result in results} == {"failed"}
        assert set(engine.stats.failures) == {cause}
        assert not store.records
        assert (remaining(engine, remote, jobs) == 0) == ("disabled" in end)
    else:
        assert {result.kind for result in results} == {"stored"}
        (record,) = store.records.values()
        assert graded(record) is STATUS[end]


@pytest.mark.parametrize("case", [case for case, row in FAULTS.items() if row[2] in ALL_FAIL])
def test_run__a_refusal_that_comes_again_where_others_are_answered_is_an_outcome(
    engine_for, remote, store, jobs, case
):
    rule, _, end, _ = FAULTS[case]
    remote.faults({**rule, "share": 0.1})

    results = engine_for().run("m", [with_truth(job) for job in jobs(40, ability=40.0, tokens=2, growth=0.0)])

    ends = [graded(record) for record in store.records.values()]
    refused = [result for result in results if result.cause == "refused"]
    assert kinds(results) == ["stored"] * 40
    assert ends.count(Status.CORRECT) == 40 - len(refused) < 40
    assert ends.count(Status.TRUNCATED if end == TOO_LONG else Status.REFUSED) == len(refused)
    assert remote.stats()["most_attempts"] == max(result.attempts for result in results)


def with_truth(job):
    return Job(job.digest, job.body, {HEADER: encode(Truth("7"))})


def graded(record):
    parse = re.compile(r"Answer: (\d+)").search
    return grade_trial(
        read_reply(Record.decode(record)),
        0.0,
        lambda text: None if (found := parse(text)) is None else found[1],
        lambda answer: answer == "7",
    ).status


def remaining(engine, remote, jobs):
    """Requests that the endpoint gets of another job, now without faults."""
    remote.faults()
    before = remote.stats()["requests"]
    engine.run("m", jobs(1, label="later"))
    return remote.stats()["requests"] - before


def test_faults__all_kinds_are_tried_here():
    assert {rule["kind"] for rule, *_ in FAULTS.values()} == set(KINDS) - STREAM_KINDS


def rows():
    """Rows of the table on the page; statuses with equal ends share one."""
    lines, alike = [], defaultdict(list)
    for case, entry in {**FAULTS, **STREAMED, **ELSEWHERE}.items():
        again, end, cause = entry[-3:]
        if case == cause.upper():
            alike[again, end].append(cause.removeprefix("http "))
        else:
            lines.append(doc_row(case, again, end, cause))
    return lines + [
        doc_row(f"HTTP {', '.join(codes)}", *ends, "http STATUS") for ends, codes in alike.items()
    ]


def test_document__has_a_row_for_each_fault():
    text = DOC.read_text(encoding="utf-8")

    missing = [row for row in rows() if row not in text]
    assert not missing, "\n".join(missing)


def doc_row(case, again, end, cause):
    if end.startswith(ERROR):
        return f"| {case} | `{cause}`{end.removeprefix(ERROR)} | {'yes' if again else 'by the next run'} |"
    return f"| {case} | {end}: `{cause}` |" if cause and end not in ALL_FAIL else f"| {case} | {end} |"


def test_document__names_every_cause_in_the_code():
    text = DOC.read_text(encoding="utf-8")
    text += "".join(f"`http {code}`" for code in re.findall(r"\b[45]\d\d\b", text))
    causes = named_causes()

    assert {"timeout", "invalid json", "too large", "dns", "context"} <= causes
    assert {cause for cause in causes if f"`{cause}`" not in text and not cause.startswith("http 5")} == set()


def named_causes():
    """First texts of all replies that the code makes, and all statuses that it tells apart."""
    found = set()
    for module in (reply, wire):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reply" and len(node.args) > 1:
                found |= {node.args[1].value} if isinstance(node.args[1], ast.Constant) else set()
    codes = reply._CAPACITY_STATUS | reply._FATAL_STATUS | reply._REFUSING_STATUS
    return found | retry._OVERLOAD | {f"http {code}" for code in codes}


def test_run__a_model_that_is_not_there_leaves_the_others_alone(remote, store, jobs):
    endpoints = {name: Endpoint(name, remote.base_url, connections=1) for name in ("gone", "m")}
    engine = Engine(endpoints, store)
    remote.faults(status(404, model="gone"))
    try:
        gone = engine.run("gone", jobs(1000, name="gone"))
        there = engine.run("m", jobs(20))
    finally:
        engine.close()

    assert {(result.kind, result.cause, result.detail) for result in gone} == {
        ("failed", "http 404", "a simulated fault")
    }
    assert remote.stats()["models"] == {"gone": 2, "m": 20}
    assert kinds(there) == ["stored"] * 20


def test_run__a_refused_parameter_ends_its_sampler_after_one_request_and_no_other(remote, store, jobs):
    endpoints = {name: Endpoint(name, remote.base_url, connections=4) for name in ("new", "m")}
    engine = Engine(endpoints, store)
    remote.faults(status(400, model="new", body=PARAMETER, times=1))
    try:
        refused = engine.run("new", [job._replace(sampler="long") for job in jobs(1000, name="new")])
        later = engine.run("new", [job._replace(sampler="long") for job in jobs(9, "more", name="new")])
        other = engine.run("new", [job._replace(sampler="short") for job in jobs(10, "short", name="new")])
        there = engine.run("m", jobs(20))
    finally:
        engine.close()

    assert {(result.kind, result.cause, result.detail) for result in refused + later} == {
        ("failed", "http 400: max_tokens", "Unsupported value")
    }
    assert kinds(other) == ["stored"] * 10
    assert kinds(there) == ["stored"] * 20
    assert remote.stats()["models"] == {"new": 11, "m": 20}


def test_run__a_parameter_that_was_taken_before_is_asked_for_once_more(remote, store, jobs):
    engine = Engine({"m": Endpoint("m", remote.base_url, connections=1)}, store)
    try:
        engine.run("m", jobs(1))
        remote.faults(status(400, body=PARAMETER, times=1))
        results = engine.run("m", jobs(5, "later"))
    finally:
        engine.close()

    assert kinds(results) == ["stored"] * 5
    assert sorted(result.attempts for result in results) == [1, 1, 1, 1, 2]


def test_run__a_key_that_is_wrong_ends_all_models_at_the_endpoint(remote, store, jobs):
    endpoints = {name: Endpoint(name, remote.base_url, connections=1) for name in ("a", "b")}
    engine = Engine(endpoints, store)
    remote.faults(status(401))
    try:
        first = engine.run("a", jobs(500, name="a"))
        second = engine.run("b", jobs(500, name="b"))
    finally:
        engine.close()

    assert remote.stats()["requests"] == 2
    assert {result.cause for result in first + second} == {"http 401"}


@pytest.fixture
def start():
    """Starts a simulator at a port of the caller's choosing; all are killed in the end."""
    with ExitStack() as stack:

        def begin(port):
            command = [sys.executable, "-m", "tests.simulator", "--port", str(port)]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, cwd=DOC.parents[1])
            )
            stack.callback(process.kill)
            assert process.stdout.readline().startswith(b"listening")
            return process

        yield begin


@pytest.mark.cluster
def test_run__a_simulator_that_restarts_costs_retries_only(store, jobs, wait_until, start):
    port = free_port()
    endpoint = Endpoint("m", f"http://127.0.0.1:{port}/v1", connections=8, retries=9, backoff_base=0.1)
    process = start(port)
    engine = Engine({"m": endpoint}, store)
    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(engine.run, "m", jobs(200, latency=0.1))
        wait_until(lambda: len(store.records) > 30)
        process.kill()
        process.wait()
        start(port)
        results = block.result(PATIENCE)
    engine.close()

    assert kinds(results) == ["stored"] * 200
    assert sum(engine.stats.retries.values()) > 0
    assert set(engine.stats.retries) <= {"connect", "reset", "cut reply"}


ANSWERS = {
    "a header without end": (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n", "cut reply"),
    "headers without end": (
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: y\r\n" % i for i in range(5000)) + b"\r\n",
        "cut reply",
    ),
    "no HTTP": (b"220 mail.example.com ESMTP\r\n\r\n", "cut reply"),
    "finish reason error": (http(GOOD.replace(b'"stop"', b'"error"')), "broken off"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_run__answer_of_another_server(store, jobs, case):
    answer, cause = ANSWERS[case]
    with Echo(lambda _: answer) as echo:
        engine = Engine(
            {"m": Endpoint("m", echo.base_url, retries=1, backoff_base=0.01, timeout=60.0)}, store
        )
        (result,) = engine.run("m", jobs(1))
        engine.close()

    assert (result.kind, result.cause, result.attempts) == ("failed", cause, 2)
