"""Tells how long requests wait for the event loop that sends them, because it or its process is busy."""

from __future__ import annotations

import asyncio
import sys
import time

_PERIOD_SECONDS = 0.05
_TICK_SECONDS = 0.001
"""What a timer may be late of itself."""
_TURNS = 1 if sys.version_info >= (3, 12) else 2
"""Of the loop that a request waits for: who waits for a reply goes on in the turn after the one in which it is read,
and before Python 3.12 a request is written in the turn after the one in which it is begun."""
_EACH = 5
"""Replies from one look at the rest of its turn to the next."""
_WEIGHT = 0.2
"""Of the newest look in the running means."""


class Lateness:
    """Looks again and again how late a timer is, and how long the rest of a turn takes in which a reply has come.

    Parameters
    ----------
    loop
        Whose lateness it is. All methods belong to its thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._late = self._turn = self._due = 0.0
        self._replies = 0

    def watch(self) -> None:
        """Look from now on."""
        self._due = time.monotonic() + _PERIOD_SECONDS
        self._loop.call_later(_PERIOD_SECONDS, self._look)

    def of_reply(self) -> float:
        """Seconds that a request whose reply goes on now has waited for this process, as is usual lately."""
        # Looked at from replies, as few turns, and long ones, hold most of them; of any place in the turn, by turns.
        self._replies += 1
        if self._replies % _EACH == 0:
            self._loop.call_soon(self._turned, time.monotonic())
        return self._late + _TURNS * self._turn

    def _look(self) -> None:
        late = max(time.monotonic() - self._due - _TICK_SECONDS, 0.0)
        self._late += _WEIGHT * (late - self._late)
        self.watch()

    def _turned(self, begun: float) -> None:
        self._turn += _WEIGHT * (time.monotonic() - begun - self._turn)
