"""Sorts rows by one column, and keeps only as many as will be shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError, need_text
from evalcube.flows.trials import rows as places
from evalcube.flows.trials.columns import TrialColumn, chosen
from evalcube.flows.trials.rows import Rows
from evalcube.flows.trials.values import Numbers, Values

_NUMERIC = ("integer", "single", "number", "flag")
_SORTABLE = (*_NUMERIC, "text")
_LONG = ("prompt", "response", "reasoning", "tool_calls")
_SPARE = 1 << 16
"""Rows that are kept beyond those that are wanted, before the worst are thrown away."""


@dataclass(frozen=True)
class Order:
    """By which column rows are sorted."""

    column: TrialColumn
    down: bool
    """Largest first."""

    @classmethod
    def of(cls, sort: str | None, known: Mapping[str, TrialColumn], limit: int | None) -> Order | None:
        """The order; None if rows stay as they are stored.

        Raises
        ------
        SweepError
            If the column is unknown or cannot be sorted by, or all rows of long texts would be held in memory.
        """
        if sort is None:
            return None
        name = need_text("sort", sort).strip()
        (column,) = chosen([name.removeprefix("-")], known, "sort")
        if column.kind not in _SORTABLE:
            raise SweepError(
                f"`sort`: {column.name} holds a list", "Sort by a column with one number or text"
            )
        if column.name in _LONG and limit is None:
            raise SweepError(f"`sort`: all texts of {column.name} would be held in memory", "Give a `limit`")
        return cls(column, name.startswith("-"))

    def start(self, most: int | None) -> Kept:
        """Nothing kept so far, of at most `most` rows."""
        return Kept(self, most)


class Kept:
    """The first rows of those that were added, in order."""

    def __init__(self, order: Order, most: int | None) -> None:
        self._order, self._most = order, most
        self._rows: list[Rows] = []
        self._keys: list[Any] = []
        self._size = 0

    def add(self, rows: Rows, values: Values) -> None:
        """Take some rows up, with the values that they are sorted by."""
        self._rows.append(rows)
        self._keys.append(self._key(values))
        self._size += places.count(rows)
        if self._most is not None and self._size > 2 * self._most + _SPARE:
            self._prune()

    def rows(self) -> Iterator[Rows]:
        """The rows in order, in one part; none if none were added."""
        if self._rows:
            self._prune()
            yield self._rows[0]

    def _key(self, values: Values) -> npt.NDArray[Any]:
        """Values that sort as they are, absent ones apart: floats with NaN, or texts with None."""
        if self._order.column.kind not in _NUMERIC:
            keys = np.empty(len(texts := values.to_list()), dtype=object)
            keys[:] = texts
            return keys
        if isinstance(values, Numbers):
            numbers = values.values.astype(np.float64)
            numbers[values.missing] = np.nan
            return numbers
        return np.array([np.nan if value is None else value for value in values.to_list()], dtype=np.float64)

    def _prune(self) -> None:
        rows, keys = places.joined(self._rows), np.concatenate(self._keys)
        best = self._sorted(keys)[: self._most]
        self._rows, self._keys, self._size = [places.take(rows, best)], [keys[best]], len(best)

    def _sorted(self, keys: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """Places in order; equal values stay in the order in which they came, absent ones come last."""
        if keys.dtype != object:
            numbers = -keys if self._order.down else keys
            return np.argsort(numbers, kind="stable")  # NaN comes last
        there = [place for place, key in enumerate(keys) if key is not None]
        there.sort(key=lambda place: keys[place], reverse=self._order.down)
        absent = [place for place, key in enumerate(keys) if key is None]
        return np.array(there + absent, dtype=np.intp)
