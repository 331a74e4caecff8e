"""Exchanges with an endpoint's files and batches: upload, create, poll, find, download."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from evalcube.stages.infer.batch.lines import (
    WRAPPING_BYTES,
    Batch,
    Line,
    LineSplitter,
    identifier,
    long_line,
    order,
    read_batch,
    read_line,
)
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.keys import KeyHolder
from evalcube.stages.infer.reply import Reply, RetryClass, classify
from evalcube.stages.infer.wire import Connector, Sender, read_body
from evalcube.stages.reply.body import parse_body

_SLOWEST_UPLOAD = 50_000.0
"""Bytes per second that are waited for beyond the timeout of a request."""
_LONGEST_DOWNLOAD = 7200.0
_PAGE, _MOST_PAGES = 100, 100
_PIECE = 1 << 20
_DONE = Reply(RetryClass.FINAL)
_UNREADABLE = Reply(RetryClass.RETRY, "wrong shape", "the reply about a file or a batch cannot be read")
_NO_LISTING = frozenset({"http 404", "http 405", "http 501"})


class BatchSender(Sender):
    """Sends one model's requests in batches, and fetches their answers; see `evalcube.stages.infer.wire.Sender`."""

    def __init__(self, endpoint: Endpoint, connections: Connector, keys: KeyHolder) -> None:
        super().__init__(endpoint, connections, keys)
        self._base = endpoint.base_url.rstrip("/")
        self._timeout = endpoint.timeout
        self._window = "" if endpoint.batch is None else endpoint.batch.window

    async def upload(self, token: str, lines: Sequence[bytes]) -> tuple[Reply, str]:
        """Send a file of requests; its id comes with a final reply.

        Parameters
        ----------
        token
            Names the file.
        lines
            Made by `evalcube.stages.infer.batch.lines.request_line`.
        """
        boundary = f"evalcube-{token}"
        head = (
            f'--{boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{token}.jsonl"\r\n'
            "content-type: application/jsonl\r\n\r\n"
        ).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()
        size = len(head) + sum(map(len, lines)) + len(tail)
        reply, document = await self._exchange(
            "POST",
            "files",
            data=_pieces(head, lines, tail),
            # A known length, as not every server takes a body in chunks.
            headers={
                "content-type": f"multipart/form-data; boundary={boundary}",
                "content-length": str(size),
            },
            timeout=aiohttp.ClientTimeout(total=self._timeout + size / _SLOWEST_UPLOAD),
        )
        file = identifier(document.get("id"))
        return (_UNREADABLE, "") if reply.is_final and not file else (reply, file)

    async def create(self, file: str, token: str) -> tuple[Reply, Batch | None]:
        """Have the requests of an uploaded file answered; the batch comes with a final reply.

        Parameters
        ----------
        file
            Id of the uploaded file.
        token
            Stands in the batch's metadata, so that `find` finds it.
        """
        return self._batch(
            *await self._exchange("POST", "batches", json=order(file, self._api, self._window, token))
        )

    async def poll(self, batch: str) -> tuple[Reply, Batch | None]:
        """How far the batch with the id `batch` is."""
        return self._batch(*await self._exchange("GET", f"batches/{quote(batch)}"))

    async def find(self, token: str, file: str) -> tuple[Reply, Batch | None]:
        """The batch with a token or of a file; a final reply without one says that there is none.

        An endpoint that cannot list its batches is taken to have none.

        Parameters
        ----------
        token
            What `create` was called with.
        file
            Id of its uploaded file; empty if it is not known.
        """
        after = ""
        for _ in range(_MOST_PAGES):
            reply, document = await self._exchange("GET", f"batches?limit={_PAGE}{after}")
            if not reply.is_final:
                return (_DONE, None) if reply.cause in _NO_LISTING else (reply, None)
            entries = document.get("data")
            if not isinstance(entries, list):
                return _UNREADABLE, None
            batches = [batch for batch in map(read_batch, entries) if batch is not None]
            for batch in batches:
                if batch.token == token or (file and batch.input == file):
                    return reply, batch
            if not batches or document.get("has_more") is not True:
                break
            after = f"&after={quote(batches[-1].id)}"
        return _DONE, None

    async def download(self, file: str, take: Callable[[Line], None]) -> Reply:
        """Have each line of a file taken that can be read; the reply is final if it came whole.

        Parameters
        ----------
        file
            Id of a batch's output or errors.
        take
            Called with each line as it arrives, before it is known whether the rest comes.
        """
        generation = await self._use_key()
        return await self._after(await self._download(file, take), generation)

    async def _download(self, file: str, take: Callable[[Line], None]) -> Reply:
        splitter = LineSplitter(self._limit + WRAPPING_BYTES)
        timeout = aiohttp.ClientTimeout(total=_LONGEST_DOWNLOAD, sock_read=self._timeout)
        try:
            async with self._session.get(
                URL(f"{self._base}/files/{quote(file)}/content", encoded=True),
                proxy=self._proxies[0],
                allow_redirects=False,
                timeout=timeout,
            ) as response:
                if response.status != 200:
                    body = self._clean(await read_body(response, self._limit))
                    return _refusal(classify(response.status, response.headers, body, time.time()))
                async for part in response.content.iter_any():
                    self._take(splitter.feed(part), take)
                self._take(splitter.rest(), take)
        except Exception as error:  # noqa: BLE001 - whatever fails on the way is a transport error with a name
            return self._transport_reply(error)
        return _DONE

    def _take(self, lines: Iterable[tuple[bytes, bool]], take: Callable[[Line], None]) -> None:
        for data, whole in lines:
            clean = self._clean(data)
            line = read_line(clean, time.time(), self._api) if whole else long_line(clean, self._limit)
            if line is not None:
                take(line)

    async def _exchange(self, method: str, path: str, **more: Any) -> tuple[Reply, dict[str, object]]:  # noqa: ANN401
        """Send once; what an object in JSON says that comes with a final reply, else nothing."""
        generation = await self._use_key()
        reply, document = await self._exchange_once(method, path, **more)
        return await self._after(reply, generation), document

    async def _exchange_once(
        self,
        method: str,
        path: str,
        **more: Any,  # noqa: ANN401
    ) -> tuple[Reply, dict[str, object]]:
        try:
            async with self._session.request(
                method,
                URL(f"{self._base}/{path}", encoded=True),
                proxy=self._proxies[0],
                allow_redirects=False,
                **more,
            ) as response:
                status, headers = response.status, response.headers
                body = self._clean(await read_body(response, self._limit))
        except Exception as error:  # noqa: BLE001 - whatever fails on the way is a transport error with a name
            return self._transport_reply(error), {}
        if not 200 <= status < 300:
            return _refusal(classify(status, headers, body, time.time())), {}
        document = parse_body(body)
        return (_DONE, document) if isinstance(document, dict) else (_UNREADABLE, {})

    @staticmethod
    def _batch(reply: Reply, document: dict[str, object]) -> tuple[Reply, Batch | None]:
        if not reply.is_final:
            return reply, None
        batch = read_batch(document)
        return (_UNREADABLE, None) if batch is None else (reply, batch)


def _refusal(reply: Reply) -> Reply:
    """A refusal for what counts with a single request only: a filter or the context has no say here."""
    return reply._replace(retry_class=RetryClass.FAILED) if reply.is_final else reply


async def _pieces(head: bytes, lines: Sequence[bytes], tail: bytes) -> AsyncIterator[bytes]:
    """The upload in pieces of about a megabyte."""
    piece, size = [head], 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(piece)
            piece, size = [], 0
    yield b"".join([*piece, tail])
