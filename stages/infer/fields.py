"""Fields of a streamed object, put together from their bits. Pure."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

PART_COST = 256
"""Bytes that a field takes beside its text."""


class BadEventError(Exception):
    """A piece of the reply that cannot be read."""


class Fields:
    """Fields of one object that come bit by bit.

    Parameters
    ----------
    spend
        Called with the bytes of whatever is kept; raises when they are too many.
    """

    def __init__(self, spend: Callable[[int], None]) -> None:
        self._spend = spend
        self._texts: dict[str, io.StringIO] = {}
        self._others: dict[str, Any] = {}
        self._costs: dict[str, int] = {}
        """Of what the others hold, by field."""

    def add(self, name: str, value: object, size: int) -> bool:
        """Take a bit of field `name` from an event of `size` bytes; returns whether `value` is text or a list."""
        if value is None:
            return False
        if isinstance(value, str):
            if name not in self._texts:
                self._spend(len(name) + PART_COST)
                self._texts[name] = io.StringIO()
            self._spend(len(value))
            self._texts[name].write(value)
            return bool(value)
        parts = self._others.get(name)
        # Lists come in parts, as texts do; anything else comes whole, and the last one counts.
        if isinstance(parts, list) and isinstance(value, list):
            self._charge(name, self._costs[name] + size)
            parts.extend(value)
        else:
            self._charge(name, size)
            self._others[name] = value
        return isinstance(value, list) and bool(value)

    def set(self, name: str, value: object, size: int) -> None:
        """Take field `name` whole from an event of `size` bytes: `value` comes once, or the last one counts."""
        if value is not None:
            self._charge(name, size)
            self._others[name] = value

    def grow(self, name: str, counts: object, size: int) -> None:
        """Take counts, of which the largest are kept: what comes later may be 0, or nothing."""
        largest = self._others.get(name)
        merged = larger(largest, counts)
        if merged != largest:
            self._charge(name, size if merged == counts else size + self._costs.get(name, 0))
            self._others[name] = merged

    def _charge(self, name: str, cost: int) -> None:
        if name not in self._costs:
            self._spend(len(name) + PART_COST)
        self._spend(cost - self._costs.get(name, 0))
        self._costs[name] = cost

    def get(self, name: str) -> Any:  # noqa: ANN401 - whatever the endpoint sent
        """The field `name` if it came whole; None if it did not."""
        return self._others.get(name)

    def complete(self, name: str, value: object, size: int) -> None:
        """Take field `name` as it is in the end; a `BadEventError` if its bits were the beginning of another text."""
        text = self._texts[name].getvalue() if name in self._texts else ""
        if not isinstance(value, str):
            self.set(name, value, size)
        elif value.startswith(text):
            self.add(name, value[len(text) :], size)
        else:
            raise BadEventError

    def plain(self) -> dict[str, Any]:
        """All fields; texts, and then parts, where a field had both."""
        merged: dict[str, Any] = {name: text.getvalue() for name, text in self._texts.items()}
        for name, value in self._others.items():
            both = isinstance(value, list) and merged.get(name)
            merged[name] = [{"type": "text", "text": both}, *value] if both else value
        return merged


def as_object(value: object) -> dict[str, Any]:
    """Return what is an object, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def larger(count: object, later: object) -> object:
    """Return the larger of two counts, field by field of what has some.

    Examples
    --------
    >>> larger({"tokens": 7, "of": {"thought": 5}}, {"tokens": 0, "of": None, "cost": 0.1})
    {'tokens': 7, 'of': {'thought': 5}, 'cost': 0.1}
    """
    if isinstance(count, dict):
        fields = as_object(later)
        return {name: larger(count.get(name), fields.get(name)) for name in {**count, **fields}}
    if isinstance(count, (int, float)) and isinstance(later, (int, float)):
        return max(count, later)
    return count if later is None else later
