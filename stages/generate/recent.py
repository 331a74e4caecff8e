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
        Values that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """What is kept under a key."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: K, value: V) -> V:
        """Keep a value, in place of any other of its key, and of the one used longest ago if there are too many."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return value

    def made(self, key: K, make: Callable[[], V]) -> V:
        """What is kept under a key, else made now; nothing is kept when `make` raises."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found
