"""A small cache of what was used last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The values that were used last. Safe to use from several threads; a copy (by pickling) is not to be had.

    Parameters
    ----------
    most
        What the values that are kept may weigh together; a single one may weigh more.
    weight
        Of a value; by default 1, so that `most` is their number.
    """

    def __init__(self, most: int, weight: Callable[[V], int] = lambda _: 1) -> None:
        self._most = most
        self._weight = weight
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._sum = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """What is kept under a key."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: K, value: V) -> V:
        """Keep a value, in place of any other of its key, and of those used longest ago if all weigh too much."""
        weight = self._weight(value)
        with self._lock:
            self._sum += weight - (self._kept.pop(key)[1] if key in self._kept else 0)
            self._kept[key] = value, weight
            while self._sum > self._most and len(self._kept) > 1:
                self._sum -= self._kept.popitem(last=False)[1][1]
        return value

    def obtain(self, key: K, make: Callable[[], V]) -> V:
        """What is kept under a key, else made now; nothing is kept when `make` raises."""
        cached = self.get(key)
        return self.put(key, make()) if cached is None else cached
