"""Records in, in batches into the store, off the event loop; only what is stored counts as done."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, Protocol

from stages.infer.jobs import Result
from stages.infer.pending import Pending

_BATCH = 256


class Store(Protocol):
    """Where records go; durable when `put_many` returns."""

    def put_many(self, items: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Store records under their digests; the first of equal digests wins."""


class Entry(NamedTuple):
    """A record to store, and what to tell those who wait for it then."""

    pending: Pending
    record: bytes
    result: Result


class Writer:
    """Stores one batch after another on a thread of its own: whatever came meanwhile is the next one.

    All methods belong to the event loop's thread.
    """

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evalcube-store")
        self._waiting: list[Entry] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, entry: Entry) -> None:
        """Store a record soon."""
        self._waiting.append(entry)
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
        batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
        self._pool.submit(self._write, batch)

    def _write(self, batch: Sequence[Entry]) -> None:
        """Runs on the writer's thread."""
        problem: Exception | None = None
        try:
            self._store.put_many([(entry.pending.job.digest, entry.record) for entry in batch])
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            problem = error
        try:
            self._loop.call_soon_threadsafe(self._settle, batch, problem)
        except RuntimeError:
            return  # the loop is closed: the store took too long, nobody waits any more

    def _settle(self, batch: Sequence[Entry], problem: Exception | None) -> None:
        for entry in batch:
            if problem is None:
                entry.pending.resolve(entry.result)
            else:
                entry.pending.fail(problem)
        self._next()
