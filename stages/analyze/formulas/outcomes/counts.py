"""How many questions have which counts of outcomes: one pass over the matrix, and the counts add."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import inputs
from evalcube.stages.errors import ArgumentError

Integers = NDArray[np.int64]

_BLOCK = 2**19
"""Entries that are looked at together: half a megabyte of int8 stays in a core's cache."""
_WORDS = 248
"""Words of eight 0/1 bytes that are added together: no more than 255, lest a byte overflows."""
_LOW_BYTES = np.uint64(0x00FF00FF00FF00FF)
_ONE_PER_LANE = np.uint64(0x0001000100010001)
_ONE_PER_BYTE = 0x0101010101010101
_TABLE = 2**20
"""Largest number of possible count vectors that is tabulated rather than sorted."""


@dataclass(frozen=True)
class Successes:
    """How many questions have how many successes: all that a binary metric needs of R."""

    samples: int
    """N: samples per question; the least, where questions have different numbers."""
    counts: Integers
    """The success counts that occur, ascending, in 0..N."""
    weights: Integers | Floats
    """Questions with each of these counts, or the sum of their weights."""
    sizes: Integers | None = None
    """Samples of the questions with each of these counts, where they differ; a count then stands once for each."""
    squares: Floats | None = None
    """Sums of the squares of the questions' weights; None where each weighs 1."""

    @property
    def questions(self) -> float:
        """M: the number of questions, or the sum of their weights."""
        total: float = self.weights.sum().item()
        return total

    @property
    def failures(self) -> Integers:
        """Samples that are none of the successes, shape of `counts`."""
        return (self.samples if self.sizes is None else self.sizes) - self.counts

    def values(self, table: Callable[[int], Floats]) -> Floats:
        """Values of the counts, from a function of N that gives those of 0..N successes."""
        if self.sizes is None:
            return table(self.samples)[self.counts]
        found = np.empty(len(self.counts))
        for size in np.unique(self.sizes).tolist():
            here = self.sizes == size
            found[here] = table(size)[self.counts[here]]
        return found

    @classmethod
    def of_histogram(cls, histogram: ArrayLike) -> Successes:
        """From h[0..N], the number of questions with c successes at place c; histograms of chunks add up."""
        table = np.asarray(histogram).astype(np.int64)
        if table.ndim != 1 or table.size < 2 or (table < 0).any() or not table.any():
            raise ArgumentError(
                "a histogram must hold the numbers of questions with 0..N successes, N >= 1, and at least one "
                f"question, got {np.asarray(histogram)!r}"
            )
        counts = np.flatnonzero(table)
        return cls(table.size - 1, counts, table[counts])

    def histogram(self) -> Integers:
        """h[0..N], the number of questions with c successes at place c."""
        table = np.zeros(self.samples + 1, dtype=np.int64)
        table[self.counts] = self.weights
        return table

    def mean(self, values: Floats) -> float:
        """Mean over the questions of a value per distinct count, shape of `counts`."""
        return float(np.dot(self.weights, values)) / self.questions


@dataclass(frozen=True)
class Categories:
    """How many questions have which counts of the categories 0..C."""

    samples: int
    """N: samples per question, the least where they differ; prior outcomes are not counted."""
    counts: Integers
    """Distinct rows of counts, shape (rows, C + 1); prior outcomes included."""
    weights: Integers | Floats
    """Questions with each of these rows, or the sum of their weights."""
    squares: Floats | None = None
    """Sums of the squares of the questions' weights; None where each weighs 1."""

    @property
    def questions(self) -> float:
        """M: the number of questions, or the sum of their weights."""
        total: float = self.weights.sum().item()
        return total

    def as_successes(self, categories: NDArray[np.bool_]) -> Successes:
        """The samples in some of the categories as successes."""
        counts, sizes = self.counts[:, categories].sum(axis=1), self.counts.sum(axis=1)
        return Successes(self.samples, counts, self.weights, sizes, self.squares)

    def variance(self, values: Floats) -> float:
        """Variance of the mean over independent questions of what has these variances."""
        squares = self.weights if self.squares is None else self.squares
        return float(squares @ values) / self.questions**2


