"""Mulberry32, the random number generator of omk 0.54, at any position of its stream.

Its state only counts up, s_k = seed + k · 0x6D2B79F5 (mod 2³²), so any stretch of the stream can be computed directly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.intervals import Floats

SEED = 20260616
_STEP = 0x6D2B79F5
_WORD = np.uint64(0xFFFFFFFF)


def uniform(seed: int, start: int, count: int) -> Floats:
    """Numbers start .. start + count − 1 of the stream, in [0, 1).

    Examples
    --------
    >>> int(uniform(20260616, 0, 1)[0] * 1_000_000)
    306646
    """
    place = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    state = (np.uint64(seed & 0xFFFFFFFF) + place * np.uint64(_STEP)) & _WORD
    mixed = _product(state ^ (state >> np.uint64(15)), state | np.uint64(1))
    mixed ^= (mixed + _product(mixed ^ (mixed >> np.uint64(7)), mixed | np.uint64(61))) & _WORD
    return np.asarray((mixed ^ (mixed >> np.uint64(14))) / 2.0**32)


def _product(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Low 32 bits of the product of 32-bit numbers."""
    return (a * b) & _WORD


def drawn_places(length: int, draws: int, *, seed: int) -> NDArray[np.int64]:
    """Places drawn with replacement by each resample: array (resample, length).

    Parameters
    ----------
    length
        Number of observations, and of draws per resample.
    draws
        Number of resamples.
    seed
        Seed of the stream.
    """
    numbers = uniform(seed, 0, draws * length).reshape(draws, length)
    return np.asarray(np.floor(numbers * length), dtype=np.int64)
