"""Seeds, identities and random draws of trials: one independent stream each, the same on every machine."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Hashable, Mapping, MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)

Scalar = str | int | float | bool | None


def canonical_params(params: Mapping[str, object]) -> dict[str, object]:
    """Params in one canonical form: sorted keys, whole floats as integers, so that 16 and 16.0 are one cell.

    Examples
    --------
    >>> canonical_params({"b": 0.5, "a": 16.0})
    {'a': 16, 'b': 0.5}
    """
    return {key: _canonical(params[key]) for key in sorted(params)}


def _canonical(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return canonical_params(value)
    return [_canonical(item) for item in value] if isinstance(value, (list, tuple)) else value


def canonical_json(params: Mapping[str, object]) -> str:
    """The JSON text of the canonical params, as it enters seeds and digests.

    Examples
    --------
    >>> canonical_json({"length": 16.0, "depth": 3})
    '{"depth": 3, "length": 16}'
    """
    return json.dumps(canonical_params(params), sort_keys=True)


def coordinate_seed(params: Mapping[str, object], seed: int) -> int:
    """The seed of a point in parameter space: the last 32 bits of the params' SHA-256, plus `seed`.

    The key ``count`` is left out, so that a larger sample extends a smaller one
    (ReasonScape technical details, "Coordinate-Based Seeding").

    Examples
    --------
    >>> coordinate_seed({"depth": 3, "length": 16}, 42)
    2094783288
    """
    text = canonical_json({key: value for key, value in params.items() if key != "count"})
    return seed + int(hashlib.sha256(text.encode()).hexdigest()[-8:], 16)


def cell_id(task: str, version: int, params: Mapping[str, object], seed: int) -> str:
    """Identity of a cell, 32 hex digits: two cells with equal ids hold the same trials."""
    text = json.dumps([task, version, canonical_params(params), seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Stream:
    """Random draws of one trial.

    Everything is derived from ``getrandbits`` of CPython's Mersenne Twister, whose output is stable, with
    our own reductions, because ``random.choice`` and ``shuffle`` may change between Python versions.
    """

    __slots__ = ("_bits", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._bits: Callable[[int], int] = self._first_bits

    def _first_bits(self, count: int) -> int:
        # Only now: a question of a file mostly draws nothing, and to seed costs as much as to read it.
        self._bits = random.Random(self._seed).getrandbits
        return self._bits(count)

    def below(self, n: int) -> int:
        """Draw a whole number in [0, n); the bias is under n / 2^53.

        Parameters
        ----------
        n
            At least 1.
        """
        return (self._bits(53) * n) >> 53

    def between(self, low: int, high: int) -> int:
        """Draw a whole number in [low, high], both ends included.

        Parameters
        ----------
        low, high
            The ends, ``low <= high``.
        """
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """True with the given probability; 0 never and 1 always.

        Parameters
        ----------
        probability
            In [0, 1].
        """
        return self._bits(53) < probability * 9007199254740992.0

    def choice(self, items: Sequence[T]) -> T:
        """Draw one item.

        Parameters
        ----------
        items
            At least one.

        Raises
        ------
        IndexError
            There is none.
        """
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Shuffle in place (Fisher-Yates).

        Parameters
        ----------
        items
            Any number of them.
        """
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """Draw different items in random order.

        Parameters
        ----------
        items
            Those to draw from; equal ones count as different.
        k
            How many, from 0 to ``len(items)``.

        Raises
        ------
        ValueError
            `k` is above ``len(items)``.
        """
        if k > len(items):
            raise ValueError(f"cannot draw {k} different items out of {len(items)}")
        pool = list(items)
        for i in range(k):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]


def distinct(count: int, draw: Callable[[], H]) -> list[H]:
    """So many different values of a draw, in the order in which they come."""
    values: dict[H, None] = {}
    while len(values) < count:
        values[draw()] = None
    return list(values)


def parts(stream: Stream, total: int, count: int, least: int, most: int) -> list[int]:
    """So many numbers with a given sum."""
    numbers = []
    for left in range(count - 1, -1, -1):
        part = stream.between(max(least, total - left * most), min(most, total - left * least))
        numbers.append(part)
        total -= part
    return numbers
