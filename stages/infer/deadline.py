"""Ends what takes too long, with one timer for all that may.

`asyncio.timeout` has a timer for each. To end it takes another turn of uvloop's, at each of which the loop's thread
waits until others that make questions or grade let it go on: a tenth of a busy worker's CPU.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast


class Deadline:
    """Cancels tasks that are at something for too long. All methods belong to the event loop's thread.

    Parameters
    ----------
    seconds
        How long that is; the same for all, so that they are late in the order in which they began.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[asyncio.Task[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def within(self) -> Iterator[None]:
        """What is in here takes no longer; a task is in it once at a time.

        Raises
        ------
        TimeoutError
            It took longer.
        """
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        loop, before = asyncio.get_running_loop(), task.cancelling()
        self._ends[task] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look, loop)
        cancelled = None
        try:
            yield
        except asyncio.CancelledError as error:
            cancelled = error
        finally:
            # Others may have cancelled it as well, and then it is theirs.
            late = self._ends.pop(task, None) is None and task.uncancel() <= before
        if cancelled is not None and late:
            raise TimeoutError from cancelled
        if cancelled is not None:
            raise cancelled

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel those that are late, and look again when the next one may be."""
        self._timer = None
        while self._ends:
            task, end = next(iter(self._ends.items()))
            if end > loop.time():
                self._timer = loop.call_at(end, self._look, loop)
                return
            del self._ends[task]
            task.cancel()
