"""Admits requests to an endpoint in the order in which they came, as fast as its limits allow.

The limits themselves are pure (`evalcube.stages.infer.rates.Throttle`); here are their clock, those who wait, and what
replies say of the limits.
Everything runs on one event loop, so that between two awaits nothing changes.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from evalcube.stages.infer.counts import Mark
from evalcube.stages.infer.jobs import Learned, Slowdown
from evalcube.stages.infer.rates import Quota, Throttle
from evalcube.stages.infer.reply import Reply
from evalcube.stages.infer.retry import is_let_through, is_overload, is_refusal, longest_pause, pause_reason
from evalcube.stages.infer.sharing import Setting

_SHORTEST_SLEEP = 0.001


Guess = Callable[[], float]
"""Returns how many tokens a request will take, as far as is known when it is called."""


@dataclass(eq=False, slots=True)
class _Waiter:
    owner: object
    """Model that it belongs to; see `Admission.dismiss`."""
    guess: Guess
    turn: asyncio.Future[float | None]
    """Done with the tokens that were guessed when it was admitted, or with None when its owner was dismissed."""


class Admission:
    """Lets requests start as the limits of an endpoint allow; each that was admitted is to `leave`, however it ends."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.throttle = Throttle()
        """The limits themselves; what may admit those who wait goes by the methods here."""
        self._compare_clocks()
        self._waiting: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Requests that wait to be admitted."""
        return len(self._waiting)

    @property
    def mark(self) -> Mark:
        """What a request that starts now is to be judged by when its answer comes."""
        throttle = self.throttle
        return Mark(self._loop.time(), throttle.in_flight, throttle.gate.epoch)

    def retune(self, quota: Quota, timeout: float, workers: int) -> None:
        """Be one of `workers` that share an endpoint's quota, whose requests may take `timeout` seconds."""
        self.throttle.retune(quota, self._loop.time(), timeout, workers)
        # A larger share may admit those who wait, and nothing else would wake them while no request is in flight.
        self._admit()

    def try_enter(self, tokens: float) -> bool:
        """Start at once, if nobody waits and no limit is reached; returns whether it started."""
        limits = self.throttle
        # Behind those who wait, even if this one were small enough: a large request would wait for ever otherwise.
        if self._waiting or limits.in_flight >= limits.window:
            return False
        now = 0.0
        # Most endpoints have neither rates nor pauses: then no clock is read, here or in `start`.
        if limits.timed:
            now = self._loop.time()
            if limits.wait(tokens, now) > 0.0:
                return False
        limits.start(tokens, now)
        return True

    async def enter(self, guess: Guess, owner: object, *, first: bool = False) -> float | None:
        """Wait until it is this request's turn; the tokens that were guessed, or None if its owner was dismissed."""
        waiter = _Waiter(owner, guess, self._loop.create_future())
        if first:
            self._waiting.appendleft(waiter)
        else:
            self._waiting.append(waiter)
        # It may be admitted in this call, or set the timer that admits it; either is seen by the await.
        self._admit()
        return await waiter.turn

    def leave(self) -> None:
        """End a request."""
        self.throttle.in_flight -= 1
        if self._waiting:
            self._admit()

    def note_refused(self, mark: Mark, pause: float) -> None:
        """Note that the endpoint refused a request and asked to wait."""
        if self.throttle.note_refused(self._loop.time(), mark, pause):
            # Whoever waits may have to wait for a turn now.
            self._admit()

    def obey(self, setting: Setting, worker: str) -> None:
        """Do the part of this worker, by its name, of what was decided for all."""
        self._compare_clocks()
        self.throttle.obey(setting, self._loop.time(), worker)
        self._admit()

    def _compare_clocks(self) -> None:
        self.throttle.gate.offset = time.time() - self._loop.time()

    def dismiss(self, owner: object | None = None) -> None:
        """Send away those who wait for `owner`, or all; requests that were admitted go on."""
        # Rebuilt instead of removed one by one: there may be as many as connections, and this happens once a model.
        remaining: deque[_Waiter] = deque()
        for waiter in self._waiting:
            if owner is None or waiter.owner is owner:
                _end_wait(waiter, None)
            else:
                remaining.append(waiter)
        self._waiting = remaining
        # The first one may have been a large request that held back smaller ones of other models.
        self._admit()

    def _admit(self) -> None:
        """Start all who may start now, and come back when the next one may."""
        # One timer for all, set anew each time: what it was set for may have changed with a share, a pause or a guess.
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._loop.time()
        while self._waiting:
            first = self._waiting[0]
            # Its task was cancelled: a place given to it would never be left.
            if first.turn.done():
                self._waiting.popleft()
                continue
            tokens = first.guess() if self.throttle.counts_tokens else 0.0
            wait = self.throttle.wait(tokens, now)
            if wait > 0.0:
                # Infinite: until a request in flight ends, whose `leave` calls this.
                if math.isfinite(wait):
                    self._timer = self._loop.call_later(max(wait, _SHORTEST_SLEEP), self._admit)
                return
            self._waiting.popleft()
            # Counted here, not when its task goes on: the loop runs others before, who would find the place free.
            self.throttle.start(tokens, now)
            _end_wait(first, tokens)


