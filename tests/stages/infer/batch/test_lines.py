"""Lines of batches: what is sent, what is made of anything that comes back, and that every request ends once."""

import asyncio
import json
import string
import time
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalcube.stages.infer.batch.lines import (
    Batch,
    LineSplitter,
    Note,
    identifier,
    long_line,
)
from evalcube.stages.infer.batch.protocols import OPENAI, order, read_batch, read_line, request_line
from evalcube.stages.infer.batch.queue import BatchQueue
from evalcube.stages.infer.batch.wire import BatchSender
from evalcube.stages.infer.endpoint import Batching, Endpoint
from evalcube.stages.infer.jobs import Job, JobGroup, SharedJob, Stats
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.infer.writer import Writer
from evalcube.stages.reply.forms import Record
from tests.cases import with_cases
from tests.stages.infer.batch.batching import Book
from tests.stages.infer.conftest import Memory
from tests.waiting import PATIENCE

DIGESTS = [letter * 64 for letter in "abc"]
GOOD = {"choices": [{"message": {"content": "4"}}]}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["custom_id", "response", "error", "body", "status_code", "code", "message", "choices", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
answers = st.builds(
    lambda name, status, body, error: {
        "custom_id": name,
        "response": {"status_code": status, "body": body},
        "error": error,
    },
    st.sampled_from([*DIGESTS, "f" * 64, "", None]),
    st.sampled_from([200, 200, 200, 400, 401, 404, 429, 500, 0, -1, True, 10**30, None, "200"]),
    st.just(GOOD) | documents,
    documents,
)
lines = st.binary(max_size=40) | st.builds(
    lambda document: json.dumps(document).encode(), answers | answers | documents
)


class Fed:
    """A sender whose batches end with whatever output the test wants."""

    def __init__(self, output, cut):
        self.output, self.cut = output, cut
        self._limit, self._api = 100_000, "chat"
        self.protocol = OPENAI

    async def upload(self, token, lines):  # noqa: ARG002 - as `BatchSender`
        return Reply(RetryClass.FINAL), "file"

    async def create(self, note, lines):  # noqa: ARG002 - as `BatchSender`
        return Reply(RetryClass.FINAL), Batch("batch", "completed", output="out")

    async def download(self, file, take, most):  # noqa: ARG002 - as `BatchSender`
        splitter = LineSplitter(self._limit)
        pieces = [self.output[start : start + self.cut] for start in range(0, len(self.output), self.cut)]
        for data, whole in chain(*map(splitter.feed, pieces), splitter.rest()):
            line = self._line(data, whole=whole)
            if line is not None:
                take(line)
        return Reply(RetryClass.FINAL)

    async def close(self):
        pass

    _line = BatchSender._line


class Counting(JobGroup):
    """A block that counts how often each of its jobs ends."""

    def __init__(self, size):
        super().__init__(size)
        self.ends = [0] * size

    def settle(self, index, result):
        self.ends[index] += 1
        super().settle(index, result)


async def through_a_queue(output, cut):
    store = Memory()
    writer = Writer(store, asyncio.get_running_loop())
    terms = Batching(poll=0.0, patience=0.0)
    endpoint = Endpoint("m", "http://localhost/v1", batch=terms, retries=1, backoff_base=0.0)
    batch_queue = BatchQueue(endpoint, Stats(), writer, Book(store))
    await batch_queue._context.sender.close()
    batch_queue._context = batch_queue._context._replace(sender=Fed(output, cut))
    block, register = Counting(len(DIGESTS)), {}
    for index, digest in enumerate(DIGESTS):
        shared = SharedJob(Job(digest, b"{}"), register)
        shared.add(block, index)
        batch_queue.put("m", shared)
    batch_queue.resize(1)
    try:
        results = await asyncio.wait_for(asyncio.wrap_future(block.future), PATIENCE)
        await asyncio.sleep(0)
    finally:
        await batch_queue.close()
        await writer.close(1)
    return results, block.ends, register, store.records


@given(st.lists(lines, max_size=8), st.integers(1, 200))
@example([b'{"custom_id":"' + b"a" * 64 + b'","response":{"status_code":200,"body":' + b"[" * 9000], 50)
def test_batch_queue__whatever_comes_back_every_request_ends_once(rows, cut):
    results, ends, register, records = asyncio.run(through_a_queue(b"\n".join(rows), cut))

    assert ends == [1] * len(DIGESTS)
    assert not register
    stored = {digest for digest, result in zip(DIGESTS, results, strict=True) if result.kind == "stored"}
    assert records.keys() == stored
    for data in records.values():
        Record.decode(data)
    for result in results:
        assert result.kind == "stored" or result.cause


@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)),
    st.integers(1, 40),
    st.integers(1, 20),
)
@example([b"as long as", b"longer than"], 40, len(b"as long as"))
def test_line_splitter__lines_are_the_same_however_they_are_cut(rows, cut, limit):
    splitter, data, found = LineSplitter(limit), b"\n".join(rows), []
    for start in range(0, len(data), cut):
        found += splitter.feed(data[start : start + cut])
    found += splitter.rest()

    expected = [row for row in rows if row.strip()]
    assert [row for row, whole in found if whole] == [row for row in expected if len(row) <= limit]
    assert [whole for _, whole in found] == [len(row) <= limit for row in expected]


