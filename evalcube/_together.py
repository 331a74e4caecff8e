"""What runs change for their whole process, such as Dask's settings: once, for as long as any of them lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager


class Together:
    """A context that several threads are in at once: whoever comes first enters it, and whoever goes last leaves it.

    Each undoing what it did itself would undo it for those that are still at work, and leave the other's for good.

    Parameters
    ----------
    make
        Makes what is entered and left.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[object]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._inside = 0
        self._entered = ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Be in it."""
        with self._lock:
            if not self._inside:
                self._entered.enter_context(self._make())
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._entered.close()
