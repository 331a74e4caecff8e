"""Opens Icechunk repositories, and reads and sets their names: branches, tags, and the commits that these lead to."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import icechunk

from evalcube.storage.errors import CubeExistsError, CubeNotFoundError, NotWritableError, StorageError
from evalcube.storage.files import make_directory
from evalcube.storage.urls import OBJECT_SCHEMES, RepositoryAddress, scheme_of

MAIN = "main"
"""The branch that every repository has."""

_REFUSALS = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "Permission denied", "Forbidden")
_VARIABLES = ("AWS_", "GOOGLE_", "AZURE_")


@dataclass(frozen=True)
class Commit:
    """A state of a cube."""

    id: str
    message: str
    at: datetime.datetime
    metadata: Mapping[str, Any]
    """What its writer noted: trials, regions, evalcube's version."""


def opened(address: RepositoryAddress, *, create: bool = False) -> icechunk.Repository | None:
    """The repository at an address; None if there is none.

    Parameters
    ----------
    address
        Its ref does not matter.
    create
        Whether it is made where there is none.

    Raises
    ------
    StorageError
        The place cannot be reached, or holds something else.
    """
    environment = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES)))
    with translated(address):
        found = _opened(address.place, environment, os.getpid())
        if found is not None or not create:
            return found
        if scheme_of(address.place) not in OBJECT_SCHEMES:
            path = Path(address.place)
            if path.exists() and any(path.iterdir()):
                raise CubeExistsError(
                    "something else is there", path, "Choose another place for the repository."
                )
            make_directory(path)
        made = icechunk.Repository.create(_storage(address.place))
        _opened.cache_clear()
        return made


def existing(address: RepositoryAddress) -> icechunk.Repository:
    """The repository at an address.

    Raises
    ------
    CubeNotFoundError
        There is none.
    StorageError
        The place cannot be reached.
    """
    found = opened(address)
    if found is None:
        raise CubeNotFoundError(
            "there is no repository", str(address), "Check its spelling, or make one with `evalcube commit`."
        )
    return found


def commit_of(repository: icechunk.Repository, ref: str) -> str | None:
    """Id of the commit that a tag, a branch or an id means, looked for in that order; None if nothing does."""
    name = ref or MAIN
    for known, look in (
        (repository.list_tags, repository.lookup_tag),
        (repository.list_branches, repository.lookup_branch),
    ):
        if name in known():
            return look(name)
    try:
        next(iter(repository.ancestry(snapshot_id=name)))
    except (icechunk.IcechunkError, ValueError, StopIteration):
        return None
    return name


def commits(address: RepositoryAddress) -> list[Commit]:
    """The commits that lead to an address's ref, the newest first, without the empty one that all begin with.

    Raises
    ------
    CubeNotFoundError
        There is no repository, or no such ref.
    StorageError
        The place cannot be reached.
    """
    repository = existing(address)
    with translated(address):
        tip = commit_of(repository, address.ref)
        if tip is None:
            raise no_ref(address, repository)
        found = [_commit(one) for one in repository.ancestry(snapshot_id=tip)]
    return found[:-1]


def names(address: RepositoryAddress) -> dict[str, list[str]]:
    """Names of each commit's tags and branches, by the commit's id; tags come first.

    Raises
    ------
    CubeNotFoundError
        There is no repository.
    StorageError
        The place cannot be reached.
    """
    repository = existing(address)
    found: dict[str, list[str]] = {}
    with translated(address):
        for tag in sorted(repository.list_tags()):
            found.setdefault(repository.lookup_tag(tag), []).append(tag)
        for branch in sorted(repository.list_branches()):
            found.setdefault(repository.lookup_branch(branch), []).append(branch)
    return found


def tags(address: RepositoryAddress) -> list[tuple[str, Commit]]:
    """The tags of a repository with their commits, in the order of their names.

    Raises
    ------
    CubeNotFoundError
        There is no repository.
    StorageError
        The place cannot be reached.
    """
    repository = existing(address)
    with translated(address):
        return [
            (tag, _commit(next(iter(repository.ancestry(tag=tag))))) for tag in sorted(repository.list_tags())
        ]


