"""Rows of the table before they have texts: where each trial is, and what the arrays of its cube say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Rows = Mapping[str, npt.NDArray[Any]]
"""Equally long arrays by name: ``cube``, ``model``, ``task``, ``slot``, ``trial`` and ``repeat`` are indices, the
others values of the cube's arrays."""

T = TypeVar("T")


def count(rows: Rows) -> int:
    """How many there are."""
    return len(rows["cube"])


def take(rows: Rows, which: npt.NDArray[Any] | slice) -> Rows:
    """Some of the rows, by index, mask or slice."""
    return {name: values[which] for name, values in rows.items()}


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def cut(parts: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The same rows in parts of at most `size`."""
    for part in parts:
        for begin in range(0, count(part), size):
            yield take(part, slice(begin, begin + size))


def slices(
    parts: Iterable[T], offset: int, limit: int | None, size_of: Callable[[T], int]
) -> Iterator[tuple[T, slice]]:
    """Parts with what is meant of each: the rows from `offset` on, at most `limit`; no later part is asked for."""
    skip, left = offset, limit
    if left == 0:
        return
    for part in parts:
        size = size_of(part)
        first = min(skip, size)
        skip -= first
        last = size if left is None else min(size, first + left)
        left = None if left is None else left - (last - first)
        if last > first:
            yield part, slice(first, last)
        if left == 0:  # before the next part is asked for
            return


def window(parts: Iterable[Rows], offset: int, limit: int | None) -> Iterator[Rows]:
    """The rows from `offset` on, at most `limit`."""
    return (take(part, which) for part, which in slices(parts, offset, limit, count))
