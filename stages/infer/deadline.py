"""Ends requests that take too long, with one timer for all of them.

`asyncio.timeout` sets one for each, which was 5% of a busy worker's CPU: to end it takes uvloop another turn, at which
the loop's thread waits until others that make questions or grade let it go on.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

_STOPPED_SECONDS = 5.0
"""How late a timer is where the process was stopped, and not only busy."""


class _Waited(Protocol):
    def set_exception(self, exc: BaseException) -> None:
        """Have who waits for it, or ever will, get an exception."""


class Exchange:
    """One request, of which some part is waited for."""

    __slots__ = ("_waited", "due")

    def __init__(self, due: float) -> None:
        self.due = due
        """When it is late, by the loop's clock."""
        self._waited: list[_Waited] | None = []

    def waits_for(self, part: _Waited) -> None:
        """Wait for a part of it, too."""
        # Late already: it expired between two parts that were waited for.
        if self._waited is None:
            raise TimeoutError
        self._waited.append(part)

    def expire(self) -> None:
        """Have whoever waits for a part of it get a `TimeoutError`."""
        waited, self._waited = self._waited or (), None
        for part in waited:
            part.set_exception(TimeoutError())


class Deadline:
    """Requests under way, and the timer of the oldest. All methods belong to the event loop's thread.

    Parameters
    ----------
    seconds
        How long each may take; the same for all, so that they are late in the order in which they began.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._open: dict[Exchange, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> Exchange:
        """A request begins."""
        begun = Exchange(loop.time() + self._seconds)
        self._open[begun] = None
        if self._timer is None:
            self._timer = loop.call_at(begun.due, self._look, loop, begun.due)
        return begun

    def end(self, over: Exchange) -> None:
        """A request is over, late or not."""
        self._open.pop(over, None)

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """End those that are late, and look again when the next one may be."""
        self._timer, stop = None, loop.time() - due
        if stop > _STOPPED_SECONDS:
            # While this process was stopped no reply could be read: what has come meanwhile is read now.
            for each in self._open:
                each.due += stop + _STOPPED_SECONDS
        for each in tuple(self._open):
            if each.due > loop.time():
                self._timer = loop.call_at(each.due, self._look, loop, each.due)
                return
            self.end(each)
            each.expire()


async def wait_unless_over(seconds: float, over: asyncio.Event) -> bool:
    """Wait, but not longer than until it is over; returns whether it is."""
    if seconds > 0:
        with suppress(TimeoutError):
            # `wait_for` may lose a cancellation that comes together with the event.
            async with asyncio.timeout(seconds):
                await over.wait()
    return over.is_set()
