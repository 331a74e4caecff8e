"""A seed and sizes in; which process gets which signal at which moment of a sweep out. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass

TARGETS = ("worker", "nanny", "scheduler", "driver", "simulator", "tree")
"""What may be struck; a ``tree`` is the driver with all that it started."""

_SINGLE = {"worker": 34, "nanny": 8, "scheduler": 7, "driver": 24, "tree": 6, "simulator": 14}
_TOGETHER = ("worker", "nanny", "scheduler", "driver", "simulator")
_STOPPED = ("worker", "driver", "simulator", "scheduler")
_SEVERAL, _STOPS = 0.10, 0.06
_EARLY, _COMMIT = 0.35, 0.15


@dataclass(frozen=True)
class Strike:
    """One moment at which processes are killed or stopped."""

    number: int
    at: int
    """Requests that the simulator must have counted before."""
    targets: tuple[str, ...]
    stopped: float = 0.0
    """Seconds of SIGSTOP; 0 is SIGKILL."""
    moment: str = "flight"
    """``flight`` at once; ``start`` soon after the next driver starts; ``commit`` when the next receipt is written."""
    delay: float = 0.0
    """Seconds after that moment."""

    @property
    def ends_driver(self) -> bool:
        """Whether a driver cannot go on after it."""
        return not self.stopped and bool({"driver", "tree", "scheduler"}.intersection(self.targets))


def make_plan(seed: int, strikes: int, requests: int, *, stop_seconds: float = 8.0) -> list[Strike]:
    """Spread strikes over a sweep.

    Parameters
    ----------
    strikes
        How many.
    requests
        Requests of the whole sweep; the last strike comes before its end.
    stop_seconds
        Length of a SIGSTOP; longer than the time-outs that it is to exceed.
    """
    chance = random.Random(seed)
    moments = sorted(chance.uniform(0.0, 0.97) * requests for _ in range(strikes))
    plan: list[Strike] = []
    for number, at in enumerate(moments, 1):
        early = bool(plan) and plan[-1].ends_driver and chance.random() < _EARLY
        plan.append(_strike(chance, number, int(at), stop_seconds, early=early))
    return plan


def _strike(chance: random.Random, number: int, at: int, stop_seconds: float, *, early: bool) -> Strike:
    if early:
        # A driver that has only just been started again: between its first line and its first request.
        return Strike(number, at, ("driver",), moment="start", delay=chance.uniform(0.0, 5.0))
    if chance.random() < _STOPS:
        return Strike(number, at, (chance.choice(_STOPPED),), stopped=stop_seconds)
    if chance.random() < _SEVERAL:
        targets = tuple(sorted(chance.sample(_TOGETHER, chance.choice((2, 2, 3)))))
    else:
        targets = tuple(chance.choices(list(_SINGLE), weights=list(_SINGLE.values())))
    if chance.random() < _COMMIT:
        return Strike(number, at, targets, moment="commit", delay=chance.uniform(0.0, 0.04))
    return Strike(number, at, targets)
