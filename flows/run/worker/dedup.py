"""Asks each request once where several runs share a cache: what another run asks already is waited for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from distributed import Reschedule

from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Job, Result

_PATIENCE_SECONDS = 600.0
"""So long another run is waited for; then it may be stopped, and its requests are asked anyway."""


class SharedResults(NamedTuple):
    """What became of jobs."""

    results: list[Result | None]
    """In the order of the jobs; None for one that was answered already when its turn came."""
    shared: int
    """Of those, the ones that another run was asking meanwhile."""


def ask(work: Workspace, model: str, jobs: Sequence[Job], task: Hashable) -> SharedResults:
    """Ask, and wait for the answers that another run was first to ask for.

    Parameters
    ----------
    task
        Name of the task, by which it can be abandoned.

    Returns
    -------
    Asked
        What was asked, and what others had answered meanwhile.

    Raises
    ------
    Reschedule
        The task was abandoned, or the run is over.
    """

    def run(some: Sequence[Job]) -> dict[str, Result]:
        results = work.engine().run(model, some, caller=task, unwanted=unwanted) if some else []
        return {job.digest: result for job, result in zip(some, results, strict=True)}

    def unwanted() -> Reschedule | None:
        return Reschedule() if work.is_abandoned(task) else None

    claims = work.claims(model)
    keys = [job.digest for job in jobs]
    # Announced before anything is looked up: of two runs that begin together, at least one sees the other's claim.
    claim = None if claims is None else claims.make(keys)
    if claims is None or claim is None:
        answers = run(jobs)
        return SharedResults([answers[key] for key in keys], 0)
    try:
        theirs = claims.others(keys, claim)
        mine = [job for job in jobs if job.digest not in theirs]
        # What another run was asking when this one looked it up may be answered by now, and claimed no more; or a
        # worker of this run had it answered, in the half second before it died.
        answers = run(_unanswered(work, mine))
        if theirs:
            # Own requests went first, so that connections are not idle while another run answers the rest.
            claims.wait(sorted(set(theirs.values())), _PATIENCE_SECONDS, _is_over(work, task))
            # A run that was killed, or failed, leaves some unanswered: somebody has to ask them after all.
            answers |= run(_unanswered(work, [job for job in jobs if job.digest in theirs]))
    finally:
        # Also after an error: others should not wait for what nobody asks.
        claim.release()
    return SharedResults([answers.get(key) for key in keys], sum(key not in answers for key in theirs))


def _unanswered(work: Workspace, jobs: Sequence[Job]) -> list[Job]:
    replies = work.fetch([job.digest for job in jobs])
    return [job for job, reply in zip(jobs, replies, strict=True) if reply is None]


def _is_over(work: Workspace, task: Hashable) -> Callable[[], bool]:
    """A function that returns whether to stop waiting, as the run stops."""

    def is_over() -> bool:
        # Its thread is wanted back at once; the driver that waits for the task may be gone.
        if work.is_abandoned(task):
            raise Reschedule
        return work.drained

    return is_over
