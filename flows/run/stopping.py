"""Stops a run in good order: at a signal, or as the program that began it or somebody beside the cube wishes."""

from __future__ import annotations

import getpass
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from evalcube import known_as
from evalcube.flows.errors import SweepError
from evalcube.flows.state.records import STOP, ask_to_stop, who_stops
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder, read_holder
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import Address

if TYPE_CHECKING:
    from evalcube.flows.run.summary import RunSummary


@known_as("evalcube.events")
class RunInterrupted(KeyboardInterrupt):
    """A signal, after the run that it stopped has ended in good order: whoever called `run` must not go on unheard.

    Parameters
    ----------
    summary
        What the run did, and what is left.
    """

    def __init__(self, summary: RunSummary) -> None:
        super().__init__("the run was stopped by a signal; run it again to go on")
        self.summary = summary


class Interrupt:
    """What a signal does: at first what `stop` is set to; the next time, or without it, ``KeyboardInterrupt``."""

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None
        self.stopped = False
        """Whether a signal has had `stop` called."""
        self._held = False
        self._pending = False

    def __call__(self, number: int, frame: object) -> None:  # noqa: ARG002 - the interface of handlers
        """Handle a signal."""
        # The second signal goes through even where the first is held: whoever insists does not want to wait.
        if self._held and not self._pending:
            self._pending = True
            return
        if self.stop is None:
            raise KeyboardInterrupt
        # Taken away before it is called, so that the next signal ends the process whatever `stop` is doing.
        stop, self.stop, self.stopped = self.stop, None, True
        stop()

    @contextmanager
    def hold_signals(self) -> Iterator[None]:
        """Put a first signal off to the end of the context, so that what is begun there is not left half-built."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending:
            raise KeyboardInterrupt


@contextmanager
def stop_on_interrupt() -> Iterator[Interrupt]:
    """Handle signals while the context lasts.

    In a thread other than the main one signals are left alone, and the caller gets its ``KeyboardInterrupt``.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    # A terminal that is closed, or a login that ends; whoever says `nohup` wants it to go on.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_POLL_SECONDS = 0.5
_STORE_SECONDS = 2.0
"""Where each look is a request that has its price."""
_CLOSING_SECONDS = 5.0
_PROGRAM = "the program that began it"


class StopWish:
    """Whether a run is to stop, for all that work on it; a context in which it is looked up who wants that.

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
        self._seconds = _STORE_SECONDS if records.is_object_store else _POLL_SECONDS
        self._over, self._event = threading.Event(), event
        # A thread, as a store may be slow; a daemon, as a process that ends is not kept alive by it.
        self._thread = threading.Thread(target=self._watch, name="evalcube-stop", daemon=True)
        self.by = self._program()
        """Who wants it, of those beside the cube and the program that began it; empty if none of them does."""
        self.stopped = bool(self.by)
        """Whether nothing more is to be submitted. Once it is true it stays so, over all rounds."""
        self.hint = ""
        """What the note on stopping ends with."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        # Not for good: it may be waiting for a store that does not answer.
        self._thread.join(_CLOSING_SECONDS)
        self._forget()

    def stop(self, hint: str = "") -> None:
        """Submit nothing more; requests in flight still end and count. For signal handlers and any thread."""
        # Nothing but flags: a handler runs between any two instructions of the thread that holds the locks.
        self.hint, self.stopped = hint, True

    def _watch(self) -> None:
        while not self._over.wait(self._seconds):
            if by := self._program() or who_stops(self._records, self._token):
                self.by = by
                # Before the note, as whoever shows it may be slow.
                self.stop()
                self._note(f"stopping: requested by {by}")
                self._forget()  # so that whoever asked sees that it was heard
                return

    def _program(self) -> str:
        return _PROGRAM if self._event is not None and self._event.is_set() else ""

    def _forget(self) -> None:
        with suppress(OSError, StorageError):
            self._records.delete(STOP, durable=False)


_HEARD_SECONDS = 30.0


def stop_run(url: Address, *, wait: float = _HEARD_SECONDS) -> None:
    """Ask the run that works on a cube to stop in good order; wait up to `wait` seconds until it has heard."""
    records = Cube.open(url).records
    holder = apparent_holder(records)
    if holder is None:
        raise SweepError(f"no run works on '{url}' at the moment", "`evalcube status` shows how far it is")
    ask_to_stop(records, holder.token, _sender())
    deadline = time.monotonic() + wait
    # It was heard once the wish is gone from the cube, or the run has ended by itself.
    while who_stops(records, holder.token) and not _is_over(records, holder.token):
        if time.monotonic() > deadline:
            raise SweepError(
                f"the run on '{url}' has not answered within {wait:g} s",
                "It stops when it looks, as after starting a model's server; `evalcube status` shows whether it has",
            )
        time.sleep(_POLL_SECONDS)


def _is_over(records: Space, token: str) -> bool:
    try:
        holder = read_holder(records)
    except (OSError, StorageError):
        return False  # a store that is away for a moment
    return holder is None or holder[0].token != token


def _sender() -> str:
    name = "somebody"
    with suppress(OSError, KeyError):  # a user without a name, as in some containers
        name = getpass.getuser()
    return f"{name}@{platform.node()}"
