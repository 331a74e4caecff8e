"""Turns Ctrl-C, SIGTERM and SIGHUP into a sweep that stops in good order, or at once the second time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcube.flows.run.summary import RunSummary


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
    def held(self) -> Iterator[None]:
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
