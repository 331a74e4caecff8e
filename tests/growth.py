"""How the work for an input grows with its size, whatever the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 8
"""How much longer the longer one of two inputs is."""
_LIMIT = 3 * TIMES
"""The most by which the work may grow: three times what is proportional, and less than half of what is quadratic."""
_LEAST = 0.001
"""Seconds; what takes no time at all is not measured."""
_ATTEMPTS = 6


def grows_in_proportion(work: Callable[[int], object], size: int) -> bool:
    """Whether work for something `TIMES` as large takes no more than about `TIMES` as much CPU time.

    Parameters
    ----------
    work
        Does it, for an input of a size.
    size
        Of the larger input.
    """
    small = large = float("inf")
    for _ in range(
        _ATTEMPTS
    ):  # the least of several times is what the work takes; the rest is other processes
        large = min(large, _seconds(work, size))
        if large <= _LIMIT * _LEAST:
            return True
        small = min(small, _seconds(work, size // TIMES))
        if large <= _LIMIT * small:
            return True
    return False


def _seconds(work: Callable[[int], object], size: int) -> float:
    start = time.process_time()
    work(size)
    return time.process_time() - start
