"""What endpoints send is worked off a little at a time, and how much of it there may be: counted, not timed."""

import asyncio
import time
import zlib
from contextlib import suppress

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from evalcube.stages.infer import turns as module
from evalcube.stages.infer.batch import wire
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.keys import MASK, KeyMask
from evalcube.stages.infer.sse import TooLargeError
from evalcube.stages.infer.streams import ReplyStream
from evalcube.stages.infer.turns import PIECE_BYTES, LoopShare, LoopTurns, Pieces
from tests.growth import grows_in_proportion
from tests.stages.infer.batch.batching import batching
from tests.stages.infer.conftest import make_jobs
from tests.stages.infer.echo import Echo, http
from tests.stages.infer.test_key_mask import KEY, SECRET, clean
from tests.waiting import PATIENCE

GZIP = "content-encoding: gzip"


def every_piece_is_a_turn(monkeypatch):
    monkeypatch.setattr(module, "_TURN_SECONDS", 0.0)


def body_of(data):
    """A body that has come whole."""
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), 1 << 30, loop=loop)
    content.feed_data(data)
    content.feed_eof()
    return content


def packed(data, times):
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join([*(packer.compress(data) for _ in range(times)), packer.flush()])


def test_pieces__are_small_and_others_have_a_turn_between_any_two(monkeypatch):
    every_piece_is_a_turn(monkeypatch)
    data, others = bytes(range(256)) * 1000, []

    async def read():
        turns = LoopTurns(LoopShare(), time.monotonic() + PATIENCE)
        pieces, passed = [], []
        async for piece in Pieces(body_of(data), turns):
            asyncio.get_running_loop().call_soon(others.append, piece)
            pieces.append(piece)
            passed.append(len(others))
        return pieces, passed

    pieces, passed = asyncio.run(read())

    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert passed == list(range(len(pieces)))


def test_pause__raises_where_the_reply_is_late_though_more_of_it_is_there(monkeypatch):
    every_piece_is_a_turn(monkeypatch)

    async def read():
        pieces = []
        with suppress(TimeoutError):
            async for piece in Pieces(
                body_of(bytes(1 << 20)), turns := LoopTurns(LoopShare(), time.monotonic() + 60)
            ):
                pieces.append(piece)
                if len(pieces) == 3:
                    turns.due = time.monotonic()
        return len(pieces)

    assert asyncio.run(read()) == 3


def test_pause__can_be_cancelled(monkeypatch):
    every_piece_is_a_turn(monkeypatch)

    async def read():
        task = asyncio.create_task(
            LoopTurns(LoopShare(lambda: 10**6), time.monotonic() + PATIENCE).take_turn(10**6)
        )
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(read())


@pytest.mark.parametrize(("late", "rests"), [(0.0, [0.04]), (0.02, [0.04, 0.75])])
def test_rest__is_as_long_as_there_are_neighbours_where_the_loop_is_late(monkeypatch, late, rests):
    sleeps, now = [], [100.0]

    async def sleep(seconds):
        sleeps.append(round(seconds, 6))
        now[0] += seconds + late

    async def rest():
        share = LoopShare(lambda: 75)
        monkeypatch.setattr(module.asyncio, "sleep", sleep)
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
        await share.rest(0.01, asyncio.get_running_loop().time() + PATIENCE)

    asyncio.run(rest())

    assert sleeps == rests


def test_rest__of_one_model_is_one_at_a_time(monkeypatch):
    resting, most = [], []

    async def sleep(_):
        resting.append(1)
        most.append(len(resting))
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, None)
        await future
        resting.pop()

    async def rest():
        share = LoopShare(lambda: 3)
        monkeypatch.setattr(module.asyncio, "sleep", sleep)
        await asyncio.gather(*(share.rest(0.01, time.monotonic() + PATIENCE) for _ in range(9)))

    asyncio.run(rest())

    assert max(most) == 1


