"""Turns of the event loop: work on what endpoints send is cut into milliseconds, and shared fairly between models.

One loop serves all endpoints of a process, and what they send is anybody's: bytes that cost little to send may cost
minutes to read. So each reply is worked off in turns. Between two of them the loop serves others, a deadline ends the
reply, and a stop cancels it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TypeVar

import aiohttp

PIECE_BYTES = 4096
"""Of what is worked off at once: even of lines of one byte it takes some milliseconds only."""
_TURN_SECONDS = 0.001
"""Work on a reply after which others have a turn; nearly all replies take less as a whole."""
_BYTE_SECONDS = 1e-6
"""What work on a byte takes at most: on an empty line."""
_SOME = 4
_LATE_SECONDS = 0.003
"""How late the loop is when it has more to do than it can."""

T = TypeVar("T")


class LoopShare:
    """One model's part of an event loop, for all that its replies take beyond a millisecond each.

    Parameters
    ----------
    neighbours
        Returns how many other models the loop serves at the moment.
    """

    def __init__(self, neighbours: Callable[[], int] = lambda: 0) -> None:
        self._neighbours = neighbours
        # Replies of one model that take long rest one after another: many of them get no more than one.
        self._lock = asyncio.Lock()

    async def rest(self, work: float, due: float) -> None:
        """Leave the loop to others after some seconds of `work`: for longer where it is busy, but not beyond `due`."""
        neighbours = self._neighbours()
        if not neighbours:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due), self._lock:
                until = time.monotonic() + work * min(neighbours, _SOME)
                await asyncio.sleep(until - time.monotonic())
                # A timer that is late says that others have to wait: then each model gets an equal part.
                if time.monotonic() - until > _LATE_SECONDS:
                    await asyncio.sleep(work * neighbours)


class LoopTurns:
    """The turns in which one reply is worked off.

    Parameters
    ----------
    share
        Its model's.
    due
        When it is late, on the monotonic clock. May be moved.
    """

    __slots__ = ("_begun", "_share", "_work", "due")

    def __init__(self, share: LoopShare, due: float) -> None:
        self.due = due
        self._share = share
        self._work = self._begun = 0.0

    def begin(self) -> None:
        """Count work from now on: until now others had the loop."""
        self._begun = time.monotonic()

    async def take_turn(self, size: int) -> None:
        """Let others have a turn if this one was long enough, after work on as many bytes."""
        now = time.monotonic()
        # A thread that waits for a busy machine does not work; its own clock, which knows, is slow to read.
        self._work += min(now - self._begun, size * _BYTE_SECONDS)
        if self._work >= _TURN_SECONDS:
            work, self._work = self._work, 0.0
            await self._share.rest(work, self.due)
            now = time.monotonic()
        self._begun = now
        if now >= self.due:
            raise TimeoutError

    async def take(self, steps: Generator[int, None, T]) -> T:
        """What steps come to, with a turn for others between any two; each says on how many bytes it has worked."""
        while True:
            try:
                size = next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.take_turn(size)


class Pieces:
    """A body in pieces, as it arrives, with a turn for others after each.

    Parameters
    ----------
    content
        The body.
    turns
        Of its reply.
    """

    def __init__(self, content: aiohttp.StreamReader, turns: LoopTurns) -> None:
        self._content = content
        self._turns = turns
        self._part = b""
        self._at = self._size = 0
        turns.begin()

    def __aiter__(self) -> Pieces:
        """Itself: a class, as a generator that is left early ends in a task of its own."""
        return self

    async def __anext__(self) -> bytes:
        """The next piece."""
        await self._turns.take_turn(self._size)
        if self._at >= len(self._part):
            # Not waited for if there is more already, as what unpacks it is work, too.
            self._part, self._at = self._content.read_nowait(), 0
            if not self._part:
                self._part = await self._content.readany()
                self._turns.begin()
            if not self._part:
                raise StopAsyncIteration
        begin, self._at = self._at, self._at + PIECE_BYTES
        piece = self._part[begin : self._at]
        self._size = len(piece)
        return piece
