"""Commits a cube to a branch of an Icechunk repository, and makes a cube of a commit again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import icechunk
import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.ledger import NAME as LEDGER
from evalcube.storage.cube.space import Space
from evalcube.storage.cube.versions.committed import (
    CommittedFiles,
    committed_files,
    is_array_key,
    record_path,
)
from evalcube.storage.cube.versions.repository import MAIN, opened, translated
from evalcube.storage.errors import CubeExistsError, StorageError
from evalcube.storage.files import locked
from evalcube.storage.urls import OBJECT_SCHEMES, RepositoryAddress, scheme_of

if TYPE_CHECKING:
    from zarr.abc.store import Store

DIGESTS = "_evalcube/digests.json"
"""Record of a commit: the SHA-256 of each object, so that the next one writes only what has changed."""

_THREADS = 8
_LOCK = "evalcube.lock"


@dataclass(frozen=True)
class Written:
    """What a commit did."""

    id: str
    changed: int
    """Objects that were written or deleted; with none nothing is committed, and the id is that of the branch."""
    objects: int
    size: int
    """Bytes of the objects that were written."""


def tip_of(address: RepositoryAddress) -> CommittedFiles:
    """The files at the end of a branch, which an address's ref names; none if there is nothing."""
    repository = opened(address)
    if repository is None or (address.ref or MAIN) not in repository.list_branches():
        return CommittedFiles(address, "")
    return committed_files(address)


def commit_objects(
    source: Space,
    keys: list[str],
    address: RepositoryAddress,
    base: CommittedFiles,
    message: str,
    metadata: Mapping[str, Any],
    unchanged: Callable[[], None],
) -> Written:
    """Make objects the state of a branch; others see all of it or nothing, after a kill too.

    Parameters
    ----------
    source, keys
        The objects, byte by byte.
    address
        The repository, which is made if it is not there, and the branch, which is made from `base`.
    base
        What the branch was seen to have, as `tip_of` gave it.
    message, metadata
        For people who read the repository's log.
    unchanged
        Called before it is committed; raises if the objects belong to different states.

    Returns
    -------
    Written
        The commit, and how much of it is new.

    Raises
    ------
    StorageError
        Somebody else has committed to the branch since `base`, or the repository cannot be written.
    """
    with translated(address):
        repository = opened(address, create=True)
        if repository is None:
            raise OSError("it could not be made")
        branch = address.ref or MAIN
        with _alone(address):
            if branch in repository.list_tags():
                raise CubeExistsError(
                    f"{branch} is a tag, which stays as it is", str(address), "Name a branch."
                )
            expected = base.commit
            if branch not in repository.list_branches():
                expected = repository.lookup_branch(MAIN)
                repository.create_branch(branch, expected)
            session = repository.writable_session(branch)
            if session.snapshot_id != (expected or _first(repository)):
                raise _overtaken(address, branch)
            written = _write(source, keys, session.store, _digests(committed_files(address)))
            if not written.changed:
                return Written(session.snapshot_id, 0, len(keys), 0)
            unchanged()
            try:
                commit = session.commit(message, dict(metadata))
            except icechunk.ConflictError:
                raise _overtaken(address, branch) from None
    return Written(commit, written.changed, len(keys), written.size)


def check_out(files: CommittedFiles, target: Space) -> int:
    """Make a cube of a commit; others see all of it or nothing. Returns how many objects it has.

    Raises
    ------
    CubeExistsError
        Something is there already.
    StorageError
        It cannot be read or written, or an object is not what was committed.
    """
    digests = _digests(files)
    log = f"{SIDE}/{LEDGER}"
    logged = f"{SIDE}/{LEDGER.partition('.')[0]}"

    def checked(key: str) -> bytes:
        found = files.get(key)
        if found is None or _digest(found.data) != digests[key]:
            raise StorageError(
                f"{key} is not what was committed", files.address, "Check the repository's store."
            )
        return found.data

    def fill(draft: Space) -> None:
        keys = sorted(digests, key=_order)
        groups = [key for key in keys if key.endswith("zarr.json")]
        others = [key for key in keys if not key.endswith("zarr.json") and not key.startswith(logged)]
        for key in groups:
            draft.put(key, checked(key), durable=False)
        with ThreadPoolExecutor(_THREADS) as pool:
            for key, data in pool.map(lambda key: (key, checked(key)), others):
                draft.put(key, data, durable=False)
        # A log is one file in a directory, and numbered objects in a bucket: the target has its own way.
        lines = draft.log(log)
        for key in keys:
            if key.startswith(logged):
                for line in checked(key).splitlines(keepends=True):
                    lines.append(line)
        lines.close()

    target.assemble(fill)
    return len(digests)


def _write(source: Space, keys: list[str], store: Store, before: Mapping[str, str]) -> Written:
    """Bring a store to the state of some objects."""
    now: dict[str, str] = {}
    changed = size = 0
    with ThreadPoolExecutor(_THREADS) as pool:
        # Metadata first, as a store of Icechunk takes no chunk of an array that it does not know.
        for key, data in pool.map(lambda key: (key, _content(source, key)), sorted(keys, key=_order)):
            now[key] = _digest(data)
            if now[key] != before.get(key):
                _put(store, key, data)
                changed, size = changed + 1, size + len(data)
    for key in sorted(before.keys() - now.keys(), key=_order, reverse=True):
        _delete(store, key)
        changed += 1
    if changed:
        _put(store, DIGESTS, json.dumps(now).encode())
    return Written("", changed, len(keys), size)


def _content(source: Space, key: str) -> bytes:
    found = source.get(key)
    if found is None:
        raise StorageError(f"{key} went away", source.address, "Let whoever works on the cube finish.")
    return found.data


def _put(store: Store, key: str, data: bytes) -> None:
    if is_array_key(key):
        sync(store.set(key, default_buffer_prototype().buffer.from_bytes(data)))
        return
    values = np.frombuffer(data, dtype=np.uint8)
    zarr.create_array(store, name=record_path(key), data=values, chunks=(max(len(data), 1),), overwrite=True)


def _delete(store: Store, key: str) -> None:
    if is_array_key(key):
        sync(store.delete(key))
    else:
        sync(store.delete_dir(record_path(key)))


def _order(key: str) -> tuple[bool, int, str]:
    return not key.endswith("zarr.json"), key.count("/"), key


def _digests(files: CommittedFiles) -> dict[str, str]:
    found = files.get(DIGESTS)
    return {} if found is None else dict(json.loads(found.data))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _alone(address: RepositoryAddress) -> AbstractContextManager[object]:
    """Keep others of this machine from committing: in a directory Icechunk loses one of two commits at once."""
    if scheme_of(address.place) in OBJECT_SCHEMES:
        return nullcontext()
    return locked(Path(address.place) / _LOCK)


def _first(repository: icechunk.Repository) -> str:
    """Id of the empty commit that all others follow."""
    *_, first = repository.ancestry(branch=MAIN)
    return first.id


def _overtaken(address: RepositoryAddress, branch: str) -> StorageError:
    what = f"somebody has committed to {branch} meanwhile"
    return StorageError(what, str(address), "Look at it with `evalcube log`, then commit again.")
