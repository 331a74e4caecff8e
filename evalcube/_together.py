"""What several threads do together: some work, and what runs change for their whole process while any of them lasts."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")
_THREADS = 32


def in_threads(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """What a function makes of items, in their order, some at a time; a failure is the last thing that is begun."""
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-together")
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


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