def successes(values: object) -> Successes:
    """Reduce binary outcomes, or pass through what is already reduced.

    Parameters
    ----------
    values
        R (questions × samples) of 0 and 1, one question if one-dimensional; a Dask array is reduced by chunk.

    Raises
    ------
    ValueError
        If R is no matrix of zeros and ones.
    """
    if isinstance(values, Successes):
        return values
    chunked = _chunked(values)
    if chunked is not None:
        rows = chunked.map_blocks(_histogram_row, chunks=((1,) * chunked.numblocks[0], (chunked.shape[1] + 1,)),
                                  dtype=np.int64, meta=np.empty((0, 0), np.int64))  # fmt: skip
        return Successes.of_histogram(rows.sum(axis=0).compute())
    array = inputs.outcomes(_plain(values))
    return Successes.of_histogram(success_histogram(array))


def success_histogram(array: NDArray[Any]) -> Integers:
    """h[0..N] of a matrix (questions × samples) of 0 and 1; all zero without questions."""
    samples = array.shape[1]
    table = np.zeros(samples + 1, dtype=np.int64)
    for block in _blocks(array):
        table += np.bincount(_binary_sums(block), minlength=samples + 1)
    return table


def categories(values: object, top: int, prior: object = None) -> Categories:
    """Reduce outcomes in 0..top to distinct rows of counts, or pass through what is already reduced.

    Parameters
    ----------
    values
        R (questions × samples), or `Successes` for binary outcomes.
    top
        C: the largest category.
    prior
        R0 (questions × prior samples) or None; its outcomes are added to the counts.

    Raises
    ------
    ValueError
        If R or R0 is no such matrix, has an entry outside 0..top, or the two have different rows.
    """
    if isinstance(values, Categories):
        if values.counts.shape[1] != top + 1:
            raise ArgumentError(
                f"outcomes reduced to the categories 0..{values.counts.shape[1] - 1} cannot have weights for "
                f"0..{top}; pass R itself"
            )
        return values
    if top == 1 and prior is None:
        return binary_categories(successes(values))
    if isinstance(values, Successes):  # the categories are wrong, not the type
        raise ArgumentError(
            f"outcomes reduced to success counts have the categories 0..1, not 0..{top}; pass R itself"
        )
    chunked = _chunked(values)
    if chunked is not None:
        width = {
            "chunks": (chunked.chunks[0], (top + 1,)),
            "dtype": np.int64,
            "meta": np.empty((0, 0), np.int64),
        }
        rows = chunked.map_blocks(count_rows, top=top, **width).compute()
        return _grouped([_add_prior(rows, prior, top)], chunked.shape[1])
    array = inputs.outcomes(_plain(values))
    if prior is None:
        parts = [distinct_rows(_block_counts(block, top, "R")) for block in _blocks(array)]
        return _merged(parts, array.shape[1])
    return _grouped([_add_prior(count_rows(array, top), prior, top)], array.shape[1])


def binary_categories(bank: Successes) -> Categories:
    """Counts of the categories 0 and 1."""
    counts = np.stack([bank.failures, bank.counts], axis=1)
    return Categories(bank.samples, counts, bank.weights, bank.squares)


def _plain(values: object) -> Any:  # noqa: ANN401 - an array of any library
    """The array behind an xarray object; its dims must already be in the order question, sample."""
    return values.data if hasattr(values, "dims") and hasattr(values, "data") else values