def _end_wait(waiter: _Waiter, tokens: float | None) -> None:
    if not waiter.turn.done():
        waiter.turn.set_result(tokens)


class Feedback:
    """Adapts what may start at one endpoint to its replies, and to what other workers learned from theirs.

    Used on the event loop's thread; `lessons` and `paused` are read from others.

    Parameters
    ----------
    admission
        Lets the endpoint's requests start.
    now
        The loop's clock, seconds.
    """

    def __init__(self, admission: Admission, now: Callable[[], float]) -> None:
        self._admission = admission
        self._now = now
        self._let_through_at = math.inf
        """When the endpoint last let a request through, or when the first one was sent."""
        self.paused = (-math.inf, "")
        """End of the pause that lasts longest, and why."""
        self.lessons = Learned()
        """What this worker learned of pauses, overloads and limits; another thread reads it without a lock."""

    @property
    def shut_seconds(self) -> float:
        """For how long the endpoint has let nothing through; not above 0 where nothing was sent yet."""
        return self._now() - self._let_through_at

    def begin_again(self) -> None:
        """Forget for how long nothing was let through."""
        self._let_through_at = math.inf

    def note_start(self, mark: Mark) -> None:
        """Note that a request is sent."""
        self._let_through_at = min(self._let_through_at, mark.started)

    def adapt_rate(self, reply: Reply, mark: Mark) -> None:
        """Go slower or faster, as an attempt suggests."""
        admission = self._admission
        if is_let_through(reply):
            self._let_through_at = self._now()
            admission.throttle.note_passed(self._now(), mark, reply.completion_tokens)
        # A reply that counts may still say that it was the last one for now.
        if reply.is_final and reply.exhausted is None:
            return
        pause = longest_pause(reply)
        if is_refusal(reply):
            admission.note_refused(mark, pause)
        elif is_overload(reply) and admission.throttle.note_overload(self._now(), mark):
            self.lessons = self.lessons._replace(overloads=self.lessons.overloads + 1)
        if pause > 0.0:
            self._pause_all(pause, pause_reason(reply))
            until = self._now() + pause
            if until > self.lessons.paused_until:
                self.lessons = self.lessons._replace(paused_until=until, reason=pause_reason(reply))

    def slow_down(self, slowdown: Slowdown) -> None:
        """Take over what was decided for all workers, or what another one learned."""
        if slowdown.setting is not None:
            self._admission.obey(slowdown.setting, slowdown.worker)
        if slowdown.pause > 0.0:
            self._pause_all(slowdown.pause, slowdown.reason)

    def _pause_all(self, seconds: float, reason: str) -> None:
        """Let nothing start for some time; of several pauses the one that ends last counts."""
        self._admission.throttle.pause(seconds, self._now())
        if self._now() + seconds > self.paused[0]:
            self.paused = self._now() + seconds, reason
