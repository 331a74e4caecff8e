"""Exchanges with an endpoint's files and batches: upload, create, poll, find, download."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from evalcube.stages.infer.batch.lines import (
    NO_BATCH,
    WRAPPING_BYTES,
    Batch,
    Line,
    LineSplitter,
    Note,
    identifier,
    long_line,
)
from evalcube.stages.infer.batch.protocols import protocol_of, read_line
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.keys import KeyHolder
from evalcube.stages.infer.reply import Reply, RetryClass, classify
from evalcube.stages.infer.turns import LoopShare, Pieces
from evalcube.stages.infer.wire import Connector, Sender, read_body
from evalcube.stages.reply.body import parse_body

_SLOWEST_UPLOAD = 50_000.0
"""Bytes per second that are waited for beyond the timeout of a request."""
_LONGEST_DOWNLOAD = 7200.0
_MOST_PAGES = 100
_PIECE = 1 << 20
_DONE = Reply(RetryClass.FINAL)
_UNREADABLE = Reply(RetryClass.RETRY, "wrong shape", "the reply about a file or a batch cannot be read")
_STRANGERS = 1000
_TOO_MANY = Reply(
    RetryClass.FAILED,
    "too many lines",
    "the batch's file of answers has more lines than the batch has requests",
)
_NO_LISTING = frozenset({"http 404", "http 405", "http 501"})


class BatchSender(Sender):
    """Sends one model's requests in batches, and fetches their answers; see `evalcube.stages.infer.wire.Sender`."""

    def __init__(
        self, endpoint: Endpoint, connections: Connector, keys: KeyHolder, share: LoopShare | None = None
    ) -> None:
        super().__init__(endpoint, connections, keys, share)
        self._base = endpoint.base_url.rstrip("/")
        self._window = "" if endpoint.batch is None else endpoint.batch.window
        self.protocol = protocol_of(endpoint.api, self._base)

    async def upload(self, token: str, lines: Sequence[bytes]) -> tuple[Reply, str]:
        """Send a file of requests; its id comes with a final reply, or what else a note has in its place."""
        form = self.protocol.form
        if form is None:
            return await self._newest()
        boundary = f"evalcube-{token}"
        parts = "".join(f"--{boundary}\r\n{part.format(token=token)}\r\n" for part in form.parts)
        reply, document = await self._send_lines(
            form.path,
            f"{form.content_type}; boundary={boundary}",
            (f"{parts}\r\n".encode(), lines, f"\r\n--{boundary}--\r\n".encode()),
        )
        record = document.get("file", document)
        file = identifier(record.get("id", record.get("name"))) if isinstance(record, dict) else ""
        return (_UNREADABLE, "") if reply.is_final and not file else (reply, file)

    async def create(self, note: Note, lines: Sequence[bytes]) -> tuple[Reply, Batch | None]:
        """Have requests answered; the batch comes with a final reply."""
        protocol = self.protocol
        if protocol.form is not None:
            ordered = protocol.order(note, self._api, self._window)
            return self._batch(*await self._exchange("POST", protocol.batches, json=ordered))
        body = b'{"requests":[', [lines[0][1:], *lines[1:]], b"]}"
        return self._batch(*await self._send_lines(protocol.batches, "application/json", body))

    async def _send_lines(
        self, path: str, content_type: str, body: tuple[bytes, Sequence[bytes], bytes]
    ) -> tuple[Reply, dict[str, object]]:
        """Send many lines between a head and a tail."""
        head, lines, tail = body
        size = len(head) + sum(map(len, lines)) + len(tail)
        return await self._exchange(
            "POST",
            path,
            data=_pieces(head, lines, tail),
            # A known length, as not every server takes a body in chunks.
            headers={"content-type": content_type, "content-length": str(size)},
            timeout=aiohttp.ClientTimeout(total=self._timeout + size / _SLOWEST_UPLOAD),
        )

    async def poll(self, batch: str) -> tuple[Reply, Batch | None]:
        """How far the batch with the id `batch` is."""
        return self._batch(*await self._exchange("GET", f"{self.protocol.batches}/{quote(batch)}"))

    async def find(self, note: Note, noted: Callable[[], frozenset[str]]) -> tuple[Reply, Batch | None]:
        """The batch that a note is about; a final reply without one says that there is none.

        An endpoint that cannot list its batches is taken to have none.
        """
        more = ""
        # Each page is a request, and a list may have no end.
        for _ in range(_MOST_PAGES):
            reply, entries, more = await self._page(more)
            if not reply.is_final:
                return (_DONE, None) if reply.cause in _NO_LISTING else (reply, None)
            for batch in entries:
                if batch.id == note.file:
                    return _DONE, None  # older than the note
                if batch.token == note.token or (note.file and batch.input == note.file):
                    return reply, batch
                # Nobody's, and of this size: it may be the one whose id was lost when a process was killed. Its answers
                # tell.
                if batch.size == len(note.digests) and batch.id not in await asyncio.to_thread(noted):
                    if not batch.over:
                        return reply, replace(batch, unsure=True)
                    verdict, mine = await self._has_any(batch, note.digests)
                    if mine or not verdict.is_final:
                        return verdict, batch if mine else None
            if not more or not entries:
                break
        return _DONE, None

    async def _page(self, more: str) -> tuple[Reply, list[Batch], str]:
        """A page of the list of batches, and what the address of the next one has more."""
        protocol = self.protocol
        reply, document = await self._exchange("GET", protocol.listing + more)
        if not reply.is_final:
            return reply, [], ""
        entries, more = protocol.page(document)
        if not isinstance(entries, list):
            return _UNREADABLE, [], ""
        return reply, [batch for batch in map(self._read_entry, entries) if batch is not None], more

    def _read_entry(self, document: object) -> Batch | None:
        batch = self.protocol.entry(document)
        return None if batch is None else self._with_answers(batch)

    async def _newest(self) -> tuple[Reply, str]:
        """The id of the newest batch: one that is made after this stands before it in the list."""
        reply, entries, _ = await self._page("")
        if reply.is_final or reply.cause in _NO_LISTING:
            return _DONE, entries[0].id if entries else NO_BATCH
        return reply, ""

    async def _has_any(self, batch: Batch, digests: frozenset[str]) -> tuple[Reply, bool]:
        """Whether the first answer of a batch is to one of these requests; not so where it has none any more."""
        first: list[str] = []

        def take(line: Line) -> bool:
            first.append(line.digest)
            return True

        reply = await self.download(batch.output, take, batch.size) if batch.output else _DONE
        return _DONE if reply.cause in _NO_LISTING else reply, bool(first) and first[0] in digests

    async def download(self, file: str, take: Callable[[Line], bool | None], requests: int) -> Reply:
        """Have each line of a file taken that can be read; the reply is final if it came whole, or far enough."""
        generation = await self._use_key()
        return await self._after(await self._download(file, take, requests), generation)

    async def _download(self, file: str, take: Callable[[Line], bool | None], requests: int) -> Reply:
        splitter, count, turns = LineSplitter(self._limit + WRAPPING_BYTES), 0, self._turns()
        timeout = aiohttp.ClientTimeout(total=_LONGEST_DOWNLOAD)
        try:
            headers, url = self._place(self.protocol.content.format(file))
            # Lines are waited for, not bytes: a server that sends blank ones for ever sends nothing.
            async with (
                asyncio.timeout(self._timeout) as deadline,
                self._session.get(
                    url, headers=headers, proxy=self._proxies[0], allow_redirects=False, timeout=timeout
                ) as response,
            ):
                if response.status != 200:
                    body = await read_body(response.headers, response.content, self._limit)
                    body = await self._without_keys(body, turns)
                    return _refusal(classify(response.status, response.headers, body, time.time()))
                async for data, whole in _lines(Pieces(response.content, turns), splitter):
                    count += 1
                    if count > requests + _STRANGERS:
                        return _TOO_MANY
                    turns.due = time.monotonic() + self._timeout
                    deadline.reschedule(turns.due)
                    line = self._line(await self._without_keys(data, turns), whole=whole)
                    if line is not None and take(line):
                        return _DONE
                    await turns.take_turn(len(data))
        except Exception as error:  # noqa: BLE001 - whatever fails on the way is a transport error with a name
            return self._transport_reply(error)
        return _DONE

    def _line(self, data: bytes, *, whole: bool) -> Line | None:
        if whole:
            return read_line(data, time.time(), self._api, self.protocol.answer)
        return long_line(data, self._limit)

    def _place(self, path: str) -> tuple[dict[str, str], URL]:
        """The headers for a path, with the key as it is wanted there, and its address."""
        if path.startswith("/"):
            headers, own = self._headers, self.protocol.key_header
            # Some doors of one provider want the key in another header, and refuse two of them.
            if own:
                headers = self._plain if self._keys.key is None else self._plain | {own: self._keys.key}
            return headers, URL(self._base.removesuffix(self.protocol.suffix) + path, encoded=True)
        return self._headers, URL(path if "://" in path else f"{self._base}/{path}", encoded=True)

    async def _exchange(self, method: str, path: str, **more: Any) -> tuple[Reply, dict[str, object]]:  # noqa: ANN401
        """Send once; what an object in JSON says that comes with a final reply, else nothing."""
        generation = await self._use_key()
        reply, document = await self._exchange_once(method, path, **more)
        return await self._after(reply, generation), document

    async def _exchange_once(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        **more: Any,  # noqa: ANN401
    ) -> tuple[Reply, dict[str, object]]:
        try:
            all_headers, url = self._place(path)
            async with self._session.request(
                method,
                url,
                headers={**all_headers, **(headers or {})},
                proxy=self._proxies[0],
                allow_redirects=False,
                **more,
            ) as response:
                status, answered = response.status, response.headers
                body = await read_body(answered, response.content, self._limit)
                body = await self._without_keys(body, self._turns())
        except Exception as error:  # noqa: BLE001 - whatever fails on the way is a transport error with a name
            return self._transport_reply(error), {}
        if not 200 <= status < 300:
            return _refusal(classify(status, answered, body, time.time())), {}
        document = parse_body(body)
        return (_DONE, document) if isinstance(document, dict) else (_UNREADABLE, {})

    def _batch(self, reply: Reply, document: dict[str, object]) -> tuple[Reply, Batch | None]:
        if not reply.is_final:
            return reply, None
        batch = self.protocol.read(document)
        return (_UNREADABLE, None) if batch is None else (reply, self._with_answers(batch))

    def _with_answers(self, batch: Batch) -> Batch:
        """A batch with the address of its answers on the endpoint itself: elsewhere the key must not go."""
        if "://" not in batch.output or batch.output.startswith(f"{URL(self._base).origin()}/"):
            return batch
        return replace(batch, output=f"{self.protocol.batches}/{quote(batch.id)}/results")


def _refusal(reply: Reply) -> Reply:
    """A refusal for what counts with a single request only: a filter or the context has no say here."""
    return reply._replace(retry_class=RetryClass.FAILED) if reply.is_final else reply


async def _lines(pieces: Pieces, splitter: LineSplitter) -> AsyncIterator[tuple[bytes, bool]]:
    async for piece in pieces:
        for line in splitter.feed(piece):
            yield line
    for line in splitter.rest():
        yield line


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
