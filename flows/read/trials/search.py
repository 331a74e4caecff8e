"""Searches the texts of trials for a text or a regular expression, within a bounded time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.near_names import checked_option
from evalcube.flows.errors import SweepError, need_text
from evalcube.flows.read.trials import values as places
from evalcube.flows.read.trials.columns import TEXTS, TrialColumn, chosen
from evalcube.flows.read.trials.values import Numbers, Rows, Values
from evalcube.stages.process.assertions.model import UnmeasuredError
from evalcube.stages.process.assertions.patterns import SECONDS, compile_pattern, search

_MOST_SLOW = 5
"""Texts that a regular expression may run out of time on before it is given up."""


@dataclass
class Search:
    """What is searched for, and in which columns."""

    grep: str | None
    regex: str | None
    within: Sequence[str]
    slow: int = field(default=0, init=False)
    """Texts that the regular expression ran out of time on."""

    @classmethod
    def of(cls, grep: str | None, regex: str | None, within: Sequence[str]) -> Search | None:
        """The search; None if nothing is searched for.

        Raises
        ------
        SweepError
            If the regular expression is none, or a column is unknown or has no text.
        """
        if grep is None and regex is None:
            return None
        for parameter, text in (("grep", grep), ("regex", regex)):
            if text is not None:
                need_text(parameter, text)
        for name in within:
            checked_option("within", name, TEXTS)
        if not within:
            raise SweepError("`within`: nothing is named", f"Give some of: {', '.join(TEXTS)}")
        if regex is not None:
            import regex as library

            try:
                compile_pattern(regex)
            except (library.error, RecursionError, OverflowError) as error:
                raise SweepError(
                    f"`regex`: '{regex}' is no regular expression: {error}",
                    "Correct it, or search for a plain text with `grep`",
                ) from None
        return cls(grep, regex, tuple(dict.fromkeys(within)))

    def finds(self, texts: Sequence[Sequence[str | None]]) -> list[bool]:
        """For each row whether something is found in it.

        Parameters
        ----------
        texts
            The columns of `within`, in their order.

        Raises
        ------
        SweepError
            If the regular expression runs out of time again and again.
        """
        return [self._in_row([text for text in row if text]) for row in zip(*texts, strict=True)]

    def _in_row(self, texts: Sequence[str]) -> bool:
        if self.grep is not None and not any(self.grep in text for text in texts):
            return False
        return self.regex is None or any(self._matches(self.regex, text) for text in texts)

    def _matches(self, pattern: str, text: str) -> bool:
        try:
            return search(pattern, "", text, seconds=SECONDS)
        except UnmeasuredError as error:
            self.slow += 1
            if self.slow > _MOST_SLOW:
                raise SweepError(
                    f"`regex`: {error}, and on {_MOST_SLOW} others", "Write it without nested repetitions"
                ) from None
            return False

    @property
    def notes(self) -> list[str]:
        """What a reader of the rows that were found should know."""
        if not self.slow:
            return []
        return [
            f"The regular expression ran out of time on {self.slow} texts, which count as ones without it."
        ]


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
