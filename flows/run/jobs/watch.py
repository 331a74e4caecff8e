"""What became of a submitted sweep, and its end at this user's wish."""

from __future__ import annotations

import getpass
import platform
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evalcube import EvalcubeError
from evalcube.deploy import slurm
from evalcube.deploy.errors import ClusterError
from evalcube.flows.errors import SweepError
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.jobs.chain import Chain, Outlook
from evalcube.flows.run.jobs.records import Submission, SubmittedPart, submissions_of
from evalcube.flows.state.records import ask_to_stop, who_stops
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder, read_holder
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import Address

_LOG_LINES = 5
"""Of a job's log that are shown."""


def outlooks(submission: Submission) -> list[Outlook]:
    """How each part of a submission is, as far as Slurm answers here and the folder is seen."""
    return [_outlook(submission, part) for part in submission.parts]


def lines_about(target: str) -> list[str]:
    """What a user should read about the jobs that work on a cube; nothing where none were submitted."""
    known = submissions_of(target)
    return [
        line
        for one in known
        if one is known[-1] or _may_live(one)
        for line in (
            f"submitted as {one.name}, {one.submitted}; logs in {one.folder}",
            *map(str, outlooks(one)),
        )
    ]


def live_jobs(submission: Submission) -> set[int]:
    """Numbers of the jobs of its chains that wait or run, but for chains that have come to their end.

    Raises
    ------
    ClusterError
        If Slurm does not answer.
    """
    found: set[int] = set()
    for part in submission.parts:
        chain = _chain(submission, part)
        if chain is None or not (chain.complete or chain.stopped):
            found |= _live_states(part).keys()
    return found


def _live_states(part: SubmittedPart) -> dict[int, str]:
    """Number -> state of the jobs of a part that wait or run."""
    return {number: state.state for number, state in slurm.states(part.job_name).items() if state.live}


def _may_live(submission: Submission) -> bool:
    """Whether it goes on, or nobody knows, as Slurm does not answer."""
    try:
        return bool(live_jobs(submission))
    except ClusterError:
        return True


def cancel(submission: Submission) -> int:
    """End all jobs of a submission, and have no further ones begin; returns how many there were.

    Raises
    ------
    ClusterError
        If Slurm does not answer.
    """
    ended = 0
    for part in submission.parts:
        live = _live_states(part)
        ended += len(live)
        path = _chain_path(submission, part)
        # Before its job ends, whose successor looks here.
        with suppress(OSError, ValueError):
            chain = Chain.read(path)
            if not chain.complete and not chain.stopped:
                replace(chain, stopped="cancelled").write(path)
        slurm.cancel(live.keys(), part.job_name)
    return ended


def _outlook(submission: Submission, part: SubmittedPart) -> Outlook:
    live: dict[int, str] | None = None
    with suppress(ClusterError):
        live = _live_states(part)
    chain = _chain(submission, part)
    logs = _logs(submission, part)
    known = {attempt.job for attempt in chain.attempts} if chain is not None else set()
    unbegun = (
        tuple(sorted(logs.keys() - known - live.keys())) if chain is not None and live is not None else ()
    )
    newest = max((*unbegun, *known), default=None)
    lines = () if live or newest not in logs else _last_lines(logs[newest])
    return Outlook(part.name, live, chain, _done(part), unbegun, lines)


def _logs(submission: Submission, part: SubmittedPart) -> dict[int, Path]:
    """The log of each job that Slurm began, by its number."""
    try:
        paths = list((Path(submission.folder) / part.name).glob("*.log"))
    except OSError:
        return {}
    return {int(path.stem): path for path in paths if path.stem.isdecimal()}


def _last_lines(log: Path) -> tuple[str, ...]:
    try:
        return tuple(slurm.last_lines(log, _LOG_LINES))
    except OSError:
        return ()


def _done(part: SubmittedPart) -> tuple[int, int] | None:
    try:
        document = cube_status(part.cube)
    except EvalcubeError:
        return None
    live = document.get("live") or {}
    return max(int(document["done"]), int(live.get("done", 0))), int(document["trials"])


def _chain(submission: Submission, part: SubmittedPart) -> Chain | None:
    try:
        return Chain.read(_chain_path(submission, part))
    except (OSError, ValueError):
        return None


def _chain_path(submission: Submission, part: SubmittedPart) -> Path:
    return Path(submission.folder) / part.name / "chain.json"


PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.5


def stop_run(url: Address, *, wait: float = PATIENCE_SECONDS) -> bool:
    """Ask the run that works on a cube to stop in good order.

    Parameters
    ----------
    url
        The cube's address.
    wait
        Seconds to wait until it has heard.

    Returns
    -------
    bool
        Whether there is such a run.

    Raises
    ------
    SweepError
        If it has not heard by then.
    StorageError
        If there is no cube, or it cannot be written.
    """
    records = Cube.open(url).records
    holder = apparent_holder(records)
    if holder is None:
        return False
    ask_to_stop(records, holder.token, _sender())
    deadline = time.monotonic() + wait
    while who_stops(records, holder.token) and not _is_over(records, holder.token):
        if time.monotonic() > deadline:
            raise SweepError(
                f"the run on '{url}' has not answered within {wait:g} s",
                "It stops when it looks, as after starting a model's server; `evalcube status` shows whether it has",
            )
        time.sleep(_POLL_SECONDS)
    return True


def _is_over(records: Space, token: str) -> bool:
    try:
        found = read_holder(records)
    except (OSError, StorageError):
        return False  # a store that is away for a moment
    return found is None or found[0].token != token


def _sender() -> str:
    name = "somebody"
    with suppress(OSError, KeyError):  # a user without a name, as in some containers
        name = getpass.getuser()
    return f"{name}@{platform.node()}"
