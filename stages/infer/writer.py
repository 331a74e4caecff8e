"""Records in, into the store: visible at once, durable in batches off the event loop; only then do they count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, Protocol

from stages.infer.jobs import Result
from stages.infer.pending import Pending

_PAUSE_SECONDS = 0.03
"""Between two commits. A reply counts that much later, which nobody waits for but its block."""


class Store(Protocol):
    """Where records go."""

    def put(self, key: str, value: bytes) -> bool:
        """Store a record under its digest, where it outlives this process; the first of equal digests wins."""

    def commit(self) -> None:
        """Make everything that was put outlive a power cut as well."""


class Entry(NamedTuple):
    """A record that was put, and what to tell those who wait for it once it is durable."""

    pending: Pending
    result: Result


class Writer:
    """Puts records as they arrive, and commits one batch after another on a thread of its own.

    A record is put before its connection is free for the next request: a killed process loses no more than one
    request per connection. Committing costs a disk's time, so whatever arrives meanwhile is the next batch. All
    methods belong to the event loop's thread.

    Parameters
    ----------
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
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evalcube-store")
        self._waiting: list[Entry] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, pending: Pending, record: bytes, result: Result) -> None:
        """Store a record; its block hears of it when it is durable."""
        try:
            self._store.put(pending.job.digest, record)
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            pending.fail(error)
            self._broken(error)
            return
        self._waiting.append(Entry(pending, result))
        if self._idle.is_set():
            self._idle.clear()
            # Not at once: what arrives in the same turn of the loop goes along.
            self._loop.call_soon(self._next)

    async def close(self, patience: float) -> None:
        """Wait until all is stored, `patience` seconds at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), patience)
        self._pool.shutdown(wait=False)

    def _next(self) -> None:
        if not self._waiting:
            self._idle.set()
            return
        batch, self._waiting = self._waiting, []
        self._pool.submit(self._write, batch)

    def _write(self, batch: Sequence[Entry]) -> None:
        """Runs on the writer's thread."""
        problem: Exception | None = None
        try:
            self._store.commit()
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            problem = error
        try:
            self._loop.call_soon_threadsafe(self._settle, batch, problem)
        except RuntimeError:
            return  # the loop is closed: the store took too long, nobody waits any more

    def _settle(self, batch: Sequence[Entry], problem: Exception | None) -> None:
        if problem is not None:
            self._broken(problem)
        for entry in batch:
            if problem is None:
                entry.pending.resolve(entry.result)
            else:
                entry.pending.fail(problem)
        # Each commit wakes another thread and waits for the disk: what arrives meanwhile shares the next one.
        self._loop.call_later(_PAUSE_SECONDS, self._next)
