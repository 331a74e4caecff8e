"""The queue of a model whose requests travel in batches: gathers them, and sends many together."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from evalcube.stages.infer.batch.job import BatchContext, BatchJob, PendingRequest
from evalcube.stages.infer.batch.lines import Batches, Line, Note, find_notes
from evalcube.stages.infer.batch.wire import BatchSender
from evalcube.stages.infer.endpoint import Batching, Endpoint
from evalcube.stages.infer.endpoint_queue import EndpointQueue, TokenEstimate
from evalcube.stages.infer.jobs import Job, JobGroup, Result, SharedJob, Stats
from evalcube.stages.infer.reply import EndHabit, Reply, classify
from evalcube.stages.infer.retry import Breaker, backoff
from evalcube.stages.infer.turns import LoopShare
from evalcube.stages.infer.wire import Sender
from evalcube.stages.infer.writer import Writer
from evalcube.stages.reply.forms import Record

_MEGABYTE = 1_000_000
_RECORDS_AT_ONCE = 256
"""Records that are looked up in the store together: they may be megabytes each."""
_MOST_FAILURES = 8
"""Answers in a row that no request can get around after which the model is given up."""


class BatchQueue(EndpointQueue):
    """Gathers one model's requests, and has each answered by the batch in which it is already, or by a new one.

    Parameters
    ----------
    endpoint, stats, writer
        See `evalcube.stages.infer.endpoint_queue.EndpointQueue`.
    batches
        What the sweep keeps of its batches.

    Raises
    ------
    InferenceError
        If the endpoint's key is missing, or its address or proxy is none.
    """

    def __init__(self, endpoint: Endpoint, stats: Stats, writer: Writer, batches: Batches) -> None:
        super().__init__(endpoint, stats, writer)
        self._endpoint = endpoint
        self._terms = endpoint.batch or Batching()
        self._batches = batches
        self._context = BatchContext(
            BatchSender(
                endpoint,
                self._connections(endpoint),
                self._keys,
                LoopShare(partial(stats.neighbours, endpoint.name)),
            ),
            batches,
            endpoint,
            stats,
            set(),
        )
        self._answer_breaker, self._batch_breaker = Breaker(_MOST_FAILURES), Breaker(1)
        self._estimate, self._habit = TokenEstimate(), EndHabit()
        self._requests: dict[str, PendingRequest] = {}
        """All that are not resolved yet, by digest."""
        self._waiting: list[PendingRequest] = []
        """Those of them that are not in a batch yet."""
        self._bytes = 0
        """Of the bodies of those that wait."""
        self._arrived = asyncio.Event()
        self._batch_jobs: dict[str, tuple[BatchJob, asyncio.Task[None]]] = {}
        """Batches under way and who follows them, by token."""
        self._gatherer: asyncio.Task[None] | None = None
        self._open = asyncio.Event()
        """Set unless nothing may be sent for now."""

    def put(self, name: str, shared: SharedJob) -> None:  # noqa: ARG002 - the interface of queues
        """Queue a job, or resolve it at once where nothing is sent any more."""
        request = self._requests[shared.job.digest] = PendingRequest(shared)
        self._queue(request)

    def resize(self, workers: int, runs: int = 1, place: int = 0) -> None:  # noqa: ARG002 - the interface of queues
        """Begin to send once there are workers; how many there are makes no difference."""
        if not workers:
            self._open.clear()
            return
        self._open.set()
        if self._gatherer is None and not self._halted:
            self._gatherer = self._spawn(self._gather())

    def revive(self) -> None:
        """Ask again after the model was given up."""
        self._down = None
        self._answer_breaker, self._batch_breaker = Breaker(_MOST_FAILURES), Breaker(1)

    def halt(self) -> None:
        """Send nothing more, and wait for no batch; answers that are coming in are still taken."""
        self._halted = True
        if self._gatherer is not None:
            self._gatherer.cancel()
        for batch_job, task in self._batch_jobs.values():
            batch_job.stopping = True
            if batch_job.collecting:
                continue  # its answers are paid for, and on their way
            batch_job.requests.clear()
            # Between creating a batch and noting its id, a cancellation would cost the next run a search for it.
            if not batch_job.creating:
                task.cancel()
        collected = {digest for batch_job, _ in self._batch_jobs.values() for digest in batch_job.requests}
        for digest, request in tuple(self._requests.items()):
            if digest not in collected:
                self._end(request, Result.skipped())
        self._waiting, self._bytes = [], 0

    def _senders(self) -> Iterable[Sender]:
        return [self._context.sender]

    def _refuse_waiting(self, reply: Reply) -> None:
        # Batches under way are still waited for: they are paid for, whatever happened to another one.
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        for request in waiting:
            self._fail(request, reply)

    def _queue(self, request: PendingRequest) -> None:
        if self._halted:
            self._end(request, Result.skipped())
        elif self._down is not None:
            self._fail(request, self._down)
        else:
            self._waiting.append(request)
            self._bytes += len(request.shared.job.body)
            self._arrived.set()

    def _end(self, request: PendingRequest, result: Result) -> None:
        if self._requests.pop(request.shared.job.digest, None) is not None:
            request.shared.resolve(result)

    def _fail(self, request: PendingRequest, reply: Reply) -> None:
        if self._requests.pop(request.shared.job.digest, None) is not None:
            self._give_up(request.shared, reply, request.attempts)

    def _raise(self, requests: Iterable[PendingRequest], error: Exception) -> None:
        """Have the blocks of requests raise an error where they are waited for."""
        for request in tuple(requests):
            if self._requests.pop(request.shared.job.digest, None) is not None:
                request.shared.fail(error)

    async def _gather(self) -> None:
        """Make batches of what waits: full ones at once, others when nothing came for a while."""
        while True:
            await self._arrived.wait()
            while not self._full:
                self._arrived.clear()
                try:
                    async with asyncio.timeout(self._terms.patience):
                        await self._arrived.wait()
                except TimeoutError:
                    break
            await self._open.wait()
            requests = self._take()
            try:
                await self._dispatch(requests)
            except Exception as error:  # noqa: BLE001 - raised again where the blocks are waited for
                # The gatherer lives on: an error of one batch, such as a full disk, must not hang all later blocks.
                self._raise(requests, error)

    @property
    def _full(self) -> bool:
        return len(self._waiting) >= self._terms.requests or self._bytes >= self._terms.megabytes * _MEGABYTE

    def _take(self) -> list[PendingRequest]:
        """What goes into one batch; what nobody wants any more is left out."""
        taken: list[PendingRequest] = []
        size, most = 0, self._terms.megabytes * _MEGABYTE
        for count, request in enumerate(self._waiting):
            if count and (count >= self._terms.requests or size >= most):
                break
            size += len(request.shared.job.body)
            taken.append(request)
        self._waiting = self._waiting[len(taken) :]
        self._bytes -= size
        # Set anew for what stays: it came before, and nothing else would wake the gatherer for it.
        if self._waiting:
            self._arrived.set()
        else:
            self._arrived.clear()
        for request in taken:
            if not request.shared.is_wanted:
                self._end(request, Result.skipped())
        return taken

    async def _dispatch(self, requests: Sequence[PendingRequest]) -> None:
        """Have requests answered by the batches that they are in already, by the store, or by a new batch."""
        digests = frozenset(request.shared.job.digest for request in requests)
        excluded = frozenset(self._batch_jobs) | self._context.unknown
        # On a thread, as all that reads or writes files: the loop serves other endpoints meanwhile.
        notes = await asyncio.to_thread(find_notes, self._batches, self._endpoint.name, digests, excluded)
        # Looked up only now: while the notes were read, a halt may have ended some.
        left = {digest: self._requests[digest] for digest in digests if digest in self._requests}
        for batch_job, _ in self._batch_jobs.values():
            batch_job.join({digest: left.pop(digest) for digest in batch_job.note.digests & left.keys()})
        for note in notes:
            # Also where none is left, as two batches have it: with its answers stored, the note can go.
            self._start(note, {digest: left.pop(digest) for digest in note.digests & left.keys()})
        await self._look_up(left)
        if left and self._down is None:
            for request in left.values():
                request.attempts += 1
            self._start(Note(uuid.uuid4().hex, self._endpoint.name, frozenset(left)), left)
        else:
            for request in left.values():
                self._queue(request)

    async def _look_up(self, left: dict[str, PendingRequest]) -> None:
        """Take out what the store has by now.

        Notes come first, the store second: another worker that removed a note between the two had stored its answers
        before, so that a request is in one of both places, and is not paid for twice.
        """
        names = list(left)
        for begin in range(0, len(names), _RECORDS_AT_ONCE):
            part = names[begin : begin + _RECORDS_AT_ONCE]
            records = await asyncio.to_thread(self._batches.records, part)
            for digest, record in zip(part, records, strict=True):
                if digest not in self._requests or (
                    record is not None and self._end_stored(left[digest], record)
                ):
                    del left[digest]

    def _end_stored(self, request: PendingRequest, data: bytes) -> bool:
        """End a request whose record is in the store; returns whether it is one."""
        try:
            record = Record.decode(data)
        except ValueError:
            return False
        reply = classify(record.status, {}, record.body, time.time(), record.api)
        self._count(request, reply)
        self._end(request, Result.stored(reply, 0))
        return True

    def _start(self, note: Note, requests: dict[str, PendingRequest]) -> None:
        batch_job = BatchJob(note, requests, self._context, self._settle)
        self._batch_jobs[note.token] = batch_job, self._spawn(self._follow(batch_job))

    async def _follow(self, batch_job: BatchJob) -> None:
        """Run a batch, and see to those of its requests that it leaves without an answer."""
        try:
            reply = await batch_job.run()
            if reply is not None:
                self._record_failure(reply, self._batch_breaker)
        except Exception as error:  # noqa: BLE001 - raised again where the blocks are waited for
            self._raise(batch_job.requests.values(), error)
        else:
            for request in tuple(batch_job.requests.values()):
                if reply is None:
                    self._queue(request)
                else:
                    self._fail(request, reply)
        finally:
            self._batch_jobs.pop(batch_job.note.token, None)
        for request in batch_job.late:
            self._queue(request)

    def _settle(self, line: Line, request: PendingRequest | None, durable: JobGroup, number: int) -> None:
        line = line._replace(reply=self._habit.judge(line.reply))
        if line.reply.is_final:
            self._store(line, request, durable, number)
            return
        durable.settle(number, Result.skipped())
        if request is not None:
            self._retry(request, line.reply)

    def _store(self, line: Line, request: PendingRequest | None, durable: JobGroup, number: int) -> None:
        """Store an answer, also one that nobody waits for here: it is paid for, and the note will be removed."""
        attempts, shared = 0, SharedJob(Job(line.digest, b""), {})
        if request is not None:
            attempts, shared = max(request.attempts, 1), request.shared
            self._answer_breaker.note_success()
            self._count(request, line.reply)
            # Out before the writer resolves it: a halt in between would call it skipped.
            self._requests.pop(line.digest, None)
        shared.add(durable, number)
        record = Record(line.status, math.nan, line.body, api=self._endpoint.api).encode()
        self._writer.put(shared, record, Result.stored(line.reply, attempts))

    def _count(self, request: PendingRequest, reply: Reply) -> None:
        taken = self._estimate.tokens_taken(request.shared.job.body, reply)
        self._stats.count(self._endpoint.name, reply, taken)

    def _retry(self, request: PendingRequest, reply: Reply) -> None:
        """Have a request go along with a later batch, if that is worth it."""
        # Not `retry.retry`, which waits in a coroutine: thousands of lines may fail at once, and each waits by itself.
        if request.policy is None:
            request.policy = backoff(self._endpoint.retries, base=self._endpoint.backoff_base)
            next(request.policy)
        with suppress(StopIteration):
            wait = request.policy.send(reply)
            if self._halted:
                self._end(request, Result.skipped())
                return
            self._stats.retries[reply.cause] += 1
            asyncio.get_running_loop().call_later(wait, self._queue_again, request)
            return
        self._record_failure(reply, self._answer_breaker)
        self._fail(request, reply)

    def _queue_again(self, request: PendingRequest) -> None:
        # A halt may have ended it while it waited.
        if request.shared.job.digest in self._requests:
            self._queue(request)
