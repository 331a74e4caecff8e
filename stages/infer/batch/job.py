"""One batch from its upload, or from a note of an earlier run, until its answers are in the store.

Whatever dies in between, no request may be paid for twice and no answer may be lost. So the note is written before the
batch is created, and removed after its answers are durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from evalcube.stages.infer.batch.lines import Batch, Batches, Line, Note, noted_batches
from evalcube.stages.infer.batch.wire import BatchSender
from evalcube.stages.infer.endpoint import Batching, Endpoint
from evalcube.stages.infer.jobs import JobGroup, Result, SharedJob, Stats
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.infer.retry import Policy, backoff, retry

T = TypeVar("T")
_UNKNOWN = "http 404"
_REFUSED = "http 429"
"""What says for certain that there is no batch, and is worth another attempt."""
_STOPPED = Reply(RetryClass.RETRY, "stopped")
_FEWEST_POLLS = 20
"""Failed polls of a batch in a row after which it is left to the next run, at least."""


class PendingRequest:
    """A request that waits for its answer, through as many batches as it takes."""

    __slots__ = ("attempts", "policy", "shared")

    def __init__(self, shared: SharedJob) -> None:
        self.shared = shared
        self.attempts = 0
        """Batches that it was put into."""
        self.policy: Policy | None = None
        """Made with the first failure."""


Settle = Callable[[Line, PendingRequest | None, JobGroup, int], None]
"""Takes an answer, the request if one waits for it, and the block and number to settle once its note may go."""


class BatchContext(NamedTuple):
    """What all batches of a model share."""

    sender: BatchSender
    batches: Batches
    endpoint: Endpoint
    stats: Stats
    unknown: set[str]
    """Tokens of batches that the endpoint does not know. Their notes are removed once it has taken another batch:
    until then, it might be the wrong endpoint."""


class BatchJob:
    """A batch under way.

    Parameters
    ----------
    note
        Which requests it has. With a file, it is another's: an earlier run's, or a worker's that died.
    requests
        Those of its requests that are waited for, by digest; each is taken out with its answer.
    context
        What it shares with the model's other batches.
    settle
        Called with each answer.
    """

    def __init__(
        self, note: Note, requests: dict[str, PendingRequest], context: BatchContext, settle: Settle
    ) -> None:
        self.note = note
        self.requests = requests
        self.late: list[PendingRequest] = []
        """Asked for while the answers came in; to be looked up again."""
        self.attached = bool(note.file)
        """Whether it was begun by somebody else."""
        self.creating = False
        """Whether it may be at the endpoint before its note says so: not to be broken off for less than the end."""
        self._tried = False
        """Whether it was created by an attempt of which nobody knows what came of it."""
        self.collecting = False
        """Whether the answers come in."""
        self.stopping = False
        """Whether nobody waits for it any more."""
        self._sender, self._batches, self._endpoint, self._stats, self._unknown = context
        self._terms = self._endpoint.batch or Batching()
        self._settle = settle

    async def run(self) -> Reply | None:
        """See the batch through; afterwards `requests` are those without an answer."""
        reply, batch = await (self._find() if self.attached else self._launch())
        if batch is None or self.stopping:
            return self._without_batch(reply)
        count = len(self.requests)
        self._stats.in_flight += count
        try:
            while not batch.over:
                await asyncio.sleep(self._terms.poll)
                reply, seen = await self._poll(batch.id, self._polling_policy())
                if seen is None:
                    return self._without_batch(reply)
                batch = seen
            return await self._collect(batch)
        finally:
            # The same number: answers took requests out, and others joined.
            self._stats.in_flight -= count

    def join(self, requests: dict[str, PendingRequest]) -> None:
        """Wait for these requests of the batch, too."""
        if self.collecting:
            # Their lines may have gone by already: they are in the store then, or in no file.
            self.late.extend(requests.values())
        else:
            self.requests.update(requests)

    def _without_batch(self, reply: Reply) -> Reply | None:
        if reply.cause != _UNKNOWN or not (self.attached or self.note.batch):
            return reply
        self._unknown.add(self.note.token)
        return None if self.attached else reply._replace(retry_class=RetryClass.FAILED)

    async def _launch(self) -> tuple[Reply, Batch | None]:
        """Upload, note, create: in this order, so that no batch is ever without a note."""
        sender, token = self._sender, self.note.token
        jobs = [request.shared.job for request in self.requests.values()]
        # A hundred megabytes of lines take their time: other endpoints' replies must not wait for that.
        lines = await asyncio.to_thread(
            lambda: [sender.protocol.line(job, self._endpoint.api) for job in jobs]
        )
        reply, file = await self._retry(lambda: sender.upload(token, lines))
        if not reply.is_final:
            return reply, None  # a file without a batch costs nothing, and needs no note
        if sender.protocol.form is not None:
            lines.clear()
        self.note = replace(self.note, file=file)
        await self._write()
        self.creating = True
        reply, batch = await self._create(lines)
        if batch is not None:
            self.note = replace(self.note, batch=batch.id)
            await self._write()
            self._stats.sent += len(jobs)
            # The endpoint takes batches, so it is the right one, and those that it does not know are gone.
            await self._remove_notes(*self._unknown)
            self._unknown.clear()
        elif not self._tried and reply.cause.startswith("http ") and not reply.retryable:
            # Refused for certain. After anything else there may be a batch, and the note must stay.
            await self._remove_notes(token)
        self.creating = False
        return reply, batch

    async def _create(self, lines: Sequence[bytes]) -> tuple[Reply, Batch | None]:
        """Create the batch once: after an attempt of which nobody knows what came of it, search for it first."""

        async def attempt() -> tuple[Reply, Batch | None]:
            if self._tried:
                reply, batch = await self._search()
                if batch is not None or not reply.is_final:
                    return reply, batch
            reply, batch = await self._sender.create(self.note, lines)
            # A refusal later on does not say what came of it.
            self._tried |= reply.retryable and reply.cause != _REFUSED
            return reply, batch

        return await self._until_sure(attempt)

    async def _search(self) -> tuple[Reply, Batch | None]:
        return await self._sender.find(self.note, lambda: noted_batches(self._batches))

    async def _until_sure(
        self, attempt: Callable[[], Awaitable[tuple[Reply, Batch | None]]]
    ) -> tuple[Reply, Batch | None]:
        """What attempts come to, once it is known of each batch whether it is this one."""
        while True:
            reply, batch = await self._retry(attempt)
            if batch is None or not batch.unsure:
                return reply, batch
            if self.stopping:
                return _STOPPED, None
            # To be broken off meanwhile: the note stays, and the next run finds out.
            creating, self.creating = self.creating, False
            await asyncio.sleep(self._terms.poll)
            self.creating = creating

    async def _find(self) -> tuple[Reply, Batch | None]:
        """The batch that a note is about; the cause is `_UNKNOWN` if there is none."""
        if self.note.batch:
            reply, batch = await self._poll(self.note.batch)
            if batch is not None and batch.token not in ("", self.note.token):
                return Reply(RetryClass.FAILED, _UNKNOWN), None  # another endpoint's batch of the same name
            return reply, batch
        # Whoever wrote the note died before it knew the id; the batch itself carries the note's token.
        reply, batch = await self._until_sure(self._search)
        if batch is not None:
            self.note = replace(self.note, batch=batch.id)
            await self._write()
        elif reply.is_final:
            reply = Reply(RetryClass.FAILED, _UNKNOWN)
        return reply, batch

    async def _poll(self, name: str, policy: Policy | None = None) -> tuple[Reply, Batch | None]:
        return await self._retry(lambda: self._sender.poll(name), policy)

    def _polling_policy(self) -> Policy:
        """Poll again and again, at the same pace: an endpoint that is away for a while has the batch still."""
        poll = self._terms.poll
        return backoff(max(self._endpoint.retries, _FEWEST_POLLS), base=poll, cap=poll)

    async def _collect(self, batch: Batch) -> Reply | None:
        self.collecting = True
        left = {digest: number for number, digest in enumerate(self.note.digests)}
        durable = JobGroup(len(left))

        def take(line: Line) -> bool:
            # Popped, so that a download that broke off and begins anew settles nothing twice.
            number = left.pop(line.digest, None)
            if number is not None:  # neither another's nor a second time
                self._settle(line, self.requests.pop(line.digest, None), durable, number)
            return not left

        missing = batch.missing
        for file in filter(None, (batch.output, batch.errors)):
            if not left:
                break
            reply, _ = await self._retry(lambda file=file: self._download(file, take))  # type: ignore[misc]
            if reply.cause == _UNKNOWN:
                missing = reply._replace(retry_class=RetryClass.FAILED)
            elif not reply.is_final:
                return reply  # the note stays, and the next run collects the rest
        for number in left.values():
            durable.settle(number, Result.skipped())
        # Answers that are put but not committed may be lost with the machine: until then the note must stay. Shielded,
        # as a cancelled wait would cancel the block's future, and the writer could not settle it any more.
        await asyncio.shield(asyncio.wrap_future(durable.future))
        await self._remove_notes(self.note.token)
        return None if self.attached else missing

    async def _download(self, file: str, take: Callable[[Line], bool]) -> tuple[Reply, None]:
        return await self._sender.download(file, take, len(self.note.digests)), None

    async def _retry(
        self, attempt: Callable[[], Awaitable[tuple[Reply, T]]], policy: Policy | None = None
    ) -> tuple[Reply, T]:
        """The last reply of an exchange that is tried again where that is worth it, and what came with it."""
        policy = policy or backoff(self._endpoint.retries, base=self._endpoint.backoff_base)
        first = await attempt()
        reply, value, _ = await retry(first, lambda *_: attempt(), policy, _sleep, self._stats.retries)
        return reply, value

    async def _write(self) -> None:
        await asyncio.to_thread(lambda: self._batches.write(self.note.token, self.note.encode()))

    async def _remove_notes(self, *tokens: str) -> None:
        for token in tokens:
            await asyncio.to_thread(self._batches.remove, token)


async def _sleep(seconds: float, _: Reply) -> bool:
    await asyncio.sleep(seconds)
    return False