def set_tag(address: RepositoryAddress, tag: str) -> str:
    """Give a ref's commit a name for good; returns the commit's id.

    Raises
    ------
    CubeExistsError
        The name is taken: by a tag, which stays as it is, or by a branch.
    CubeNotFoundError
        There is no repository, no such ref, or nothing was committed yet.
    StorageError
        The place cannot be reached.
    """
    tip = commits(address)
    repository = existing(address)
    if not tip:
        raise CubeNotFoundError(
            "nothing was committed yet", str(address), "Commit a cube with `evalcube commit`."
        )
    with translated(address):
        for kind, taken in (("tag", repository.list_tags()), ("branch", repository.list_branches())):
            if tag in taken:
                raise CubeExistsError(
                    f"there is a {kind} {tag} already", str(address), "Choose another name."
                )
        repository.create_tag(tag, tip[0].id)
    return tip[0].id


def no_ref(address: RepositoryAddress, repository: icechunk.Repository) -> CubeNotFoundError:
    """The error that a repository has no such tag, branch or commit; not raised."""
    known = ", ".join([*sorted(repository.list_tags())[-10:], *sorted(repository.list_branches())[:10]])
    return CubeNotFoundError(
        f"there is no tag, branch or commit '{address.ref or MAIN}'", str(address), f"Give one of: {known}."
    )


def _commit(one: icechunk.SnapshotInfo) -> Commit:
    return Commit(one.id, one.message, one.written_at, dict(one.metadata))


@lru_cache(maxsize=16)
def _opened(
    place: str, _environment: tuple[tuple[str, str], ...], _process: int
) -> icechunk.Repository | None:
    if scheme_of(place) not in OBJECT_SCHEMES and not Path(place).is_dir():
        return None
    storage = _storage(place)
    return icechunk.Repository.open(storage) if icechunk.Repository.exists(storage) else None


def _storage(place: str) -> icechunk.Storage:
    """How a place is reached: credentials stay in the environment, and each process reads its own."""
    # Said once, on standard error, of directories; commits to these wait for each other here.
    icechunk.set_logs_filter("error")
    scheme = scheme_of(place)
    if scheme not in OBJECT_SCHEMES:
        return icechunk.local_filesystem_storage(place)
    bucket, _, prefix = place.partition("://")[2].partition("/")
    if scheme == "gs":
        return icechunk.gcs_storage(bucket=bucket, prefix=prefix or None, from_env=True)
    if scheme == "az":
        account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
        return icechunk.azure_storage(account=account, container=bucket, prefix=prefix, from_env=True)
    endpoint = os.environ.get("AWS_ENDPOINT_URL") or None
    return icechunk.s3_storage(
        bucket=bucket,
        prefix=prefix or None,
        from_env=True,
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
        endpoint_url=endpoint,
        allow_http=bool(endpoint and endpoint.startswith("http://")),
        force_path_style=endpoint is not None,
    )


@contextmanager
def translated(address: RepositoryAddress) -> Iterator[None]:
    """Turn an error of Icechunk into one of storage.

    Raises
    ------
    NotWritableError
        The store refuses the credentials, or they do not allow this.
    StorageError
        The place cannot be reached, or holds something else.
    """
    try:
        yield
    except (icechunk.IcechunkError, ValueError, OSError) as error:
        # Its messages have many lines, of which the first says what was wrong.
        line = re.sub(r"\?\S*", "?***", str(error).strip().lstrip("x× ").partition("\n")[0])[:300]
        if any(word in str(error) for word in _REFUSALS):
            text = "the store refuses the credentials, or they do not allow this"
            remedy = "Set the store's environment variables where the repository is used."
            raise NotWritableError(text, str(address), remedy) from None
        raise StorageError(
            f"cannot use the repository: {line or type(error).__name__}",
            str(address),
            "Check the address, the network and the environment variables of the store.",
        ) from None
