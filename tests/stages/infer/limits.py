"""Limits that servers keep: how many they let in, and when refusals say to come again."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any


class Limit:
    """What servers have in common: refusals that say nothing of when to come again."""

    def pause(self, now: float) -> float:  # noqa: ARG002 - what other limits depend on
        return 0.0


@dataclass
class Bucket(Limit):
    """Tokens that come at a rate, with room for some: nginx's `limit_req` with `burst` and `nodelay`, and many more."""

    rate: float
    burst: float = 0.0
    retry_after: float = 0.0
    _level: float = field(default=math.nan, init=False)
    _at: float = field(default=0.0, init=False)

    def asked(self, now: float, in_flight: int) -> bool:  # noqa: ARG002 - what other limits depend on
        full = self.burst + 1.0
        level = full if math.isnan(self._level) else min(full, self._level + (now - self._at) * self.rate)
        self._at = now
        taken = level >= 1.0 - 1e-9
        self._level = level - taken
        return taken

    def pause(self, now: float) -> float:  # noqa: ARG002 - what other limits depend on
        return self.retry_after


@dataclass
class FixedWindow:
    """So many in each window, which all begin at the same times."""

    count: int
    seconds: float = 60.0
    says: bool = False
    """Whether refusals say when the next window begins."""
    _window: float = field(default=-1.0, init=False)
    _used: int = field(default=0, init=False)

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    def asked(self, now: float, in_flight: int) -> bool:  # noqa: ARG002 - what other limits depend on
        if now // self.seconds != self._window:
            self._window, self._used = now // self.seconds, 0
        taken = self._used < self.count
        self._used += taken
        return taken

    def pause(self, now: float) -> float:
        return self.seconds - now % self.seconds if self.says else 0.0


@dataclass
class SlidingWindow(Limit):
    """So many in any time span of a length."""

    count: int
    seconds: float = 60.0
    _taken: deque[float] = field(default_factory=deque, init=False)

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    def asked(self, now: float, in_flight: int) -> bool:  # noqa: ARG002 - what other limits depend on
        while self._taken and self._taken[0] <= now - self.seconds:
            self._taken.popleft()
        if len(self._taken) >= self.count:
            return False
        self._taken.append(now)
        return True


@dataclass
class Concurrency(Limit):
    """So many in flight at once."""

    most: int
    latency: float

    @property
    def rate(self) -> float:
        return self.most / self.latency

    def asked(self, now: float, in_flight: int) -> bool:  # noqa: ARG002 - what other limits depend on
        return in_flight < self.most


@dataclass
class Changing:
    """One limit, and from some time on another."""

    first: Any
    then: Any
    at: float

    def _now(self, now: float) -> Any:
        return self.first if now < self.at else self.then

    @property
    def rate(self) -> float:
        return float(self.then.rate)

    def asked(self, now: float, in_flight: int) -> bool:
        return bool(self._now(now).asked(now, in_flight))

    def pause(self, now: float) -> float:
        return float(self._now(now).pause(now))


@dataclass
class Flaky(Limit):
    """No limit at all, but some requests fail with the same status as of one."""

    share: float
    rate: float = math.nan
    _random: random.Random = field(default_factory=lambda: random.Random(1), init=False)

    def asked(self, now: float, in_flight: int) -> bool:  # noqa: ARG002 - what other limits depend on
        return self._random.random() >= self.share
