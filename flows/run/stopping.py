"""Looks, while a run goes on, whether its program, or who can write its cube, wants it to stop in good order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from evalcube.flows.plan.stopping import STOP, who_stops
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError

_POLL_SECONDS = 0.5
_STORE_SECONDS = 2.0
"""Where each look is a request that has its price."""
_CLOSING_SECONDS = 5.0
_PROGRAM = "the program that began it"


class StopWish:
    """Whether somebody wants a run to stop; a context in which that is looked up.

    Parameters
    ----------
    records
        Of the cube.
    token
        Of the run's lease.
    note
        Called, from any thread, with what the user should read.
    event
        What the program that began the run sets to stop it.
    """

    def __init__(
        self,
        records: Space,
        token: str,
        note: Callable[[str], None] = lambda _: None,
        event: threading.Event | None = None,
    ) -> None:
        self._records, self._token, self._note = records, token, note
        self._seconds = _STORE_SECONDS if records.trusted else _POLL_SECONDS
        self._over, self._event = threading.Event(), event
        # A thread, as a store may be slow; a daemon, as a process that ends is not kept alive by it.
        self._thread = threading.Thread(target=self._watch, name="evalcube-stop", daemon=True)
        self.by = self._program()
        """Who wants it; empty if nobody does."""
        self._stop: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_CLOSING_SECONDS)
        self._forget()

    def call(self, stop: Callable[[], None]) -> None:
        """Have `stop` called, from any thread, once somebody wants it, and at once if somebody does already."""
        self._stop = stop
        if self.by:
            stop()

    def _watch(self) -> None:
        while not self._over.wait(self._seconds):
            if by := self._program() or who_stops(self._records, self._token):
                self.by = by
                self._stop()
                self._note(f"stopping, as {by} wants it")
                self._forget()  # so that whoever asked sees that it was heard
                return

    def _program(self) -> str:
        return _PROGRAM if self._event is not None and self._event.is_set() else ""

    def _forget(self) -> None:
        with suppress(OSError, StorageError):
            self._records.delete(STOP, durable=False)
