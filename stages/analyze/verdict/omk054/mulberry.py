"""A seed and a position -> the uniform numbers of Mulberry32, the generator of omk 0.54.

Its state only counts up, s_k = seed + k · 0x6D2B79F5 (mod 2³²), so any stretch of the stream can be computed directly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.analyze.formulas.intervals import Floats

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


def drawn_places(
    length: int, start: int, stop: int, *, seed: int, offset: int = 0, stride: int | None = None
) -> NDArray[np.int64]:
    """Places drawn with replacement by resamples [start, stop): array (resample, length).

    Parameters
    ----------
    length
        Number of observations, and of draws per resample.
    start, stop
        Resamples wanted.
    seed
        Seed of the stream.
    offset, stride
        Where in a resample's share of the stream these draws lie, and how long that share is (two groups share one).
    """
    share = length if stride is None else stride
    numbers = uniform(seed, start * share, (stop - start) * share).reshape(stop - start, share)
    return np.asarray(np.floor(numbers[:, offset : offset + length] * length), dtype=np.int64)
