"""What this user has submitted to Slurm, what became of it, and its end at this user's wish.

Records are kept outside of every cube: which jobs may be cancelled is decided by them alone.
"""

from __future__ import annotations

import getpass
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from evalcube import EvalcubeError
from evalcube.deploy import slurm
from evalcube.deploy.errors import ClusterError
from evalcube.flows.errors import SweepError
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.jobs.chain import Chain, Outlook
from evalcube.flows.state.records import ask_to_stop, who_stops
from evalcube.flows.state.trust import make_own_folder, own_record, state_folder, write_own
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder, read_holder
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError
from evalcube.storage.files import locked
from evalcube.storage.urls import Address, resolved

_READ_BYTES = 5_000_000
_LOCK = "submit.lock"
_LOCK_SECONDS = 120.0
"""So long another submission may take: Slurm answers late at times."""
_NAME = re.compile(r"evalcube-[A-Za-z0-9-]{1,100}")


@dataclass(frozen=True)
class SubmittedPart:
    """A part of a sweep that was submitted."""

    name: str
    job_name: str
    """Of all jobs of its chain."""
    job: int
    """The first one's number."""
    cube: str


@dataclass(frozen=True)
class Submission:
    """A sweep that was submitted."""

    name: str
    """Unique among this user's."""
    submitted: str
    """When: ISO 8601, UTC."""
    cube: str
    folder: str
    """Of its scripts, configs, logs and chains."""
    parts: tuple[SubmittedPart, ...]


@contextmanager
def alone() -> Iterator[None]:
    """Be this user's only submission, from the look at what goes on already to the record of what was submitted.

    Two in the same instant would both find nothing. A lock and no file that says so: it ends with its process.

    Raises
    ------
    TimeoutError
        If another one takes too long.
    OSError
        If this user's state folder cannot be written, or has no locks.
    """
    folder = _folder()
    make_own_folder(folder)
    with locked(folder / _LOCK, _LOCK_SECONDS, 0o600):
        yield


def remember(submission: Submission) -> None:
    """Keep a submission.

    Raises
    ------
    OSError
        If this user's state folder cannot be written.
    """
    write_own(_folder() / f"{submission.name}.json", asdict(submission))


def submissions() -> list[Submission]:
    """What this user submitted, the newest last; records that somebody else could have written are left out."""
    try:
        paths = [path for path in _folder().iterdir() if path.suffix == ".json"]
    except OSError:
        return []
    found = [one for one in map(_read, paths) if one is not None]
    return sorted(found, key=lambda one: (one.submitted, one.name))


def submissions_of(target: str) -> list[Submission]:
    """Those with a name, or for a cube or the cube of a part, the newest last.

    Parameters
    ----------
    target
        The name, or the cube's address.
    """
    known = submissions()
    named = [one for one in known if one.name == target]
    if named:
        return named
    try:
        place = resolved(target)
    except Exception:  # noqa: BLE001 - no address of a cube
        return []
    return [one for one in known if place in _places(one)]


def _places(submission: Submission) -> set[str]:
    return {resolved(address) for address in (submission.cube, *(part.cube for part in submission.parts))}


def _folder() -> Path:
    return state_folder() / "jobs"


def _read(path: Path) -> Submission | None:
    document = own_record(path, _READ_BYTES)
    if document is None:
        return None
    try:
        parts = tuple(SubmittedPart(**part) for part in document["parts"])
        found = Submission(**{**document, "parts": parts})
        # These become arguments of Slurm's commands.
        valid = all(_NAME.fullmatch(part.job_name) and isinstance(part.job, int) for part in parts)
    except (TypeError, KeyError):
        return None
    return found if valid else None


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
            found |= slurm.live_jobs(part.job_name).keys()
    return found


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
        live = slurm.live_jobs(part.job_name)
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
        live = slurm.live_jobs(part.job_name)
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
