"""The chain of jobs that bring one part to its end: what happened so far, and whether there is to be another job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from storage.files import replace_synced

MOST_RETRIES = 3
_GO_ON = ("TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE")
"""States in which Slurm took a job away that would have gone on."""

Ending = Literal["", "complete", "time", "bound", "failed", "cancelled"]
"""How a job ended, by its own account: not at all (it was killed), with the sweep complete, with its time used up,
because the run was stopped (at its bound of spending, or by an order), with an error, because somebody cancelled it."""


@dataclass(frozen=True)
class Attempt:
    """One job of a chain."""

    job: int
    ending: Ending = ""
    code: int | None = None
    """Exit code of the run."""


@dataclass(frozen=True)
class Chain:
    """The jobs of one part so far."""

    walltime: float
    """Seconds of each job."""
    total: float
    """Seconds of walltime of all jobs together, at most."""
    attempts: tuple[Attempt, ...] = ()
    stopped: str = ""
    """Why there is no further job; empty while there may be one."""

    @property
    def complete(self) -> bool:
        """Whether the part is done."""
        return bool(self.attempts) and self.attempts[-1].ending == "complete"

    @property
    def retries(self) -> int:
        """Jobs that failed or were killed for a reason that does not explain it."""
        return sum(attempt.ending in ("", "failed") for attempt in self.attempts)

    def before_next(self, parent: str | None) -> Chain:
        """The chain when its next job begins: with the reason in `stopped` if that must do nothing.

        Parameters
        ----------
        parent
            Slurm's state of the last job, such as TIMEOUT; None if there was none, or nobody knows it any more.
        """
        if not self.attempts or self.stopped:
            return self
        last = self.attempts[-1]
        if last.ending == "complete":
            return replace(self, stopped="complete")
        if last.ending == "bound":
            return replace(self, stopped="the run was stopped, by its bound of spending or an order")
        if last.ending == "cancelled" or (parent or "").startswith("CANCELLED"):
            return replace(self, stopped=f"job {last.job} was cancelled")
        chain = self
        if parent in _GO_ON:
            # Killed, but not by a fault of its own.
            chain = replace(self, attempts=(*self.attempts[:-1], replace(last, ending="time")))
        if chain.retries > MOST_RETRIES:
            return replace(chain, stopped=f"{chain.retries} jobs failed; the last one was {last.job}")
        if not chain.has_time:
            return replace(chain, stopped="its total walltime is used up")
        return chain

    @property
    def has_time(self) -> bool:
        """Whether another job is within the total walltime."""
        return (len(self.attempts) + 1) * self.walltime <= self.total

    def begun(self, job: int) -> Chain:
        """The chain with one more job, which has begun."""
        return replace(self, attempts=(*self.attempts, Attempt(job)))

    def ended(self, ending: Ending, code: int | None) -> Chain:
        """The chain whose last job has ended."""
        last = replace(self.attempts[-1], ending=ending, code=code)
        return replace(self, attempts=(*self.attempts[:-1], last))

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        replace_synced(path, json.dumps(asdict(self)).encode())

    @staticmethod
    def read(path: Path) -> Chain:
        """Read what `write` kept.

        Raises
        ------
        OSError
            The file cannot be read.
        ValueError
            It holds something else.
        """
        try:
            document: Mapping[str, Any] = json.loads(path.read_bytes())
            attempts = tuple(Attempt(**attempt) for attempt in document["attempts"])
            return Chain(**{**document, "attempts": attempts})
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: no chain of jobs") from error


@dataclass(frozen=True)
class Outlook:
    """What may be said of a part."""

    part: str
    jobs: Mapping[int, str] | None = field(default_factory=dict)
    """Those in the queue or running: number -> state; None where Slurm does not answer."""
    chain: Chain | None = None
    done: tuple[int, int] | None = None
    """Trials that are done, and all of them; None where there is no cube yet."""
    unbegun: tuple[int, tuple[str, ...]] | None = None
    """A job that has a log and is not in the chain, and the last lines of that log."""

    @property
    def _all_done(self) -> bool:
        return self.done is not None and self.done[0] >= self.done[1] > 0

    @property
    def _tells_log(self) -> bool:
        """Whether the log of the job that did not begin says why no job goes on."""
        chain = self.chain
        ended = chain is None or chain.complete or chain.stopped or self._all_done
        return self.jobs is not None and not self.jobs and not ended

    @property
    def _end(self) -> str:
        stopped = self.chain.stopped if self.chain is not None else ""
        return f"; the chain ended: {stopped}" if stopped else ""

    def __str__(self) -> str:
        if self.chain is None:
            told = "nothing is known of its jobs"
        elif self.chain.complete:
            told = "complete"
        elif self.jobs:
            told = ", ".join(f"job {number} {state}" for number, state in sorted(self.jobs.items()))
        elif self._all_done:
            # By another chain, or a run of the user's: this one's end says nothing of the trials.
            told = f"no job goes on, and all trials of its cube are done{self._end}"
        elif self.chain.stopped:
            told = f"ended: {self.chain.stopped}"
        elif self.jobs is None:
            told = "Slurm does not answer here, so that it is not known whether a job goes on"
        elif self.unbegun is not None:
            told = f"job {self.unbegun[0]} ended before its run could start, and no job goes on"
        elif not self.chain.attempts:
            told = "no job is in the queue, and none has begun"
        else:
            last = self.chain.attempts[-1]
            told = f"no job is in the queue; the last one, {last.job}, ended: {last.ending or 'killed'}"
        begun = len(self.chain.attempts) if self.chain is not None else 0
        more = [f"{self.done[0]:,} of {self.done[1]:,} trials"] if self.done is not None else []
        more += [f"{begun} jobs so far"] if begun > 1 else []
        line = f"{self.part}: {told}" + (f" ({', '.join(more)})" if more else "")
        lines = self.unbegun[1] if self._tells_log and self.unbegun is not None else ()
        return "\n".join([line, *(f"  | {one}" for one in lines)])
