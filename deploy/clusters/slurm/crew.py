"""Keeps a number of jobs in the queue: submits them, sees which have ended, and replaces those."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evalcube.deploy.clusters.base import ClusterError
from evalcube.deploy.clusters.slurm import queue
from evalcube.deploy.clusters.slurm.log import last_lines
from evalcube.deploy.clusters.slurm.queue import JobState, SlurmBusyError

_MOST_FAILURES = 3
"""Jobs in a row that end before a worker has come from them."""
_BLAMELESS = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL")
"""Ends that say nothing about the job itself."""
_ROUTINE = ("COMPLETED", "TIMEOUT")
_CLEANING = "COMPLETING"
_FORGOTTEN_SECONDS = 60.0
"""A job that squeue does not list this long after its submission has ended; before, it may not be listed yet."""
_WAITING_NOTE_SECONDS = 600.0
_REFUSED_SECONDS = 60.0
_TAIL_LINES = 12


@dataclass
class _Job:
    """One job that was submitted."""

    submitted: float
    came: bool = False
    """Whether a worker has come from it."""


@dataclass
class Crew:
    """The jobs of one run.

    It is used by one thread at a time.
    """

    name: str
    """Of all its jobs."""
    script: str
    wanted: int
    """Jobs to be kept in the queue or running."""
    log_of: Callable[[int], Path]
    jobs: dict[int, _Job] = field(default_factory=dict)
    """Those that have not ended, by number."""
    _failures: int = 0
    _said_routine: bool = False
    _cleaned: set[int] = field(default_factory=set)
    """Jobs that are replaced already and still cleaned up after: how they ended is to be told."""
    _waiting: tuple[str, float] = ("", 0.0)
    _refused_at: float = float("-inf")

    def start(self) -> list[str]:
        """Submit the jobs; returns what the user should read.

        Raises
        ------
        ClusterError
            If Slurm refuses the first one.
        """
        while True:
            try:
                self._submit()
                break
            except SlurmBusyError:
                self._failures += 1
                if self._failures >= _MOST_FAILURES:
                    raise
                time.sleep(2.0)
        self._failures = 0
        return [f"submitted to Slurm as {self.name}", *self._fill()]

    def look(self, workers: Iterable[str]) -> list[str]:
        """See what became of the jobs, and replace those that have ended; returns what the user should read.

        Parameters
        ----------
        workers
            Names of the workers that are there.

        Raises
        ------
        ClusterError
            If three jobs in a row have ended before a worker came from any, or Slurm refuses the last hope.
        """
        for number in map(job_of, workers):
            if number in self.jobs:
                self.jobs[number].came, self._failures = True, 0
        try:
            found = queue.states(self.name)
        except SlurmBusyError:
            return []  # workers go on without it, and it is asked again
        self._take_back(found)
        ended = self._ended(found)
        for number, state in ended.items():
            job = self.jobs.pop(number)
            if not job.came and state.state not in _BLAMELESS:
                self._failures += 1
                if self._failures >= _MOST_FAILURES:
                    raise ClusterError(self._failure(number, state))
        notes = self._told(self._known_ends(ended, found))
        notes += self._fill()
        return [*notes, *self._queued(found)]

    def end(self) -> None:
        """Cancel all of them."""
        with suppress(ClusterError):
            queue.cancel(self.jobs, self.name)

    def _submit(self) -> None:
        number = queue.submit(self.script)
        self.jobs[number] = _Job(time.monotonic())

    def _fill(self) -> list[str]:
        """Submit what is missing; a refusal while others run is told, and tried again after a while."""
        if time.monotonic() - self._refused_at < _REFUSED_SECONDS:
            return []
        try:
            while len(self.jobs) < self.wanted:
                self._submit()
        except ClusterError as error:
            if not self.jobs and not isinstance(error, SlurmBusyError):
                raise
            self._refused_at = time.monotonic()
            return [f"{len(self.jobs)} of {self.wanted} jobs for now: {error}"]
        return []

    def _take_back(self, found: dict[int, JobState]) -> None:
        """Count jobs again that were cleaned up after to be given back to the queue, as preemption may do."""
        for number in [one for one in self._cleaned if one in found]:
            if found[number].live and found[number].state != _CLEANING:
                self._cleaned.discard(number)
                self.jobs[number] = _Job(time.monotonic(), came=True)

    def _ended(self, found: dict[int, JobState]) -> dict[int, JobState]:
        now = time.monotonic()
        ended = {}
        for number, job in self.jobs.items():
            state = found.get(number)
            if state is None and now - job.submitted > _FORGOTTEN_SECONDS:
                state = JobState("gone", "")
            # One that is cleaned up after has no room for workers; how it ended is of interest if none came from it.
            if state is not None and (not state.live or (job.came and state.state == _CLEANING)):
                ended[number] = state
        return ended

    def _known_ends(self, ended: dict[int, JobState], found: dict[int, JobState]) -> dict[int, JobState]:
        """Of the jobs that have ended, those of which it is known how."""
        self._cleaned.update(number for number, state in ended.items() if state.state == _CLEANING)
        late = {number: found[number] for number in self._cleaned if number in found}
        late = {number: state for number, state in late.items() if state.state != _CLEANING}
        self._cleaned -= late.keys()
        return late | {number: state for number, state in ended.items() if state.state != _CLEANING}

    def _told(self, ended: dict[int, JobState]) -> list[str]:
        odd = Counter(state.state for state in ended.values() if state.state not in _ROUTINE)
        notes = []
        if odd:
            how = ", ".join(f"{state} ×{count}" if count > 1 else state for state, count in odd.items())
            notes.append(f"{odd.total()} of the jobs ended ({how}); others are submitted in their place")
        if len(ended) > odd.total() and not self._said_routine:
            self._said_routine = True
            notes.append("jobs reach their walltime; each is replaced")
        return notes

    def _queued(self, found: dict[int, JobState]) -> list[str]:
        """That jobs wait, and why: once, and again when it has another reason or has lasted."""
        reasons = Counter(
            state.reason
            for number, state in found.items()
            if state.state == "PENDING" and number in self.jobs
        )
        why = ", ".join(sorted(reason for reason in reasons if reason not in ("None", "")))
        said, at = self._waiting
        now = time.monotonic()
        if not why or (why == said and now - at < _WAITING_NOTE_SECONDS):
            return []
        self._waiting = (why, now)
        return [f"{reasons.total()} jobs wait in the queue ({why})"]

    def _failure(self, number: int, state: JobState) -> str:
        log = self.log_of(number)
        tail = tail_of(log)
        shown = f"The last lines of {log}:\n{tail}" if tail else f"It left no log in {log}"
        return (
            f"{_MOST_FAILURES} jobs in a row ended before a worker came from them; the last one was {number} "
            f"({state.state}). {shown}\nMend what it says, in the cluster's prologue, python, interface, memory or "
            f"walltime, and run the same command again."
        )


def job_of(worker: str) -> int | None:
    """The number of the job from which a worker came; None if from none.

    Examples
    --------
    >>> job_of("evalcube-quick-1f3a.17-0"), job_of("evalcube-quick-1f3a.17"), job_of("tcp://10.0.0.1:5")
    (17, 17, None)
    """
    match = re.fullmatch(r"[\w-]+\.(\d+)(?:-\d+)?", worker)
    return int(match[1]) if match else None


def tail_of(log: Path) -> str:
    """The last lines of a log, safe to be shown; empty if there are none."""
    try:
        return "\n".join(f"  {line}" for line in last_lines(log, _TAIL_LINES))
    except OSError:
        return ""
