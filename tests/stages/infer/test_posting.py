"""What a connection carries, one request after another."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp
import pytest

from evalcube.stages.infer.deadline import Deadline
from evalcube.stages.infer.posting import Poster
from tests.stages.infer.echo import http

Answer = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]
EARLY = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
LARGE = b"x" * 20_000_000


class Server:
    """Reads each request whole, or no more than `most` bytes of it, and has a test's function answer."""

    def __init__(self, answer: Answer, most: int = 1 << 30) -> None:
        self.connections: list[asyncio.Task[None]] = []
        self.heads: list[bytes] = []
        self._answer, self._most = answer, most

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = await reader.readexactly(min(length, self._most))
                self.heads.append(head)
                await self._answer(writer, body)
        writer.transport.abort()

    async def end(self) -> None:
        for task in self.connections:
            task.cancel()
        await asyncio.gather(*self.connections)


async def echo(writer, body):
    writer.write(http(body))


async def whole(status, _, content):
    return status, await content.read()


async def head_only(status, *_):
    return status


def with_poster(server, use, seconds=60.0, scheme="http"):
    """What `use` returns, called with a poster whose requests a server answers."""

    async def run():
        async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            timeout = aiohttp.ClientTimeout(seconds, connect=seconds)
            async with aiohttp.TCPConnector(limit=0) as connections:
                url = f"{scheme}://127.0.0.1:{port}/v1/x?y=1"
                result = await use(
                    Poster(connections, timeout, Deadline(timeout.total), url, {"a": "b"}, None)
                )
            await server.end()
            return result

    return asyncio.run(run())


def test_post__keeps_its_connection_and_no_header_of_another_request():
    async def use(poster):
        return [await poster.post(b"0", {"own": "1"}, whole), await poster.post(b"11", None, whole)]

    server = Server(echo)
    assert with_poster(server, use) == [(200, b"0"), (200, b"11")]
    assert len(server.connections) == 1
    first, second = server.heads
    assert first.startswith(b"POST /v1/x?y=1 HTTP/1.1\r\n")
    assert b"a: b\r\n" in first
    assert b"own: 1\r\n" in first
    assert first.replace(b"own: 1\r\n", b"") == second.replace(b"Length: 2", b"Length: 1")


def test_post__leaves_a_connection_with_an_unread_body():
    async def use(poster):
        return [await poster.post(LARGE, None, head_only), await poster.post(b"1", None, whole)]

    server = Server(echo)
    assert with_poster(server, use) == [200, (200, b"1")]
    assert len(server.connections) == 2


def test_post__a_late_reply_is_not_the_next_ones():
    async def late_at_first(writer, body):
        await asyncio.sleep(1.0 if body == b"0" else 0.0)
        writer.write(http(body))

    async def use(poster):
        with pytest.raises(TimeoutError):
            await poster.post(b"0", None, whole)
        await asyncio.sleep(0.8)
        return await poster.post(b"1", None, whole)

    server = Server(late_at_first)
    assert with_poster(server, use, seconds=0.5) == (200, b"1")
    assert len(server.connections) == 2


def test_post__one_that_nobody_asked_for_is_not_the_next_ones():
    async def twice(writer, body):
        writer.write(http(body))
        await asyncio.sleep(0.1)
        writer.write(http(b"another"))

    async def use(poster):
        first = await poster.post(b"0", None, whole)
        await asyncio.sleep(0.3)
        return [first, await poster.post(b"1", None, whole)]

    assert with_poster(Server(twice), use) == [(200, b"0"), (200, b"1")]


def test_post__passes_over_what_comes_before_the_reply():
    async def hinted(writer, body):
        writer.write(EARLY + EARLY + http(body))

    assert with_poster(Server(hinted), lambda poster: poster.post(b"0", None, whole)) == (200, b"0")


def test_post__sees_a_refusal_of_what_was_not_taken():
    async def refuse(writer, _):
        writer.write(http(b"too much", 413, "connection: close"))
        await asyncio.sleep(5.0)  # and reads no more

    server = Server(refuse, most=1000)
    assert with_poster(server, lambda poster: poster.post(LARGE, None, whole), 4.0) == (413, b"too much")


def test_post__sends_no_header_with_another_in_it():
    async def use(poster):
        with pytest.raises(ValueError, match="header"):
            await poster.post(b"0", {"own": "1\r\nother: 2"}, whole)

    server = Server(echo)
    with_poster(server, use)
    assert not server.heads
    assert len(server.connections) == 1


def test_post__tells_a_connection_that_does_not_come_about_from_a_late_reply():
    def post(scheme):
        server = Server(lambda *_: asyncio.sleep(60))
        with pytest.raises(TimeoutError) as late:
            with_poster(server, lambda poster: poster.post(b"0", None, whole), 0.2, scheme)
        return late.type

    assert post("http") is TimeoutError
    assert post("https") is aiohttp.ConnectionTimeoutError  # no TLS comes
