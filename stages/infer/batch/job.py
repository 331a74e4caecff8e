"""One batch on its way: requests or a note in; its answers, line by line, and how it ended out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from typing import NamedTuple, TypeVar

from stages.infer.batch.lines import Batch, Line, request_line
from stages.infer.batch.note import Batches, Note
from stages.infer.batch.wire import BatchSender
from stages.infer.endpoint import Batching, Endpoint
from stages.infer.jobs import Result, Stats
from stages.infer.pending import Block, Pending
from stages.infer.reply import Reply, Verdict
from stages.infer.retry import backoff

T = TypeVar("T")
Policy = Generator[float, Reply, Reply]
"""Of further attempts; see `stages.infer.retry.backoff`."""
_UNKNOWN = "http 404"
_LOOKS = 20
"""Failed looks at a batch in a row after which it is left to the next run, at least."""


class Entry:
    """A request that waits for its answer, through as many batches as it takes."""

    __slots__ = ("attempts", "pending", "policy")

    def __init__(self, pending: Pending) -> None:
        self.pending = pending
        self.attempts = 0
        self.policy: Policy | None = None
        """Made with the first failure."""


Settle = Callable[[Line, Entry | None, Block, int], None]
"""Takes an answer, who waits for it, and who is told, by number, when it needs no note any more."""


class Means(NamedTuple):
    """What all batches of a model share."""

    sender: BatchSender
    batches: Batches
    endpoint: Endpoint
    stats: Stats
    unknown: set[str]
    """Tokens of batches that the endpoint does not know. Their notes are removed once it has taken another batch:
    until then, it might be the wrong endpoint."""


class Flight:
    """A batch from its upload, or from a note of it, until its answers are in the store.

    Parameters
    ----------
    note
        Which requests it has. With a file, it is another's: an earlier run's, or a worker's that died.
    entries
        Those of its requests that are waited for; each is taken out with its answer.
    settle
        Called with each answer.
    """

    def __init__(self, note: Note, entries: dict[str, Entry], means: Means, settle: Settle) -> None:
        self.note = note
        self.entries = entries
        self.late: list[Entry] = []
        """Asked for while the answers came in; to be looked for again."""
        self.attached = bool(note.file)
        self.creating = False
        """Whether it may be at the endpoint before its note says so: not to be broken off for less than the end."""
        self.collecting = False
        """Whether the answers come in."""
        self.stopping = False
        """Whether nobody waits for it any more."""
        self._sender, self._batches, self._endpoint, self._stats, self._unknown = means
        self._terms = self._endpoint.batch or Batching()
        self._settle = settle

    async def run(self) -> Reply | None:
        """Fly; afterwards `entries` are those without an answer.

        Returns
        -------
        Reply or None
            Why they have none; None if they are to be sent anew, since an earlier run's batch has none for them.
        """
        reply, batch = await (self._find() if self.attached else self._launch())
        if batch is None or self.stopping:
            return self._lost(reply)
        count = len(self.entries)
        self._stats.in_flight += count
        try:
            while not batch.over:
                await asyncio.sleep(self._terms.poll)
                reply, seen = await self._look(batch.id, self._patient())
                if seen is None:
                    return self._lost(reply)
                batch = seen
            return await self._collect(batch)
        finally:
            self._stats.in_flight -= count

    def join(self, entries: dict[str, Entry]) -> None:
        """Wait for requests of the batch, too."""
        if self.collecting:
            self.late.extend(entries.values())
        else:
            self.entries.update(entries)

    def _lost(self, reply: Reply) -> Reply | None:
        if reply.cause != _UNKNOWN or not (self.attached or self.note.batch):
            return reply
        self._unknown.add(self.note.token)
        return None if self.attached else reply._replace(verdict=Verdict.FAILED)

    async def _launch(self) -> tuple[Reply, Batch | None]:
        """Upload, note, create: in this order, so that no batch is ever without a note."""
        sender, token = self._sender, self.note.token
        jobs = [entry.pending.job for entry in self.entries.values()]
        lines = await asyncio.to_thread(lambda: [request_line(job, self._endpoint.api) for job in jobs])
        reply, file = await self._insist(lambda: sender.upload(token, lines))
        if not reply.is_final:
            return reply, None
        lines.clear()
        self.note = replace(self.note, file=file)
        await self._write()
        self.creating = True
        reply, batch = await self._create()
        if batch is not None:
            self.note = replace(self.note, batch=batch.id)
            await self._write()
            self._stats.sent += len(jobs)
            await self._forget(*self._unknown)
            self._unknown.clear()
        elif reply.cause.startswith("http ") and not reply.retryable:
            await self._forget(token)
        self.creating = False
        return reply, batch

    async def _create(self) -> tuple[Reply, Batch | None]:
        """Create the batch once: after an attempt of which nobody knows what came of it, look first."""
        tried = False

        async def attempt() -> tuple[Reply, Batch | None]:
            nonlocal tried
            if tried:
                reply, batch = await self._sender.find(self.note.token, self.note.file)
                if batch is not None or not reply.is_final:
                    return reply, batch
            tried = True
            return await self._sender.create(self.note.file, self.note.token)

        return await self._insist(attempt)

    async def _find(self) -> tuple[Reply, Batch | None]:
        """The batch that a note is about; the cause is `_UNKNOWN` if there is none."""
        if self.note.batch:
            reply, batch = await self._look(self.note.batch)
            if batch is not None and batch.token not in ("", self.note.token):
                return Reply(Verdict.FAILED, _UNKNOWN), None  # another endpoint's batch of the same name
            return reply, batch
        reply, batch = await self._insist(lambda: self._sender.find(self.note.token, self.note.file))
        if batch is not None:
            self.note = replace(self.note, batch=batch.id)
            await self._write()
        elif reply.is_final:
            reply = Reply(Verdict.FAILED, _UNKNOWN)
        return reply, batch

    async def _look(self, name: str, policy: Policy | None = None) -> tuple[Reply, Batch | None]:
        return await self._insist(lambda: self._sender.look(name), policy)

    def _patient(self) -> Policy:
        """Look again and again, at the pace of looks: an endpoint that is away for a while has the batch still."""
        poll = self._terms.poll
        return backoff(max(self._endpoint.retries, _LOOKS), base=poll, cap=poll)

    async def _collect(self, batch: Batch) -> Reply | None:
        self.collecting = True
        left = {digest: number for number, digest in enumerate(self.note.digests)}
        durable = Block(len(left))

        def take(line: Line) -> None:
            number = left.pop(line.digest, None)
            if number is not None:  # neither another's nor a second time
                self._settle(line, self.entries.pop(line.digest, None), durable, number)

        missing = batch.missing
        for file in filter(None, (batch.output, batch.errors)):
            reply, _ = await self._insist(lambda file=file: self._download(file, take))  # type: ignore[misc]
            if reply.cause == _UNKNOWN:
                missing = reply._replace(verdict=Verdict.FAILED)
            elif not reply.is_final:
                return reply  # the note stays, and the next run collects the rest
        for number in left.values():
            durable.settle(number, Result.skipped())
        await asyncio.shield(asyncio.wrap_future(durable.future))
        await self._forget(self.note.token)
        return None if self.attached else missing

    async def _download(self, file: str, take: Callable[[Line], None]) -> tuple[Reply, None]:
        return await self._sender.download(file, take), None

    async def _insist(
        self, attempt: Callable[[], Awaitable[tuple[Reply, T]]], policy: Policy | None = None
    ) -> tuple[Reply, T]:
        """Try, and try again what is worth it."""
        policy = policy or backoff(self._endpoint.retries, base=self._endpoint.backoff_base)
        next(policy)
        while True:
            reply, value = await attempt()
            try:
                wait = policy.send(reply)
            except StopIteration:
                return reply, value
            self._stats.retries[reply.cause] += 1
            await asyncio.sleep(wait)

    async def _write(self) -> None:
        await asyncio.to_thread(lambda: self._batches.write(self.note.token, self.note.encode()))

    async def _forget(self, *tokens: str) -> None:
        for token in tokens:
            await asyncio.to_thread(self._batches.remove, token)
