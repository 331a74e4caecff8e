"""Keeps the states of a cube as commits of an Icechunk repository: with branches, tags, and a log that people read."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from evalcube import __version__
from evalcube.flows.errors import SweepError
from evalcube.flows.merge.difference import diff_cubes
from evalcube.flows.merge.inputs import ledger_digest
from evalcube.flows.plan.records import DRIVER, LIVE, read_notes
from evalcube.flows.plan.spec import parse_spec
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import NAME as LEASE
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.errors import CubeExistsError, UnsupportedUrlError, need_package
from evalcube.storage.urls import ICECHUNK, RepositoryAddress, repository_address, resolved, scheme_of

if TYPE_CHECKING:
    from evalcube.storage.cube.versions.repository import Commit

_TRANSIENT = (LEASE, LIVE, DRIVER, "damaged")
"""Records, and folders of them, that say what goes on at the moment, or were put aside."""
_LONGEST = 500


@dataclass(frozen=True)
class Committed:
    """What a commit did."""

    repository: str
    """With the branch."""
    commit: str
    """Its id."""
    trials: int
    """Finished ones of the cube, repeats included."""
    objects: int
    changed: int
    """Objects that are new, other ones or gone since the commit before; none if nothing was committed."""
    size: int
    """Bytes of those that were written."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class LogEntry:
    """A commit, as the log shows it."""

    commit: str
    at: str
    """ISO 8601, UTC."""
    message: str
    trials: int | None
    """Finished ones; None of a commit that something else made."""
    names: Sequence[str]
    """Tags and branches that mean it."""

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON values."""
        return {**asdict(self), "names": list(self.names)}


def is_repository(url: str) -> bool:
    """Whether an address is one of an Icechunk repository."""
    return scheme_of(url) == ICECHUNK


def commit_cube(source: str, url: str, *, message: str = "", replace: bool = False) -> Committed:
    """Make a cube the newest state of a branch; what did not change since the state before is not written again.

    Parameters
    ----------
    source
        Address of the cube, which is only read.
    url
        ``icechunk:PLACE#BRANCH``; without a branch, main. Repository and branch are made where there are none; a new
        branch begins at main.
    message
        One line for whoever reads the log.
    replace
        Whether the branch may lose trials that the cube does not have.

    Returns
    -------
    Committed
        The commit, and how much of it is new.

    Raises
    ------
    SweepError
        If a run works on the cube, it holds no trial, or the branch has trials that it lacks.
    StorageError
        If the cube cannot be read, or the repository cannot be written.
    """
    address = _address(url)
    if len(message) > _LONGEST or not (message.isprintable() or not message):
        raise SweepError(f"`message`: one line of at most {_LONGEST} characters", "Shorten it")
    from evalcube.storage.cube.versions.write import commit_objects, tip_of

    cube = Cube.open(source)
    spec = parse_spec(cube.attrs.get("spec"), cube.sizes)
    receipts = _receipts(cube)
    if not receipts:
        raise SweepError(f"cube '{source}' holds no trial", "Run its sweep first")
    base = tip_of(address)
    if base.get("zarr.json") is not None and not replace:
        _refuse_loss(cube, source, f"{ICECHUNK}:{address.place}#{base.commit}", str(address))
    position = ledger_digest(receipts)

    def unchanged() -> None:
        if apparent_holder(cube.records) is not None or ledger_digest(_receipts(cube)) != position:
            raise SweepError(f"a run works on cube '{source}'", "Commit it once that has ended")

    unchanged()
    trials = sum(one.finished for one in receipts)
    name = str(read_notes(cube.records).get("name", ""))[:_LONGEST]
    noted = {
        "trials": trials,
        "models": [row.label for row in spec.evaluations][:1000],
        "name": name,
        "ledger": position,
        "evalcube": __version__,
    }
    text = message or f"{name or 'cube'}: {trials:,} trials"
    written = commit_objects(cube.space, _kept(cube), address, base, text, noted, unchanged)
    return Committed(str(address), written.id, trials, written.objects, written.changed, written.size)


def check_out_cube(url: str, target: str) -> int:
    """Make a cube of a commit, which can then be measured further and committed; returns its finished trials.

    Parameters
    ----------
    url
        ``icechunk:PLACE#REF``, where the ref is a tag, a branch, or the id of a commit; default: main.
    target
        Address of the cube; nothing may be there.

    Raises
    ------
    StorageError
        If there is no such commit, an object is not what was committed, or something is at `target`.
    """
    address = _address(url)
    from evalcube.storage.cube.versions.committed import committed_files
    from evalcube.storage.cube.versions.write import check_out

    if Cube.exists(target):
        raise CubeExistsError("something is already there", target, "Choose another address.")
    Cube.open(url)  # says what is wrong where there is no cube
    check_out(committed_files(address), space_of(target))
    return sum(one.finished for one in _receipts(Cube.open(target)))


def repository_log(url: str) -> list[LogEntry]:
    """The commits that lead to a ref, the newest first.

    Parameters
    ----------
    url
        As for `check_out_cube`.

    Raises
    ------
    StorageError
        If there is no such repository or ref.
    """
    from evalcube.storage.cube.versions.repository import commits, names

    address = _address(url)
    known = names(address)
    return [_entry(one, known.get(one.id, [])) for one in commits(address)]


def tag_commit(url: str, tag: str) -> str:
    """Name the commit that a ref means now, for good; returns its id.

    Parameters
    ----------
    url
        As for `check_out_cube`.
    tag
        The name: letters, digits, '.', '_' and '-'.

    Raises
    ------
    StorageError
        If there is no such commit, or the name is taken or is none.
    """
    from evalcube.storage.cube.versions.repository import set_tag

    address = _address(url)
    return set_tag(address, repository_address(f"{ICECHUNK}:{address.place}#{tag}").ref or _no_name(url))


def repository_tags(url: str) -> list[LogEntry]:
    """The commits that have tags, one entry for each tag, in the order of their names.

    Raises
    ------
    StorageError
        If there is no repository.
    """
    from evalcube.storage.cube.versions.repository import tags

    return [_entry(commit, [tag]) for tag, commit in tags(_address(url))]


def _address(url: str) -> RepositoryAddress:
    if not is_repository(url):
        what = f"an Icechunk repository's address begins with {ICECHUNK}:"
        raise UnsupportedUrlError(
            what, url, f"Write it like {ICECHUNK}:DIRECTORY or {ICECHUNK}:s3://bucket/prefix."
        )
    address = repository_address(url)
    need_package("icechunk", "icechunk", "a cube", str(address))
    return address


def _no_name(url: str) -> str:
    raise SweepError(f"{url}: the tag has no name", "Give one, such as v1")


def _receipts(cube: Cube) -> list[Receipt]:
    with Ledger(cube.records) as ledger:
        return list(ledger.newest().values())


def _kept(cube: Cube) -> list[str]:
    """Keys of all that belongs to the cube's state."""
    skipped = tuple(f"{SIDE}/{name}" for name in _TRANSIENT)
    return [key for key in cube.space.list() if not key.startswith(skipped)]


def _refuse_loss(cube: Cube, source: str, tip: str, branch: str) -> None:
    """Refuse a cube that lacks trials of the branch's newest state, or has others in their place."""
    with Ledger(cube.records) as ledger:
        ours = {one.digest for one in ledger.receipts()}
    if resolved(source) != tip and {one.digest for one in _receipts(Cube.open(tip))} <= ours:
        return  # it is that state, measured further
    found = diff_cubes(tip, source)
    lost, others = found.trials.only_first, found.trials.differing
    if lost or others or found.cells.only_first:
        raise SweepError(
            f"{branch} has {lost:,} trials that '{source}' lacks, and {others:,} that end otherwise there",
            f"Merge the two first (`evalcube merge OUT {source} '{branch}'`) and commit that, commit to another "
            f"branch, or give `replace`",
        )


def _entry(commit: Commit, names: Sequence[str]) -> LogEntry:
    trials = commit.metadata.get("trials")
    at = commit.at.astimezone(datetime.UTC).isoformat(timespec="seconds")
    return LogEntry(commit.id, at, commit.message, trials if isinstance(trials, int) else None, names)
