"""The values of one column for some rows, kept as they are cheapest until they become Arrow or Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Places = npt.NDArray[np.intp]


class Values(Protocol):
    """One column of some rows."""

    def to_list(self) -> list[Any]:
        """As Python values; None where there is none."""

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""


@dataclass(frozen=True, eq=False, slots=True)
class Numbers:
    """Numbers or flags, one for each row."""

    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]

    def to_list(self) -> list[Any]:
        """As Python values; those in single precision in as few digits as tell them apart."""
        values = self.values
        plain = [float(str(one)) for one in values] if values.dtype == np.float32 else values.tolist()
        if not self.missing.any():
            return plain
        return [None if absent else one for one, absent in zip(plain, self.missing.tolist(), strict=True)]

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""
        import pyarrow as pa

        return pa.array(self.values, type=kind, mask=self.missing)


@dataclass(frozen=True, eq=False, slots=True)
class Labels:
    """Values of which there are few, by number."""

    levels: Sequence[Any]
    codes: npt.NDArray[Any]

    def to_list(self) -> list[Any]:
        """As Python values."""
        levels = self.levels
        return [levels[code] for code in self.codes.tolist()]

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""
        import pyarrow as pa

        return pa.array(list(self.levels), type=kind).take(pa.array(self.codes))


@dataclass(frozen=True, eq=False, slots=True)
class Plain:
    """Python values as they are."""

    values: list[Any]

    def to_list(self) -> list[Any]:
        """As Python values."""
        return self.values

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""
        import pyarrow as pa

        return pa.array(self.values, type=kind)


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