@pytest.mark.parametrize(
    ("line", "most"),
    [(b":\n", 101_000), (b"\n", 101_000), (b"event: x\n\n", 101_000), (b"data: {}\n\n", 400_000)],
)
def test_reply_stream__lines_that_say_nothing_are_bounded(line, most):
    stream, lines = ReplyStream("chat", 400_000), 0
    piece = line * (1000 // line.count(b"\n"))

    with suppress(TooLargeError):
        while lines < 10_000_000:
            stream.feed(piece, 0.0)
            lines += 1000

    assert lines <= most


def test_reply_stream__a_stream_of_hours_with_a_sign_of_life_each_second_is_whole():
    stream = ReplyStream("chat", 2_000_000)
    token = b'event: chunk\nid: 7\n: alive\ndata: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

    for _ in range(50):  # twice what a reply may have
        assert not stream.feed(token * 1000, 1.0)

    assert stream.feed(b"data: [DONE]\n\n", 1.0)


@pytest.mark.parametrize("stream", [b": talk\n" * 10_000, b"\n" * 10_000, b"data: {}\n\n" * 10_000])
def test_engine__the_timeout_holds_whatever_comes_meanwhile(stream, store):
    bomb = http(packed(stream, 400), 200, "content-type: text/event-stream", GZIP)

    with Echo(lambda _: bomb) as echo:
        engine = ask_hostile(echo, store)
        results = engine.run("m", make_jobs(1))
        engine.close()

    assert results[0].cause in ("timeout", "too large")


def ask_hostile(echo, store):
    endpoint = Endpoint("m", echo.base_url, retries=0, timeout=1.0, stream=True)
    return Engine({"m": endpoint}, store)


@pytest.mark.parametrize("line", [b"{}\n", b"x\n", b'{"custom_id":"1"}\n'])
def test_download__reads_no_more_lines_than_the_batch_has_requests_and_some(line, store, monkeypatch):
    lines, read_line = [], wire.read_line
    monkeypatch.setattr(wire, "read_line", lambda *arguments: lines.append(1) or read_line(*arguments))
    answers = {
        b"files": http(b'{"id":"file-1"}'),
        b"batches": http(b'{"id":"batch-1","status":"completed","output_file_id":"out-1"}'),
        b"files/out-1/content": http(packed(line * 10_000, 1000), 200, GZIP),
    }

    with (
        Echo(lambda request: answers[request.split()[1].removeprefix(b"/v1/")]) as echo,
        batching(echo, store) as engine,
    ):
        results = engine.run("m", make_jobs(2))

    assert {result.cause for result in results} == {"too many lines"}
    assert len(lines) <= 2 + wire._STRANGERS


def test_download__blank_lines_are_no_data(store):
    answers = {
        b"files": http(b'{"id":"file-1"}'),
        b"batches": http(b'{"id":"batch-1","status":"completed","output_file_id":"out-1"}'),
        b"files/out-1/content": http(packed(b"\n" * 100_000, 1000), 200, GZIP),
    }

    with (
        Echo(lambda request: answers[request.split()[1].removeprefix(b"/v1/")]) as echo,
        batching(echo, store, timeout=1.0, retries=0) as engine,
    ):
        results = engine.run("m", make_jobs(2))

    assert {result.cause for result in results} == {"timeout"}


PIECES = {
    "parts": f"{SECRET[:12]}..{SECRET[20:31]} ",
    "short parts": f"{SECRET[:7]}.{SECRET[9:16]} ",
    "keys": KEY,
    "percents": "%41",
    "backslashes": "\\",
    "escaped": "".join(f"\\u{ord(character):04x}" for character in KEY),
    "hexadecimal": SECRET.encode().hex().upper()[:17],
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_clean__takes_time_in_proportion_to_the_text(piece):
    mask, unit = KeyMask(KEY), piece.encode()

    assert grows_in_proportion(lambda size: clean(mask, unit * (size // len(unit))), 1_000_000)


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_steps__each_is_of_some_kilobytes(piece):
    body = piece.encode() * (500_000 // len(piece))

    steps = list(KeyMask(KEY).steps(body))

    assert len(steps) >= len(body) // 40_000


def test_clean__finds_a_key_across_the_end_of_a_step():
    mask = KeyMask(KEY)
    for before in range(32_768 - len(KEY) - 2, 32_768 + 2):
        assert clean(mask, b"." * before + KEY.encode() + b".") == b"." * before + MASK + b"."
