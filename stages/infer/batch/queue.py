"""The requests of one model in, sent in batches; their replies, handed to the writer or given up, out."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress

from stages.infer.batch.job import Entry, Flight, Means
from stages.infer.batch.lines import Line
from stages.infer.batch.note import Batches, Note, find_notes
from stages.infer.batch.wire import BatchSender
from stages.infer.endpoint import Batching, Endpoint
from stages.infer.jobs import Job, Result, Slowdown, Stats
from stages.infer.pending import Block, Pending
from stages.infer.reply import Reply, classify
from stages.infer.retry import Breaker, backoff
from stages.infer.token_estimate import TokenEstimate
from stages.infer.wire import connector
from stages.infer.writer import Writer
from stages.reply.record import Record

_MEGABYTE = 1_000_000
_LOOKED_UP = 256
"""Answers that are looked for in the store at once: they may be megabytes each."""
_BREAKS_AFTER = 8
"""Answers in a row that no request can get around after which the model is given up."""


class BatchLane:
    """Gathers a model's requests, and has each answered by the batch in which it is already, or by a new one.

    All methods belong to the event loop's thread.

    Raises
    ------
    InferenceError
        If the endpoint's key is missing, or its address or proxy is none.
    """

    def __init__(self, endpoint: Endpoint, stats: Stats, writer: Writer, batches: Batches) -> None:
        self.learned = (0, -math.inf)
        """See `lane.Lane`: batches overload nothing that others would have to know of."""
        self._endpoint = endpoint
        self._terms = endpoint.batch or Batching()
        self._stats = stats
        self._writer = writer
        self._batches = batches
        self._connections = connector(endpoint)
        self._means = Means(BatchSender(endpoint, self._connections), batches, endpoint, stats, set())
        self._of_answers, self._of_batches = Breaker(_BREAKS_AFTER), Breaker(1)
        self._estimate = TokenEstimate()
        self._entries: dict[str, Entry] = {}
        """All that are not settled yet, by digest."""
        self._waiting: list[Entry] = []
        """Those of them that are not in a batch yet."""
        self._bytes = 0
        self._news = asyncio.Event()
        self._flights: dict[str, Flight] = {}
        self._gatherer: asyncio.Task[None] | None = None
        self._tasks: dict[asyncio.Task[None], Flight] = {}
        self._down: Reply | None = None
        """Why the model was given up."""
        self._halted = False

    def add(self, name: str, endpoint: Endpoint) -> None:
        """Serve the one model that it was made for."""

    def put(self, name: str, pending: Pending) -> None:  # noqa: ARG002 - the interface of lanes
        """Queue a job, or answer it at once where nothing is sent any more."""
        entry = self._entries[pending.job.digest] = Entry(pending)
        self._queue(entry)

    def resize(self, workers: int, rank: int) -> None:  # noqa: ARG002 - the interface of lanes
        """Begin to send once there are workers; how many there are makes no difference."""
        if workers and self._gatherer is None and not self._halted:
            self._gatherer = asyncio.get_running_loop().create_task(self._gather())

    def slow_down(self, told: Slowdown) -> None:
        """Other workers' overloads do not concern batches."""

    @property
    def idle(self) -> float:
        """None ever: no connection waits for a request."""
        return 0.0

    def halt(self) -> None:
        """Send nothing more, and wait for no batch; answers that are coming in are still taken."""
        self._halted = True
        if self._gatherer is not None:
            self._gatherer.cancel()
        for task, flight in self._tasks.items():
            flight.stopping = True
            if flight.collecting:
                continue
            flight.entries.clear()
            if not flight.creating:
                task.cancel()
        kept = {digest for flight in self._flights.values() for digest in flight.entries}
        for digest, entry in tuple(self._entries.items()):
            if digest not in kept:
                self._end(entry, Result.skipped())
        self._waiting, self._bytes = [], 0

    async def close(self) -> None:
        """Give up all that is under way; notes tell the next run of it."""
        tasks = [*self._tasks, *filter(None, (self._gatherer,))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._means.sender.close()
        await self._connections.close()

    def _queue(self, entry: Entry) -> None:
        if self._halted:
            self._end(entry, Result.skipped())
        elif self._down is not None:
            self._give_up(entry, self._down)
        else:
            self._waiting.append(entry)
            self._bytes += len(entry.pending.job.body)
            self._news.set()

    def _end(self, entry: Entry, result: Result) -> None:
        if self._entries.pop(entry.pending.job.digest, None) is not None:
            entry.pending.resolve(result)

    def _give_up(self, entry: Entry, reply: Reply) -> None:
        self._stats.failures[reply.cause] += 1
        self._end(entry, Result.failed(reply, entry.attempts))

    async def _gather(self) -> None:
        while True:
            await self._news.wait()
            while not self._full:
                self._news.clear()
                try:
                    async with asyncio.timeout(self._terms.patience):
                        await self._news.wait()
                except TimeoutError:
                    break
            entries = self._take()
            try:
                await self._dispatch(entries)
            except Exception as error:  # noqa: BLE001 - raised again where the blocks are waited for
                self._fail(entries, error)

    @property
    def _full(self) -> bool:
        return len(self._waiting) >= self._terms.requests or self._bytes >= self._terms.megabytes * _MEGABYTE

    def _take(self) -> list[Entry]:
        """What goes into one batch; what nobody wants any more is left out."""
        taken: list[Entry] = []
        size, most = 0, self._terms.megabytes * _MEGABYTE
        for count, entry in enumerate(self._waiting):
            if count and (count >= self._terms.requests or size >= most):
                break
            size += len(entry.pending.job.body)
            taken.append(entry)
        self._waiting = self._waiting[len(taken) :]
        self._bytes -= size
        if self._waiting:
            self._news.set()
        else:
            self._news.clear()
        for entry in taken:
            if not entry.pending.wanted:
                self._end(entry, Result.skipped())
        return taken

    async def _dispatch(self, entries: Sequence[Entry]) -> None:
        """Have requests answered by the batches that they are in already, by the store, or by a new batch."""
        digests = frozenset(entry.pending.job.digest for entry in entries)
        known = frozenset(self._flights) | self._means.unknown
        notes = await asyncio.to_thread(find_notes, self._batches, self._endpoint.name, digests, known)
        left = {digest: self._entries[digest] for digest in digests if digest in self._entries}
        for flight in self._flights.values():
            flight.join({digest: left.pop(digest) for digest in flight.note.digests & left.keys()})
        for note in notes:
            # Also where none is left, as two batches have it: with its answers stored, the note can go.
            self._fly(note, {digest: left.pop(digest) for digest in note.digests & left.keys()})
        await self._look_up(left)
        if left and self._down is None:
            for entry in left.values():
                entry.attempts += 1
            self._fly(Note(uuid.uuid4().hex, self._endpoint.name, frozenset(left)), left)
        else:
            for entry in left.values():
                self._queue(entry)

    async def _look_up(self, left: dict[str, Entry]) -> None:
        """Take out what the store has by now: whoever removed a note in this moment had stored its answers before."""
        names = list(left)
        for begin in range(0, len(names), _LOOKED_UP):
            part = names[begin : begin + _LOOKED_UP]
            records = await asyncio.to_thread(self._batches.records, part)
            for digest, record in zip(part, records, strict=True):
                if digest not in self._entries or (record is not None and self._find(left[digest], record)):
                    del left[digest]

    def _find(self, entry: Entry, data: bytes) -> bool:
        """End a request whose answer is in the store by now; tells whether it is one."""
        try:
            record = Record.decode(data)
        except ValueError:
            return False
        reply = classify(record.status, {}, record.body, time.time(), record.api)
        self._count(entry, reply)
        self._end(entry, Result.stored(reply, 0))
        return True

    def _fly(self, note: Note, entries: dict[str, Entry]) -> None:
        flight = Flight(note, entries, self._means, self._settle)
        self._flights[note.token] = flight
        task = asyncio.get_running_loop().create_task(self._follow(flight))
        self._tasks[task] = flight
        task.add_done_callback(self._tasks.pop)

    async def _follow(self, flight: Flight) -> None:
        try:
            reply = await flight.run()
            if reply is not None:
                self._judge(reply, self._of_batches)
        except Exception as error:  # noqa: BLE001 - raised again where the blocks are waited for
            self._fail(flight.entries.values(), error)
        else:
            for entry in tuple(flight.entries.values()):
                if reply is None:
                    self._queue(entry)
                else:
                    self._give_up(entry, reply)
        finally:
            self._flights.pop(flight.note.token, None)
        for entry in flight.late:
            self._queue(entry)

    def _fail(self, entries: Iterable[Entry], error: Exception) -> None:
        for entry in tuple(entries):
            if self._entries.pop(entry.pending.job.digest, None) is not None:
                entry.pending.fail(error)

    def _settle(self, line: Line, entry: Entry | None, durable: Block, number: int) -> None:
        if line.reply.is_final:
            self._store(line, entry, durable, number)
            return
        durable.settle(number, Result.skipped())
        if entry is not None:
            self._retry(entry, line.reply)

    def _store(self, line: Line, entry: Entry | None, durable: Block, number: int) -> None:
        """Store an answer, also one that nobody waits for here: it is paid for, and the note will be removed."""
        attempts, pending = 0, Pending(Job(line.digest, b""), {})
        if entry is not None:
            attempts, pending = max(entry.attempts, 1), entry.pending
            self._of_answers.succeeded()
            self._count(entry, line.reply)
            self._entries.pop(line.digest, None)
        pending.add(durable, number)
        record = Record(line.status, math.nan, line.body, api=self._endpoint.api).encode()
        self._writer.put(pending, record, Result.stored(line.reply, attempts))

    def _count(self, entry: Entry, reply: Reply) -> None:
        taken = self._estimate.taken(entry.pending.job.body, reply)
        self._stats.count(self._endpoint.name, reply, taken)

    def _retry(self, entry: Entry, reply: Reply) -> None:
        """Have a request go along with a later batch, if that is worth it."""
        if entry.policy is None:
            entry.policy = backoff(self._endpoint.retries, base=self._endpoint.backoff_base)
            next(entry.policy)
        with suppress(StopIteration):
            wait = entry.policy.send(reply)
            if self._halted:
                self._end(entry, Result.skipped())
                return
            self._stats.retries[reply.cause] += 1
            asyncio.get_running_loop().call_later(wait, self._queue_again, entry)
            return
        self._judge(reply, self._of_answers)
        self._give_up(entry, reply)

    def _queue_again(self, entry: Entry) -> None:
        if entry.pending.job.digest in self._entries:
            self._queue(entry)

    def _judge(self, reply: Reply, breaker: Breaker) -> None:
        """Give up the model where that was one failure too many; batches that are under way are still waited for."""
        if breaker.failed(reply) and self._down is None:
            self._down = reply
            waiting, self._waiting, self._bytes = self._waiting, [], 0
            for entry in waiting:
                self._give_up(entry, reply)
