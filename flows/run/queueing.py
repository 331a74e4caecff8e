"""Whether a run's tasks wait behind those of others on a shared scheduler."""

from __future__ import annotations

import math
from collections.abc import Callable

from evalcube.deploy.clusters.code import Queue

NOTE_SECONDS = 5.0
STOP_SECONDS = 2.0
"""So long a run that is to stop has had nothing under way, behind others, until it ends without what waits."""
_AGAIN_SECONDS = 600.0
"""Between two notes that a run still waits."""


class Queueing:
    """How long nothing of a run has been under way, while tasks of others were.

    Parameters
    ----------
    note
        Called with what the user should read.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._since: float | None = None
        self._noted_at = -math.inf
        self._said = False
        """Whether the user was told that it waits now."""
        self._now = 0.0

    def see(self, queue: Queue, now: float) -> None:
        """Take in what the scheduler has to do.

        Parameters
        ----------
        queue
            The run's tasks beside those of others.
        now
            Seconds on a monotonic clock.
        """
        self._now = now
        if queue.running or not queue.waiting or not queue.others:
            self.worked()
            return
        self._since = now if self._since is None else self._since
        if now - self._since >= NOTE_SECONDS and now - self._noted_at > _AGAIN_SECONDS:
            self._noted_at, self._said = now, True
            self._note(
                f"waits behind {queue.others} tasks of others on this scheduler, and nothing of this sweep runs "
                f"meanwhile; it may be stopped at any time"
            )

    def worked(self) -> None:
        """Note that a task of the run was done."""
        if self._said:
            self._note("others' tasks on this scheduler leave room: the sweep goes on")
        self._since, self._said = None, False

    @property
    def behind(self) -> bool:
        """Whether a run that is to stop would have to wait for others."""
        return self._since is not None and self._now - self._since >= STOP_SECONDS