def _chunked(values: object) -> Any | None:  # noqa: ANN401 - Dask's array, not imported here
    """The values as a Dask array with whole rows per chunk, or None; Dask itself is not imported."""
    data = _plain(values)
    if not hasattr(data, "map_blocks"):
        return None
    shape = inputs.outcomes(np.broadcast_to(np.False_, data.shape)).shape
    data = data if data.ndim == 2 else data.reshape(shape)
    return data.rechunk({1: -1})


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    step = max(1, _BLOCK // max(1, array.shape[1]))
    for start in range(0, array.shape[0], step):
        yield array[start : start + step]


def _histogram_row(block: NDArray[Any]) -> Integers:
    return success_histogram(inputs.matrix(block))[None]


def _binary_sums(block: NDArray[Any]) -> NDArray[np.uint64]:
    """Successes per row; every entry must be 0 or 1."""
    block = inputs.whole(block)
    if block.dtype.itemsize == 1:
        ones = block.view(np.uint8)
    else:
        if not ((block == 0) | (block == 1)).all():
            raise inputs.out_of_range(block, 1)
        ones = block.astype(np.uint8)
    sums, clean = _row_sums(ones)
    if not clean:
        raise inputs.out_of_range(block, 1)
    return sums


def _row_sums(ones: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], bool]:
    """Sums of rows of 0/1 bytes, eight bytes to a word, and whether every byte is 0 or 1."""
    rows, samples = ones.shape
    width = -(-samples // 8)
    if samples % 8 or not ones.flags.c_contiguous:
        padded = np.zeros((rows, 8 * width), dtype=np.uint8)
        padded[:, :samples] = ones
        ones = padded
    words = ones.view(np.uint64)
    clean = int(np.bitwise_or.reduce(words.ravel(), initial=0)) & ~_ONE_PER_BYTE == 0
    total = np.zeros(rows, dtype=np.uint64)
    for start in range(0, width, _WORDS):
        part = _added(words[:, start : start + _WORDS])
        lanes = (part & _LOW_BYTES) + ((part >> np.uint64(8)) & _LOW_BYTES)
        total += (lanes * _ONE_PER_LANE) >> np.uint64(48)
    return total, clean


def _added(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums over the words of each row, in long loops: neighbours are added while their number is even."""
    flat, width = words.ravel(), words.shape[1]
    while width % 2 == 0:
        flat = flat[::2] + flat[1::2]
        width //= 2
    table = flat.reshape(-1, width)
    total = table[:, 0].copy()
    for place in range(1, width):
        total += table[:, place]
    return total


def count_rows(array: NDArray[Any], top: int, name: str = "R") -> Integers:
    """Counts of each category in each row, shape (rows, top + 1)."""
    array = inputs.matrix(array, name)
    parts = [_block_counts(block, top, name) for block in _blocks(array)]
    return np.concatenate(parts) if parts else np.zeros((0, top + 1), dtype=np.int64)


def _block_counts(block: NDArray[Any], top: int, name: str) -> Integers:
    block = inputs.whole(block, name)
    rows, samples = block.shape
    if top < 8:
        columns = [_row_sums((block == category).view(np.uint8))[0] for category in range(top + 1)]
        counts = np.stack(columns, axis=1).astype(np.int64)
        if (counts.sum(axis=1) != samples).any():
            raise inputs.out_of_range(block, top, name)
        return counts
    if block.size and (block.min() < 0 or block.max() > top):
        raise inputs.out_of_range(block, top, name)
    places = block.astype(np.int64) + np.arange(rows)[:, None] * (top + 1)
    return np.bincount(places.ravel(), minlength=rows * (top + 1)).reshape(rows, top + 1)


def _add_prior(rows: Integers, prior: object, top: int) -> Integers:
    if prior is None:
        return rows
    return rows + count_rows(inputs.prior_outcomes(prior, rows.shape[0]), top, "R0")


def distinct_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Distinct rows of counts with equal sums, and how often each occurs."""
    base, places = int(rows[0].sum()) + 1, rows.shape[1] - 1
    if base**places >= 2**62:
        distinct, weights = np.unique(rows, axis=0, return_counts=True)
        return distinct, weights
    powers = np.array([base**place for place in range(places)], dtype=np.int64)
    keys = rows[:, 1:] @ powers
    if base**places <= _TABLE:
        table = np.bincount(keys, minlength=1)
        keys = np.flatnonzero(table)
        weights = table[keys]
    else:
        keys, weights = np.unique(keys, return_counts=True)
    rest = keys[:, None] // powers % base
    return np.concatenate([base - 1 - rest.sum(axis=1, keepdims=True), rest], axis=1), weights


def _grouped(blocks: list[Integers], samples: int) -> Categories:
    return _merged([distinct_rows(rows) for rows in blocks], samples)


def _merged(parts: list[tuple[Integers, Integers]], samples: int) -> Categories:
    rows = np.concatenate([distinct for distinct, _ in parts])
    weights = np.concatenate([weight for _, weight in parts])
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    totals = np.bincount(places.ravel(), weights=weights).astype(np.int64)
    return Categories(samples, distinct, totals)
