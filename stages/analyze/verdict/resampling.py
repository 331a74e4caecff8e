"""Sign flips and resampled units of any range of draws, the same however the draws are split into blocks.

Draw b has its own stretch of a Philox counter (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3),
so a block of draws needs neither the draws before it nor a shared state: memory is bounded by a block, and no result
depends on its size. Differences are put on an integer grid first, which makes their sums exact and hence independent
of block size, order and the linear algebra library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Philox
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.intervals import Floats

BLOCK = 1024
"""Draws held in memory at once; it does not influence a result."""

TIE = 1e-9
"""Sums closer than this, relative to the largest difference and the number of units, are taken as equal."""

_FLIPS, _INDICES = 1, 2
_WORDS = 4
"""64-bit words per Philox counter step."""


def total_flips(units: int, draws: int) -> int:
    """Number of sign flips in a test: all 2^units if that is at most `draws`, else `draws`."""
    return min(draws, 1 << min(units, 62))


def flips(units: int, start: int, stop: int, *, draws: int, seed: int) -> Floats:
    """Rows [start, stop) of the table of sign flips.

    Row 0 flips nothing: it is the data themselves. If all 2^units rows fit into `draws` they are enumerated, and the
    test is exact; otherwise the other rows are drawn at random, and the test is still valid, since row 0 belongs to
    its own reference set.
    """
    rows = np.arange(start, stop, dtype=np.uint64)
    if 1 << min(units, 62) <= draws:
        return np.asarray(rows[:, np.newaxis] >> np.arange(units, dtype=np.uint64) & np.uint64(1), float)
    words = _raw(-(-units // 64), start, stop, seed, _FLIPS)
    octets = words.astype("<u8").view(np.uint8).reshape(stop - start, -1)
    bits = np.unpackbits(octets, axis=1, bitorder="little")
    table = bits[:, :units].astype(float)
    table[rows == 0] = 0.0
    return table


def indices(units: int, start: int, stop: int, *, seed: int) -> NDArray[np.int64]:
    """Units drawn with replacement in draws [start, stop): array (draw, unit) of places in [0, units)."""
    words = _raw(units, start, stop, seed, _INDICES)[:, :units]
    uniform = (words >> np.uint64(11)).astype(float) * 2.0**-53
    return (uniform * units).astype(np.int64)


def _raw(words: int, start: int, stop: int, seed: int, purpose: int) -> NDArray[np.uint64]:
    """At least `words` random words per draw, each draw from its own stretch of the counter."""
    steps = max(-(-words // _WORDS), 1)
    key = np.random.SeedSequence((seed, purpose)).generate_state(2, np.uint64)
    source = Philox(key=key)
    source.advance(start * steps)
    return source.random_raw((stop - start) * steps * _WORDS).reshape(stop - start, steps * _WORDS)


def spans(total: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges (start, stop) of at most `BLOCK` draws."""
    return ((start, min(start + BLOCK, total)) for start in range(0, total, BLOCK))


def in_blocks(function: Callable[[int, int], Floats], total: int) -> Floats:
    """Results of `function(start, stop)` over all blocks of at most `BLOCK` draws, joined along the first axis."""
    return np.concatenate([function(start, stop) for start, stop in spans(total)])


def on_grid(differences: Floats) -> tuple[Floats, Floats]:
    """Differences as whole numbers whose sums over any subset are exact in float64, and the grid's steps."""
    values = np.nan_to_num(differences)
    largest = np.abs(values).max(axis=0, initial=0.0) * max(len(values), 1)
    step = 2.0 ** np.ceil(np.log2(np.where(largest > 0, largest, 1.0)) - 52)
    return np.rint(values / step), step
