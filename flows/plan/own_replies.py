"""Finds the replies that the trials of a merged cube were measured by, where caches have others under the same keys.

Two teams' answers to one question have the same key, each in its team's cache. A merge keeps the one or the other, or
both as repeats; which of the replies at hand is the recorded one is told by what was measured of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.repeat_origins import MERGED, Origin, read_origins
from evalcube.stages.process.reading import read_reply
from evalcube.stages.reply.record import Record
from evalcube.storage.cache.cache import Cache
from evalcube.storage.cache.chain import links_of
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.regions import Region

_RELATIVE, _ABSOLUTE = 1e-6, 2e-6
"""A cube has latencies in single precision, a reply has microseconds."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A trial whose reply is looked for."""

    place: tuple[int, int, int, int, int]
    """Indices of model, task, slot, trial and repeat."""
    key: Callable[[int], str]
    """Key of its reply if it was asked as the repeat of this number."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a trial."""

    key: str
    """Under which its reply stands, or would."""
    reply: bytes | None
    """None if no cache has it."""
    origin: Origin | None = None
    """Where it was measured, if a merge gave it another number."""

    def with_reply(self, reply: bytes) -> Found:
        """The same with this reply."""
        return replace(self, reply=reply)


class OwnReplies:
    """Looks replies up.

    Parameters
    ----------
    cube
        The cube.
    plan
        Its plan.
    caches
        Where to look, in this order; of several that are read as one, each by itself.
    """

    def __init__(self, cube: Cube, plan: Plan, caches: Sequence[Cache]) -> None:
        self._cube, self._plan = cube, plan
        self._caches = [each for cache in caches for each in links_of(cache)]
        self._origins = read_origins(cube.records)
        self._merged = bool(self._origins) or MERGED in cube.attrs
        self._region: tuple[Region | None, dict[str, Any]] = (None, {})

    def get_many(self, trials: Sequence[Asked]) -> list[Found]:
        """The replies of some trials.

        Parameters
        ----------
        trials
            Which.

        Returns
        -------
        list of Found
            One for each. In a cube that was merged, replies with another latency than the recorded one are not those
            of the trials, and are left out.
        """
        if not self._merged:
            keys = [one.key(one.place[-1]) for one in trials]
            return [Found(key, reply) for key, reply in zip(keys, self._first(keys), strict=True)]
        candidates = [self._candidates(one) for one in trials]
        keys = list(dict.fromkeys(each.key for some in candidates for each in some))
        known = [dict(zip(keys, cache.get_many(keys), strict=True)) for cache in self._caches]
        return [
            self._recorded(
                one,
                [
                    each.with_reply(reply)
                    for each in some
                    for replies in known
                    if (reply := replies[each.key])
                ],
            )
            or some[0]
            for one, some in zip(trials, candidates, strict=True)
        ]

    def _first(self, keys: Sequence[str]) -> list[bytes | None]:
        """What the first cache that has a key has there."""
        found: dict[str, bytes | None] = dict.fromkeys(keys)
        for cache in self._caches:
            lacking = [key for key, reply in found.items() if reply is None]
            found.update(zip(lacking, cache.get_many(lacking), strict=True))
        return [found[key] for key in keys]

    def _candidates(self, one: Asked) -> list[Found]:
        """Under which keys the reply may stand, the likeliest first."""
        model, task, slot, _, repeat = one.place
        origins = self._origins.of(self._plan, model, task, slot, repeat)
        found = [Found(one.key(origin.repeat), None, origin) for origin in origins]
        return [*found, Found(one.key(repeat), None)]

    def _recorded(self, one: Asked, replies: Sequence[Found]) -> Found | None:
        """The one of these replies that was measured."""
        if not replies:
            return None
        latency, tokens = self._measured(one.place)
        fitting: dict[bytes, tuple[Found, int]] = {}
        for each in replies:
            try:
                record = Record.decode(each.reply or b"")
            except ValueError:  # whole, but no record: whatever it is, it is no answer
                continue
            if _same(record.latency, latency) and each.reply not in fitting:
                fitting[each.reply or b""] = (each, read_reply(record).completion_tokens)
        same = [each for each, count in fitting.values() if count == tokens]
        # Tokens decide between replies that took equally long; alone they refuse none, as readers learn to count.
        return next(iter(same or [each for each, _ in fitting.values()]), None)

    def _measured(self, place: tuple[int, int, int, int, int]) -> tuple[float, int]:
        """Latency and tokens of a trial as the cube has them."""
        model, task, slot, trial, repeat = place
        chunks = self._cube.chunks
        region = Region(model, trial // chunks["trial"], repeat // chunks["repeat"])
        if self._region[0] != region:  # trials that are looked at one after another are mostly of one region
            self._region = (region, dict(self._cube.read_region(region, ("latency", "tokens"))))
        inside = (task, slot, trial % chunks["trial"], repeat % chunks["repeat"])
        arrays = self._region[1]
        return float(arrays["latency"][inside]), int(arrays["tokens"][inside])


def _same(one: float, other: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
