"""Puts records into the store, commits them in batches on a thread, and only then lets their requests count.

A record is visible to other processes once it is put, and survives a power cut once it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, Protocol

from evalcube.stages.infer.jobs import Result, SharedJob

_PAUSE_SECONDS = 0.03
"""Between two commits. A reply counts that much later, which nobody waits for but its block."""


class Store(Protocol):
    """Where records go."""

    def put_all(self, records: Sequence[tuple[str, bytes]]) -> object:
        """Store records, where they outlive this process; the first of equal digests wins."""

    def commit(self) -> None:
        """Make everything that was put outlive a power cut as well."""


class Arrival(NamedTuple):
    """A record, and the result for those who wait for it once it is durable."""

    shared: SharedJob
    result: Result
    record: bytes
    put: asyncio.Future[None]
    """Done when it is stored, or cannot be."""


class Writer:
    """Puts records as they arrive, and commits one batch after another on a thread of its own.

    A record is put before its connection is free for the next request: a killed process loses no more than one
    request per connection. What arrives in one turn of the loop is put together: each write lets another thread go on,
    and a thread that grades keeps the loop waiting for milliseconds then. Committing costs a disk's time, so whatever
    arrives meanwhile is the next batch. All public methods belong to the event loop's thread.

    Parameters
    ----------
    store
        Where records go; `Store.put_all` is called on the loop's thread, `Store.commit` on the writer's.
    loop
        The event loop.
    broken
        Called when something could not be stored: a further reply would be paid for and lost.
    """

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        broken: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._loop = loop
        self._broken = broken
        # One thread: commits never overlap, so that results come in the order in which their records were put.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evalcube-store")
        self._arrived: list[Arrival] = []
        self._waiting: list[tuple[SharedJob, Result]] = []
        """Of those that were put."""
        self._idle = asyncio.Event()
        """Set while nothing is put that waits, and no commit is under way."""
        self._idle.set()

    def put(self, shared: SharedJob, record: bytes, result: Result) -> asyncio.Future[None]:
        """Store a record, and resolve its job when it is durable."""
        put = self._loop.create_future()
        if not self._arrived:
            self._loop.call_soon(self._put)
        self._arrived.append(Arrival(shared, result, record, put))
        return put

    def _put(self) -> None:
        arrived, self._arrived = self._arrived, []
        if not arrived:
            return
        try:
            # On the loop's thread, as it costs less than handing it to another: it is written, not synced.
            self._store.put_all([(each.shared.job.digest, each.record) for each in arrived])
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            # Here, not by `broken` alone, which ends the engine's jobs: a batch's answer that nobody asked for is none.
            for each in arrived:
                each.shared.fail(error)
            self._broken(error)
        else:
            self._waiting += [(each.shared, each.result) for each in arrived]
        for each in arrived:
            if not each.put.done():  # whoever waited for it was cancelled
                each.put.set_result(None)
        if self._waiting and self._idle.is_set():
            self._idle.clear()
            self._next()

    async def close(self, seconds: float) -> None:
        """Wait until all is stored, `seconds` seconds at most."""
        self._put()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        # Without waiting: a store that hangs, as a network file system may, must not hang the worker's exit.
        self._pool.shutdown(wait=False)

    def _next(self) -> None:
        # Idle is decided here alone, on the loop: a record that is put now either goes along or starts the next round.
        if not self._waiting:
            self._idle.set()
            return
        batch, self._waiting = self._waiting, []
        self._pool.submit(self._write, batch)

    def _write(self, batch: Sequence[tuple[SharedJob, Result]]) -> None:
        """Commit on the writer's thread, and report on the loop's."""
        problem: Exception | None = None
        try:
            self._store.commit()
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            problem = error
        try:
            # Jobs and blocks belong to the loop's thread: nothing is resolved here.
            self._loop.call_soon_threadsafe(self._settle, batch, problem)
        except RuntimeError:
            return  # the loop is closed: the store took too long, nobody waits any more

    def _settle(self, batch: Sequence[tuple[SharedJob, Result]], problem: Exception | None) -> None:
        if problem is not None:
            self._broken(problem)
        for shared, result in batch:
            # After a failed commit all of them fail, though some may be durable: nobody knows which.
            if problem is None:
                shared.resolve(result)
            else:
                shared.fail(problem)
        # Each commit wakes another thread and waits for the disk: what arrives meanwhile shares the next one.
        self._loop.call_later(_PAUSE_SECONDS, self._next)
