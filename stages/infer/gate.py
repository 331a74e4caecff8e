"""Requests that want to start in; they wait here for their turn, first come first served. Used on one event loop."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from stages.infer.rates import Share, Throttle

_SHORTEST_SLEEP = 0.001


Guess = Callable[[], float]
"""Tells how many tokens a request will take, as far as is known when it is asked."""


@dataclass(eq=False, slots=True)
class _Waiter:
    owner: object
    guess: Guess
    turn: asyncio.Future[float | None]


class Gate:
    """Lets requests start as the limits of an endpoint allow; each that was let in is to `leave`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._throttle = Throttle()
        self._waiting: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request takes."""
        return self._throttle.counts_tokens

    @property
    def epoch(self) -> int:
        """See `stages.infer.aimd.Window.epoch`."""
        return self._throttle.window.epoch

    def retune(self, share: Share) -> None:
        """Take another share of the endpoint."""
        self._throttle.retune(share, self._loop.time())
        self._admit()

    def try_enter(self, tokens: float) -> bool:
        """Start at once, if nobody waits and nothing stands against it."""
        limits = self._throttle
        if self._waiting or limits.in_flight >= limits.window.limit:
            return False
        now = 0.0
        if limits.timed:
            now = self._loop.time()
            if limits.wait(tokens, now) > 0.0:
                return False
        limits.start(tokens, now)
        return True

    async def enter(self, guess: Guess, owner: object) -> float | None:
        """Wait until it is this request's turn; the tokens that were guessed, or None if its owner was dismissed."""
        waiter = _Waiter(owner, guess, self._loop.create_future())
        self._waiting.append(waiter)
        self._admit()
        return await waiter.turn

    def leave(self) -> None:
        """End a request."""
        self._throttle.in_flight -= 1
        if self._waiting:
            self._admit()

    def correct(self, tokens: float) -> None:
        """Note that a request took so many tokens more than was thought, or less if negative."""
        self._throttle.correct(tokens, self._loop.time())

    def succeeded(self) -> None:
        """Note an answer."""
        self._throttle.window.succeeded()

    def congested(self, epoch: int) -> bool:
        """Note that the endpoint was overloaded for a request that started in `epoch`; tells whether that was news."""
        return self._throttle.window.congested(epoch)

    def pause(self, seconds: float) -> None:
        """Let nothing start for so long."""
        self._throttle.pause(seconds, self._loop.time())

    def dismiss(self, owner: object | None = None) -> None:
        """Send away who waits for `owner`, or all."""
        kept: deque[_Waiter] = deque()
        for waiter in self._waiting:
            if owner is None or waiter.owner is owner:
                _tell(waiter, None)
            else:
                kept.append(waiter)
        self._waiting = kept
        self._admit()

    def _admit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._loop.time()
        while self._waiting:
            first = self._waiting[0]
            if first.turn.done():  # its carrier was cancelled
                self._waiting.popleft()
                continue
            tokens = first.guess() if self.counts_tokens else 0.0
            wait = self._throttle.wait(tokens, now)
            if wait > 0.0:
                if math.isfinite(wait):
                    self._timer = self._loop.call_later(max(wait, _SHORTEST_SLEEP), self._admit)
                return
            self._waiting.popleft()
            self._throttle.start(tokens, now)
            _tell(first, tokens)


def _tell(waiter: _Waiter, tokens: float | None) -> None:
    if not waiter.turn.done():
        waiter.turn.set_result(tokens)
