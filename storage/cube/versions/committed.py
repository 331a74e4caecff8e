# ruff: noqa: ARG002 - most of what a space does is refused here, whatever is given
"""A cube as one commit of an Icechunk repository has it, for reading only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, unquote

import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from evalcube.storage.cube.read_only import FinishedLog, NobodysLease, ReadOnly, copied_lines
from evalcube.storage.cube.space import Found, LeaseRecord, Version
from evalcube.storage.cube.versions.repository import MAIN, commit_of, no_ref, opened, translated
from evalcube.storage.cube.versions.zarr_store import CommittedStore
from evalcube.storage.errors import NotWritableError
from evalcube.storage.urls import RepositoryAddress

if TYPE_CHECKING:
    from zarr.abc.store import Store

T = TypeVar("T")
RECORDS = "_evalcube/records"
"""Group of the arrays of bytes that a cube's records are."""

_METADATA = "zarr.json"


def committed_files(address: RepositoryAddress) -> CommittedFiles:
    """The files of the commit that an address means now; what is committed to its branch later does not change them.

    Raises
    ------
    CubeNotFoundError
        There is a repository, and no such tag, branch or commit in it.
    StorageError
        The repository cannot be reached.
    """
    repository = opened(address)
    if repository is None:
        return CommittedFiles(address, "")
    with translated(address):
        commit = commit_of(repository, address.ref)
    if commit is None:
        if address.ref in ("", MAIN):
            return CommittedFiles(address, "")
        raise no_ref(address, repository)
    return CommittedFiles(address, commit)


@dataclass(frozen=True, slots=True)
class CommittedFiles(ReadOnly):
    """A `evalcube.storage.cube.space.Space` in a commit."""

    repository: RepositoryAddress
    commit: str
    """Its id; empty where there is no repository."""
    prefix: str = ""
    """Of the keys, empty or with a slash at its end."""

    @property
    def address(self) -> str:
        """The repository's address with the ref that was given, and the part inside."""
        return f"{self.repository}" + (f" {self.prefix.rstrip('/')}" if self.prefix else "")

    def at(self, name: str) -> CommittedFiles:
        """The objects below a folder."""
        return CommittedFiles(self.repository, self.commit, f"{self.prefix}{name}/")

    def is_there(self) -> bool:
        """Whether there is a repository."""
        return bool(self.commit)

    def get(self, key: str, most: int | None = None) -> Found | None:
        """An object's content, or its first `most` bytes; None if there is none."""
        if not self.commit:
            return None
        key = self.prefix + key
        with translated(self.repository):
            data = _value(self._store(), key) if is_array_key(key) else _record(self._store(), key)
        return None if data is None else Found(data[:most], Version(self.commit), len(data))

    def version(self, key: str) -> Version | None:
        """The commit, if it has the object."""
        if not self.commit:
            return None
        key = self.prefix + key
        with translated(self.repository):
            there = sync(
                self._store().exists(key if is_array_key(key) else f"{record_path(key)}/{_METADATA}")
            )
        return Version(self.commit) if there else None

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys that begin with a prefix."""
        if not self.commit:
            return iter(())
        begin = self.prefix + prefix
        with translated(self.repository):
            keys = list(stored_keys(self._store()))
        return (key.removeprefix(self.prefix) for key in keys if key.startswith(begin))

    def zarr(self, *, read_only: bool = False) -> Store:
        """Zarr's store of the commit."""
        return self._store()

    def log(self, key: str) -> FinishedLog:
        """A log, in the one file of a directory or in the numbered objects of a bucket."""
        return FinishedLog(self, lambda: copied_lines(self, key))

    def lease(self, key: str) -> LeaseRecord:
        """Nobody works in a commit."""
        return NobodysLease(self)

    def refusal(self) -> NotWritableError:
        """See `ReadOnly.refusal`."""
        remedy = f"Work in a copy: evalcube checkout '{self.repository}' DIRECTORY, and commit that."
        return NotWritableError("a commit stays as it is", str(self.repository), remedy)

    def _store(self) -> Store:
        return CommittedStore(self.repository, self.commit)


def is_array_key(key: str) -> bool:
    """Whether a key is one that Zarr gives: of metadata or of a chunk. All others are records."""
    parts = key.split("/")
    if parts[-1] == _METADATA:
        return True
    if "c" not in parts:
        return False
    chunk = parts[len(parts) - parts[::-1].index("c") :]
    return all(part.isdecimal() for part in chunk)


def record_path(key: str) -> str:
    """Path of the array that a record is: all of them lie in one group, whatever folder they are from."""
    return f"{RECORDS}/{quote(key, safe='')}"


def stored_keys(store: Store) -> Iterator[str]:
    """Keys of a cube's objects in a store of a repository: those of arrays, and of records the names that these had."""
    begin = f"{RECORDS}/"
    for key in sync(_all(store.list())):
        if not key.startswith(begin):
            yield key
        elif key.endswith(f"/{_METADATA}") and key.count("/") > begin.count("/"):
            yield unquote(key.removeprefix(begin).partition("/")[0])


def _value(store: Store, key: str) -> bytes | None:
    found = sync(store.get(key, default_buffer_prototype()))
    return None if found is None else found.to_bytes()


def _record(store: Store, key: str) -> bytes | None:
    path = record_path(key)
    if not sync(store.exists(f"{path}/{_METADATA}")):
        return None
    return np.asarray(zarr.open_array(store, path=path, mode="r")[:]).tobytes()


async def _all(keys: AsyncIterator[T]) -> list[T]:
    return [key async for key in keys]
