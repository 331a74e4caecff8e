"""What this user has submitted, kept outside of every cube: which jobs may be cancelled is decided by this alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from evalcube.flows.state.trust import make_own_folder, own_record, state_folder, write_own
from evalcube.storage.files import locked
from evalcube.storage.urls import resolved

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
