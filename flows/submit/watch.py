"""What became of a submitted sweep, and its end at this user's wish."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evalcube import EvalcubeError
from flows.cubes.status import cube_status
from flows.errors import SweepError
from flows.submit.chain import Chain, Outlook
from flows.submit.records import Submission, SubmittedPart, submissions, submissions_of


def outlooks(submission: Submission) -> list[Outlook]:
    """How each part of a submission is, as far as Slurm answers here and the folder is seen."""
    return [_outlook(submission, part) for part in submission.parts]


def lines_about(target: str) -> list[str]:
    """What a user should read about the jobs that work on a cube; nothing where none were submitted."""
    known = submissions_of(target)
    if not known:
        return []
    newest = known[-1]
    where = f" on {newest.host}" if newest.host else ""
    lines = [f"submitted{where} as {newest.name}, {newest.submitted}; logs in {newest.folder}"]
    return lines if newest.host else [*lines, *map(str, outlooks(newest))]


def wanted(target: str | None) -> Submission:
    """The submission that is meant: by its name or cube, or the only one there is.

    Raises
    ------
    SweepError
        If there is none.
    """
    known = submissions() if target is None else submissions_of(target)
    if not known:
        what = "nothing was submitted" if target is None else f"no jobs were submitted for '{target}'"
        raise SweepError(f"{what} by you on this machine", "`squeue --me` lists all of your jobs")
    if target is None and len(known) > 1:
        names = ", ".join(one.name for one in known[-5:])
        raise SweepError("which one is meant?", f"Give its cube or its name, such as {names}")
    return known[-1]


def cancel(submission: Submission) -> int:
    """End all jobs of a submission, and have no further ones begin; returns how many there were.

    Raises
    ------
    ClusterError
        If Slurm does not answer.
    """
    from deploy.clusters.slurm import queue

    ended = 0
    for part in submission.parts:
        live = {number for number, state in queue.states(part.job_name).items() if state.live}
        ended += len(live)
        path = _chain_path(submission, part)
        # Before its job ends, whose successor looks here.
        with suppress(OSError, ValueError):
            chain = Chain.read(path)
            if not chain.complete:
                replace(chain, stopped="cancelled").write(path)
        queue.cancel(live, part.job_name)
    return ended


def _outlook(submission: Submission, part: SubmittedPart) -> Outlook:
    # Here, not above: it loads Dask, and `status` of a sweep that nobody submitted is quick without.
    from deploy.clusters.base import ClusterError
    from deploy.clusters.slurm import queue

    try:
        found = queue.states(part.job_name)
    except ClusterError:
        found = {}
    live = {number: state.state for number, state in found.items() if state.live}
    try:
        chain = Chain.read(_chain_path(submission, part))
    except (OSError, ValueError):
        chain = None
    return Outlook(part.name, live, chain, _done(part))


def _done(part: SubmittedPart) -> tuple[int, int] | None:
    try:
        document = cube_status(part.cube)
    except EvalcubeError:
        return None
    live = document.get("live") or {}
    return max(int(document["done"]), int(live.get("done", 0))), int(document["trials"])


def _chain_path(submission: Submission, part: SubmittedPart) -> Path:
    return Path(submission.folder) / part.name / "chain.json"
