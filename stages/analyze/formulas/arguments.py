"""Checks what formulas are given, and takes counters and means out of it; errors name argument, value and remedy."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, SupportsFloat, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.errors import ArgumentError, ArgumentTypeError
from evalcube.stages.reply.status import COUNTERS


def describe(value: object) -> str:
    """A value as an error says it: in short, and of an array what it is."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"an array of shape {value.shape} and type {value.dtype}"
    return reprlib.repr(value.item() if isinstance(value, np.ndarray) and value.size else value)


def numbers(
    value: ArrayLike, name: str, want: str = "real numbers, NaN where there is none, in rows of one length"
) -> NDArray[Any]:
    """An array of real numbers or booleans, of any shape.

    Raises
    ------
    ValueError
        If it is anything else, such as None, texts, or rows of unequal length; the message says what is wanted.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O" and not any(item is None for item in array.flat):
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"`{name}` must hold {want}, got {describe(value)}") from error
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"`{name}` must hold {want}, got {describe(value)}")
    return array


def reals(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """The same as `numbers`, as float64."""
    return numbers(value, name).astype(np.float64, copy=False)


def fitting(**values: ArrayLike) -> list[NDArray[np.float64]]:
    """Arrays of real numbers whose shapes broadcast with each other, as they are; by the names of the arguments.

    Raises
    ------
    ValueError
        If one does not hold real numbers, or they do not fit.
    """
    arrays = [reals(value, name) for name, value in values.items()]
    try:
        np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError as error:
        listed = ", ".join(f"`{name}` {array.shape}" for name, array in zip(values, arrays, strict=True))
        raise ArgumentError(f"shapes must be equal or broadcast, got {listed}") from error
    return arrays


def broadcast(value: ArrayLike, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array that broadcasts to a shape, as a view of that shape.

    Raises
    ------
    ValueError
        If it does not, or does not hold real numbers.
    """
    array = numbers(value, name)
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise ArgumentError(f"`{name}` must broadcast to the shape {shape}, got {array.shape}") from error


def check_counts(array: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Counts: finite, and not negative; NaN is undefined and stays.

    Raises
    ------
    ValueError
        If one is.
    """
    wrong = (array < 0) | np.isinf(array)
    if wrong.any():
        raise ArgumentError(f"`{name}` must hold finite counts from 0, got {array[wrong].flat[0]:g}")
    return array


def real(value: object, name: str) -> float:
    """A real number.

    Raises
    ------
    TypeError
        If it is none.
    ValueError
        If it is too large for one.
    """
    if not isinstance(value, Real | np.bool_):
        raise ArgumentTypeError(f"`{name}` must be a real number, got {describe(value)}")
    try:
        return float(cast(SupportsFloat, value))
    except OverflowError:
        raise ArgumentError(
            f"`{name}` must be a real number that a float can hold, got {describe(value)}"
        ) from None


def whole(value: object, name: str) -> int:
    """A whole number from 0.

    Raises
    ------
    ValueError
        If it is none.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 0:
        raise ArgumentError(f"`{name}` must be a whole number from 0, got {describe(value)}")
    return int(value)


def items(value: object, name: str, want: str) -> tuple[object, ...]:
    """The items of a sequence.

    Raises
    ------
    TypeError
        If it is none; the message says what is wanted.
    """
    try:
        return tuple(cast(Iterable[object], value))
    except TypeError:
        raise ArgumentTypeError(f"`{name}` must be {want}, got {describe(value)}") from None


def confidence_level(value: object) -> float:
    """A level of confidence, inside (0, 1).

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is not inside.
    """
    number = real(value, "confidence")
    if not 0.0 < number < 1.0:
        raise ArgumentError(f"`confidence` must lie inside (0, 1), got {describe(value)}; 0.95 means 95%")
    return number


def one_of(value: object, name: str, known: Sequence[str]) -> str:
    """One of some names.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"`{name}` must be one of {', '.join(known)}, got {describe(value)}")
    return value


def flag(value: object, name: str) -> bool:
    """True or False.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"`{name}` must be True or False, got {describe(value)}")
    return bool(value)


def axes(value: object, name: str, dims: int) -> tuple[int, ...]:
    """One or several axes of an array of so many dims, counted from 0.

    Raises
    ------
    ValueError
        If the array has none of such a number, or one is named twice.
    """
    try:
        return tuple(normalize_axis_tuple(cast(Any, value), dims))
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"`{name}` must name axes of an array of {dims} dims, got {describe(value)}"
        ) from error


def column(counters: ArrayLike, label: str, labels: Sequence[str] = COUNTERS) -> NDArray[np.float64]:
    """One counter of a counters array (..., counter), as float64 of shape (...).

    Raises
    ------
    ValueError
        If the label is absent, or the labels do not fit the array's last axis.

    Examples
    --------
    >>> column([[8, 5], [4, 4]], "correct", ["trials", "correct"]).tolist()
    [5.0, 4.0]
    """
    array = reals(counters, "counters")
    names = [str(name) for name in items(labels, "labels", "the counters' names")]
    if array.ndim == 0 or array.shape[-1] != len(names):
        raise ArgumentError(
            f"`labels` names {len(names)} counters but `counters` has shape {array.shape}; its last axis "
            "must match"
        )
    if label not in names:
        raise ArgumentError(f"counter {label!r} is not among `labels` {names}; add it to the counters")
    return array[..., names.index(label)]


def mean_present(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """Mean of what is not NaN; NaN where nothing is."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(there, values, 0.0).sum(axis=axis) / np.where(count > 0, count, np.nan))
