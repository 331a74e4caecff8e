"""How many questions have which counts of outcomes: one pass over the matrix, and the counts add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import inputs
from evalcube.stages.errors import ArgumentError

Integers = NDArray[np.int64]

_BLOCK = 2**19
"""Entries that are looked at together: their places stay in a core's cache."""


@dataclass(frozen=True)
class Successes:
    """Number of questions with each number of successes."""

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
        """A value for each of `counts`, in their shape.

        Parameters
        ----------
        table
            From N, the values of 0..N successes, shape (N + 1,).
        """
        if self.sizes is None:
            return table(self.samples)[self.counts]
        values = np.empty(len(self.counts))
        for size in np.unique(self.sizes).tolist():
            here = self.sizes == size
            values[here] = table(size)[self.counts[here]]
        return values

    @classmethod
    def of_histogram(cls, histogram: ArrayLike) -> Successes:
        """From the numbers of questions with 0..N successes; histograms of chunks add up.

        Parameters
        ----------
        histogram
            h[0..N], the number of questions with c successes at place c.

        Raises
        ------
        ValueError
            If it is none: N is below 1, a number is negative, or there is no question.
        """
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
        """Mean over the questions.

        Parameters
        ----------
        values
            One for each of `counts`, in their shape.
        """
        return float(np.dot(self.weights, values)) / self.questions


@dataclass(frozen=True)
class Categories:
    """Counts of questions, grouped by the numbers of their samples in the categories 0..C."""

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
        """The samples in some of the categories as successes.

        Parameters
        ----------
        categories
            Which of 0..C these are, shape (C + 1,).
        """
        counts, sizes = self.counts[:, categories].sum(axis=1), self.counts.sum(axis=1)
        return Successes(self.samples, counts, self.weights, sizes, self.squares)

    def variance(self, values: Floats) -> float:
        """Variance of the mean over independent questions.

        Parameters
        ----------
        values
            The variance of a question with each of the rows of `counts`, shape (rows,).
        """
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
    chunked = _as_chunks(values)
    if chunked is None:
        return Successes.of_histogram(_histogram(inputs.outcomes(_plain(values))))
    samples, form = chunked.shape[1], {"dtype": np.int64, "meta": np.empty((0, 0), np.int64)}
    rows = chunked.map_blocks(
        lambda block: _histogram(block)[np.newaxis],
        chunks=((1,) * chunked.numblocks[0], (samples + 1,)),
        **form,
    )
    return Successes.of_histogram(rows.sum(axis=0).compute())


def _histogram(array: NDArray[Any]) -> Integers:
    """h[0..N] of a matrix (questions × samples) of 0 and 1; all zero without questions."""
    return np.bincount(count_rows(array, 1)[:, 1], minlength=array.shape[1] + 1)


def categories(values: object, top: int, prior: object = None) -> Categories:
    """Reduce outcomes in 0..top to distinct rows of counts, or pass through what is already reduced.

    Parameters
    ----------
    values
        R (questions × samples), or `Successes` for binary outcomes.
    top
        C: the largest category.
    prior
        R0 (questions × prior samples) or None; its outcomes are added to the counts. Of reduced outcomes one row.

    Raises
    ------
    ValueError
        If R or R0 is not such a matrix, has an entry outside 0..top, or the two have different rows.
    """
    if top == 1 and prior is None and not isinstance(values, Categories):
        values = successes(values)
    if isinstance(values, Successes):
        counts = np.stack([values.failures, values.counts], axis=1)
        values = Categories(values.samples, counts, values.weights, values.squares)
    if isinstance(values, Categories):
        number = values.counts.shape[1]
        if number != top + 1:
            raise ArgumentError(
                f"`w` has {top + 1} weights for outcomes reduced to {number} categories: give {number}, or R itself"
            )
        if prior is None:
            return values
        shared = np.atleast_1d(np.asarray(prior))
        if shared.ndim > 1:
            raise ArgumentError(
                "`R0` of reduced outcomes is one row, the same for all questions; or pass R itself"
            )
        extra = count_rows(inputs.matrix(shared, "R0")[np.newaxis], top, "R0")
        return replace(values, counts=values.counts + extra)
    lazy = _as_chunks(values)
    if lazy is None:
        array = inputs.outcomes(_plain(values))
        samples, rows = array.shape[1], count_rows(array, top)
    else:
        form = {"chunks": (lazy.chunks[0], (top + 1,)), "dtype": np.int64, "meta": np.empty((0, 0), np.int64)}
        samples, rows = lazy.shape[1], lazy.map_blocks(count_rows, top=top, **form).compute()
    if prior is not None:
        rows = rows + count_rows(inputs.prior_outcomes(prior, len(rows)), top, "R0")
    distinct, position = distinct_rows(rows)
    return Categories(samples, distinct, np.bincount(position))


def _plain(values: object) -> Any:  # noqa: ANN401 - an array of any library
    """The array behind an xarray object; its dims must already be in the order question, sample."""
    return values.data if hasattr(values, "dims") and hasattr(values, "data") else values


def _as_chunks(values: object) -> Any | None:  # noqa: ANN401 - Dask's array, not imported here
    """The values as a Dask array with whole rows per chunk, or None; Dask itself is not imported."""
    data = _plain(values)
    if not hasattr(data, "map_blocks"):
        return None
    shape = inputs.outcomes(np.broadcast_to(np.False_, data.shape)).shape
    return (data if data.ndim == 2 else data.reshape(shape)).rechunk({1: -1})


def count_rows(array: NDArray[Any], top: int, name: str = "R") -> Integers:
    """Counts of each category in each row, shape (rows, top + 1)."""
    array = inputs.matrix(array, name)
    counts = np.zeros((len(array), top + 1), dtype=np.int64)
    step = max(1, _BLOCK // max(1, array.shape[1]))
    for start in range(0, len(array), step):
        block = inputs.whole(array[start : start + step], name)
        if block.size and (block.min() < 0 or block.max() > top):
            raise inputs.out_of_range(block, top, name)
        places = block.astype(np.int64) + np.arange(len(block))[:, np.newaxis] * (top + 1)
        counted = np.bincount(places.ravel(), minlength=len(block) * (top + 1))
        counts[start : start + step] = counted.reshape(len(block), top + 1)
    return counts


def distinct_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Distinct rows of counts, and the place of each row among them."""
    base = int(rows.max(initial=0)) + 1
    if base ** rows.shape[1] >= 2**62:
        distinct, position = np.unique(rows, axis=0, return_inverse=True)
        return distinct, position.ravel()
    # As one number each, which are sorted many times as fast.
    keys = rows @ np.array([base**position for position in range(rows.shape[1])], dtype=np.int64)
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], position
