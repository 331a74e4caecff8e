"""Which workers hang or were paused, and whether a run waits behind others, as the scheduler has it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from evalcube.deploy.clusters.registrar import ClusterView, Queue

ASKED_SECONDS = 5.0
"""So long nothing is heard of a worker until it is asked itself: Dask's workers report every second or so."""
NAMED_SECONDS = 10.0
MOVED_SECONDS = 40.0
"""So long until its blocks are moved. What is slow answers a question within that, however busy its machine is."""
PAUSED_SECONDS = 5.0
"""So long until a pause counts: a worker at its limit of memory pauses and goes on again and again."""
_MOST_SECONDS = 2.0
"""Between two looks count that much: whoever looks may have been stopped meanwhile, and not the worker."""


class Health:
    """Who is silent, and who is paused.

    Parameters
    ----------
    note
        Called with what the user should read.
    named
        Returns a worker's name for people.
    """

    def __init__(self, note: Callable[[str], None], named: Callable[[str], str]) -> None:
        self._note, self._named = note, named
        self._looked_at: float | None = None
        self._seen: dict[str, float] = {}
        self._silence: dict[str, float] = {}
        """By address, seconds without a word."""
        self._pauses: dict[str, float] = {}
        """By address, seconds in which it was paused."""
        self._said: set[str] = set()
        """Silent workers that the user has heard of."""
        self.silent: frozenset[str] = frozenset()
        """Workers whose blocks are moved, as they do not answer."""
        self.paused: frozenset[str] = frozenset()
        """Workers whose blocks are moved, as Dask gives them none."""

    @property
    def doubtful(self) -> list[str]:
        """Workers that are to be asked whether they are there."""
        return sorted(address for address, seconds in self._silence.items() if seconds >= ASKED_SECONDS)

    def see(self, view: ClusterView, now: float) -> None:
        """Take in what the scheduler knows."""
        # If this process itself was stopped for an hour, nobody else was silent for that hour.
        passed = 0.0 if self._looked_at is None else min(now - self._looked_at, _MOST_SECONDS)
        self._looked_at = now
        # Only whether a time has changed counts: it is of the scheduler's clock, not of this one's.
        self._silence = {
            address: self._silence.get(address, 0.0) + passed if self._seen.get(address) == seen else 0.0
            for address, seen in view.seen.items()
        }
        self._seen = dict(view.seen)
        # A pause that is seen for the first time has lasted for nothing yet.
        self._pauses = {address: self._pauses.get(address, -passed) + passed for address in view.paused}
        self._update()

    def note_answers(self, addresses: Collection[str]) -> None:
        """Note that workers answered a question, whatever the scheduler heard of them."""
        for address in addresses:
            if address in self._silence:
                self._silence[address] = 0.0
        self._update()

    def _update(self) -> None:
        for address, seconds in self._silence.items():
            if seconds >= NAMED_SECONDS and address not in self._said:
                self._said.add(address)
                self._note(
                    f"worker {self._named(address)} has not responded for {NAMED_SECONDS:g} s: it hangs, or its "
                    f"machine is unreachable"
                )
            elif seconds == 0.0 and address in self._said:
                self._said.discard(address)
                self._note(f"worker {self._named(address)} responds again")
        # Another process may come with the address of one that went: then its silence is news again.
        self._said &= self._silence.keys()
        silent = {address for address, seconds in self._silence.items() if seconds >= MOVED_SECONDS}
        paused = {address for address, seconds in self._pauses.items() if seconds >= PAUSED_SECONDS}
        # Nothing is moved where there is nobody to take it.
        left = bool(set(self._seen) - silent - paused)
        for address in sorted(silent - self.silent):
            self._note(
                f"worker {self._named(address)} still does not respond: other workers take its blocks"
                if left
                else f"worker {self._named(address)} still does not respond, and no other can take its blocks"
            )
        for address in sorted(paused - self.paused):
            self._note(
                f"Dask has paused worker {self._named(address)}, whose memory is nearly full: "
                + ("other workers take its connections and blocks" if left else "no task starts there")
            )
        for address in sorted(self.paused - paused):
            if address in self._seen:
                self._note(f"worker {self._named(address)} is no longer paused")
        self.silent, self.paused = frozenset(silent), frozenset(paused)

    @property
    def aside(self) -> frozenset[str]:
        """Workers that are to take no part for now; none where no other is left."""
        # Where no other is left, they are waited for: Dask may let them go on, and machines come back.
        out = self.silent | self.paused
        return out if set(self._seen) - out else frozenset()


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
        """Take in what the scheduler has to do."""
        self._now = now
        # With nothing waiting it is the driver's turn, and without others the run waits for its own workers.
        if queue.running or not queue.waiting or not queue.others:
            self.note_work()
            return
        self._since = now if self._since is None else self._since
        if now - self._since >= NOTE_SECONDS and now - self._noted_at > _AGAIN_SECONDS:
            self._noted_at, self._said = now, True
            self._note(
                f"waiting for {queue.others} tasks of other users on this scheduler; no task of this sweep is "
                f"running. You can stop it at any time"
            )

    def note_work(self) -> None:
        """Note that a task of the run was done."""
        if self._said:
            self._note("the scheduler has room again: the sweep continues")
        self._since, self._said = None, False

    @property
    def behind(self) -> bool:
        """Whether a run that is to stop would have to wait for others."""
        return self._since is not None and self._now - self._since >= STOP_SECONDS
