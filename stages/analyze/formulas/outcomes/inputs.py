"""Checks of the arguments of outcome metrics; errors name the rule and the value."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import describe, items, numbers, real
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.errors import ArgumentError

Bounds = Sequence[float] | None

_LARGEST = np.iinfo(np.int64).max
_SLACK = 1e-12
"""By how much weights may exceed a sum of 1: what adding up rounded weights costs."""


def matrix(values: object, name: str = "R") -> NDArray[Any]:
    """Outcomes as a two-dimensional array of numbers or booleans; one dimension means one question.

    Only the shape and the type are checked: `whole` looks at the entries, block by block.

    Raises
    ------
    ValueError
        If the values are ragged, not real numbers, have 0 or more than 2 dimensions, or are empty.
    """
    array = _numbers(values, name, "whole numbers or booleans, as many in the row of each question")
    if array.ndim not in (1, 2):
        raise ArgumentError(
            f"`{name}` must have 1 dimension (one question) or 2 (questions × samples), got {array.ndim}"
        )
    return array


def outcomes(values: object) -> NDArray[Any]:
    """The matrix R, questions × samples, with at least one question and one sample."""
    array = matrix(values)
    array = array.reshape(1, -1) if array.ndim == 1 else array
    questions, samples = array.shape
    if samples == 0:
        raise ArgumentError("`R` has no samples; every question needs at least one")
    if questions == 0:
        raise ArgumentError("`R` has no questions; it needs at least one row")
    return array


def prior_outcomes(values: object, questions: int) -> NDArray[Any]:
    """The matrix R0, questions × prior samples; one dimension is split into one row per question."""
    array = matrix(values, "R0")
    if array.ndim == 1:
        if array.size % questions:
            raise ArgumentError(
                f"a one-dimensional `R0` must hold a multiple of {questions} entries, as many for each row "
                f"of `R`, got {array.size}"
            )
        return array.reshape(questions, -1)
    if array.shape[0] != questions:
        raise ArgumentError(f"`R0` must have one row per row of `R` ({questions}), got {array.shape[0]}")
    return array


def whole(block: NDArray[Any], name: str = "R") -> NDArray[Any]:
    """The entries as integers or booleans.

    Raises
    ------
    ValueError
        If an entry is NaN, infinite, not a whole number or beyond 64 bits.
    """
    if np.can_cast(block.dtype, np.int64):
        return block
    block = block.astype(np.float64, copy=False) if block.dtype.kind == "f" else block
    if not np.isfinite(block).all():
        raise ArgumentError(f"`{name}` has NaN or infinite entries; leave out questions with missing samples")
    if (np.abs(block) > 2.0**62).any():
        raise ArgumentError(f"`{name}` has entries that do not fit in a signed 64-bit integer")
    integers = block.astype(np.int64)
    if (integers != block).any():
        raise ArgumentError(f"`{name}` must hold whole numbers, got {_first(block, integers != block)}")
    return integers


def out_of_range(block: NDArray[Any], top: int, name: str = "R") -> ValueError:
    """The error for a block with an entry outside 0..top."""
    bad = (block < 0) | (block > top)
    return ValueError(
        f"entries of `{name}` must be integers in 0..{top}, got {_first(block, bad)}; "
        "a category needs a weight in `w`, which defaults to the binary (0, 1)"
    )


def draws(k: object, samples: int | None = None) -> int:
    """The number of draws k: an integer >= 1, and at most the number of samples where that is given."""
    try:
        number = -1 if isinstance(k, bool | np.bool_) else operator.index(cast(SupportsIndex, k))
    except TypeError:
        number = -1
    if not 1 <= number <= _LARGEST:
        raise ArgumentError(f"`k` must be a whole number of draws from 1 to {_LARGEST}, got {describe(k)}")
    if samples is not None and number > samples:
        raise ArgumentError(f"`k` must be at most the number of samples, {samples}, got {number}")
    return number


def rewards(w: object) -> Floats:
    """The weight of each category 0..C, shape (C + 1,)."""
    array = _numbers(w, "w", "a finite number for each category")
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(
            f"`w` must be one-dimensional with a weight per category, got an array of shape {array.shape}"
        )
    return _finite(array, "w")


def spectrum_weights(weights: object, k: int) -> Floats:
    """Weights of the thresholds 1..k, shape (k,): non-negative, with a sum of at most 1."""
    array = _numbers(weights, "weights", "a finite number for each threshold")
    if array.shape != (k,):
        raise ArgumentError(
            f"`weights` must hold one weight for each of the {k} thresholds, got an array of shape {array.shape}"
        )
    checked = _finite(array, "weights")
    if (checked < 0).any():
        raise ArgumentError(f"`weights` must not be negative, got {_first(checked, checked < 0)}")
    total = math.fsum(checked)
    if total > 1.0 + _SLACK:
        raise ArgumentError(f"`weights` must add up to at most 1, got {total}; divide them by their sum")
    return checked


def fraction(value: object, name: str) -> float:
    """A real number in [0, 1]."""
    number = real(value, name)
    if not 0.0 <= number <= 1.0:
        raise ArgumentError(f"`{name}` must lie in [0, 1], got {value!r}")
    return number


def clipping(bounds: object) -> tuple[float, float] | None:
    """The pair (lo, hi), lo <= hi, to clip an interval to; NaN and infinity do not clip."""
    if bounds is None:
        return None
    parts = items(bounds, "bounds", "a pair (lo, hi) or None")
    if len(parts) != 2:
        raise ArgumentError(f"`bounds` must be a pair (lo, hi) or None, got {describe(bounds)}")
    low, high = (real(part, "bounds") for part in parts)
    if low > high:
        raise ArgumentError(f"`bounds` must be (lo, hi) with lo <= hi, got ({low}, {high})")
    return low, high


def concentration(value: object, name: str) -> float:
    """A parameter of the Beta prior: a finite number above 0."""
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else real(value, name)
    if not 0.0 < number < math.inf:
        raise ArgumentError(
            f"`{name}` must be a finite number above 0, got {value!r}; 1 means a uniform prior"
        )
    return number


def _numbers(values: object, name: str, want: str) -> NDArray[Any]:
    array = numbers(cast(ArrayLike, values), name, want)
    if np.asarray(values).dtype.kind == "O":
        raise ArgumentError(f"`{name}` must hold {want}, and no other objects, got {describe(values)}")
    return array


def _finite(array: NDArray[Any], name: str) -> Floats:
    floats = array.astype(np.float64)
    if not np.isfinite(floats).all():
        raise ArgumentError(f"`{name}` must hold finite numbers, got {_first(floats, ~np.isfinite(floats))}")
    return floats


def _first(array: NDArray[Any], bad: NDArray[np.bool_]) -> str:
    return repr(array[bad].flat[0].item())