def test_line_splitter__keeps_little_of_a_line_that_never_ends():
    splitter = LineSplitter(100_000)
    for _ in range(1000):
        assert not list(splitter.feed(b"x" * 10_000))
    ((kept, whole),) = splitter.rest()
    assert (len(kept) < 10_000, whole) == (True, False)


def test_request_line__is_the_request_with_what_batches_need():
    line = request_line(Job("ab", b'{"model":"m"}', {"x-own": 'a"b'}), "completions")

    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "custom_id": "ab",
        "method": "POST",
        "url": "/v1/completions",
        "headers": {"x-own": 'a"b'},
        "body": {"model": "m"},
    }
    assert order(Note("t", "m", frozenset(), "f"), "chat", "24h") == {
        "input_file_id": "f",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"evalcube": "t"},
    }


@with_cases("body", [{"a": "ü\n"}, {"a": "\ud800"}, {"a": float("nan")}, [1, 2], "no JSON", None])
def test_read_line__keeps_the_body_as_it_was(body):
    row = {"custom_id": "a", "response": {"status_code": 500, "body": body}}
    line = read_line(json.dumps(row).encode(), time.time(), "chat")

    assert (line.digest, line.status, line.reply.cause) == ("a", 500, "http 500")
    if isinstance(body, (dict, list)):
        assert str(json.loads(line.body)) == str(body)
    else:
        assert line.body == (body or "").encode()


def test_read_line__an_error_without_a_response_is_worth_another_attempt():
    row = {"custom_id": "a", "response": None, "error": {"code": "oops", "message": "no\nluck"}}
    reply = read_line(json.dumps(row).encode(), 0.0, "chat").reply
    assert (reply.retry_class, reply.cause, reply.detail) == (RetryClass.RETRY, "batch error", "no luck")

    row["error"]["code"] = "batch_expired"
    assert read_line(json.dumps(row).encode(), 0.0, "chat") is None


def test_long_line__names_the_request_that_it_belongs_to():
    head = b'{"id": "x", "custom_id": "' + DIGESTS[0].encode() + b'", "resp'
    assert long_line(head, 5).digest == DIGESTS[0]
    assert long_line(head, 5).reply.cause == "too large"
    assert long_line(head[:60], 5) is None


@given(documents)
def test_read_batch__anything_is_a_batch_or_none(document):
    batch = read_batch(document)
    assert batch is None or (batch.id and isinstance(batch.over, bool))


def test_read_batch__says_what_was_wrong():
    errors = {"data": [{"code": "x", "message": "line 1\nis bad"}]}
    batch = read_batch({"id": "b", "status": "failed", "errors": errors, "metadata": {"evalcube": "t"}})
    assert (batch.over, batch.token) == (True, "t")
    assert batch.missing == Reply(RetryClass.FAILED, "batch failed", "line 1 is bad")


@pytest.mark.parametrize("name", ["batch_1", "batches/x-1", "file-A:b.c"])
def test_identifier__takes_what_endpoints_have(name):
    assert identifier(name) == name


@with_cases("name", ["", "../x", "a/../b", "/x", "a b", "a?b", "a#b", "x" * 600, "ü", 7, None])
def test_identifier__refuses_what_would_change_an_address(name):
    assert identifier(name) == ""


tokens = st.text(string.hexdigits.lower()[:16], min_size=8, max_size=64)


@given(
    tokens,
    st.text(max_size=9),
    st.frozensets(st.text(max_size=9)),
    st.sampled_from(["", "f-1"]),
    st.sampled_from(["", "b_2"]),
)
def test_note__comes_back_as_it_was(token, model, digests, file, batch):
    note = Note(token, model, digests, file, batch)
    assert Note.decode(token, note.encode()) == note


@given(tokens, st.binary(max_size=40) | documents.map(lambda document: json.dumps(document).encode()))
def test_note__anything_else_is_none(token, data):
    assert Note.decode(token, data) is None
