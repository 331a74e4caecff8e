"""Puts on a condition, which of several writers one wins, also where the store's answer is lost.

A store may do what it was asked for and its answer be lost on the way: the client, or obstore within it, tries again
and is told that somebody was faster, who was itself. So each put on a condition carries a mark of its own in the
object's metadata, and whoever is refused reads it back.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import obstore
from obstore import exceptions

from evalcube.storage.cube.space import Version, When
from evalcube.storage.errors import StorageError
from evalcube.storage.object_stores import has_no_place, mark_reachable, store_errors
from evalcube.storage.urls import store_at

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PROBES = "_evalcube/probes/"
"""Objects below are put to find out what the store does, and deleted at once."""

_MARK = "evalcubeput"
"""One word without signs: each store, and each proxy before one, keeps such a name of metadata."""
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2
_TRUSTED: set[str] = set()
"""Addresses whose stores were seen to honour both conditions."""


def put_always(store: ObjectStore, address: str, path: str, data: bytes) -> Version:
    """Store an object whatever is there; obstore repeats it as often as needed, since that changes nothing."""
    with store_errors(address, "write to the store"):
        return version_of(address, obstore.put(store, path, data, use_multipart=False))


def put_if(store: ObjectStore, address: str, path: str, data: bytes, when: When | Version) -> Version | None:
    """Store an object if nothing is there, or if it is still the version that is given."""
    probe_once(store, address)
    return _put_if(store, address, path, data, when)


def version_of(address: str, meta: Any) -> Version:  # noqa: ANN401 - what obstore says of an object
    """What a store takes as the condition of the next put: GCS a generation, the others an ETag."""
    return Version(str(meta[store_at(address).version]))


def _put_if(store: ObjectStore, address: str, path: str, data: bytes, when: When | Version) -> Version | None:
    mark = secrets.token_hex(16)
    mode = "create" if isinstance(when, When) else {store_at(address).version: when.mark}
    for attempt in range(_ATTEMPTS):
        last = attempt == _ATTEMPTS - 1
        with store_errors(address, "write to the store"):
            try:
                marked: Any = {"mode": mode, "attributes": {_MARK: mark}, "use_multipart": False}
                return version_of(address, obstore.put(store, path, data, **marked))
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                there, version = _stored_version(store, address, path, mark)
                # Nothing is there although it "exists": the store says so as well while another one deletes or puts.
                if there or when is not When.ABSENT or last:
                    return version
            except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, FileNotFoundError):
                raise
            # The request may have succeeded and only its answer be lost: the mark tells before it is sent again.
            except exceptions.BaseError:
                there, version = _stored_version(store, address, path, mark)
                if version is not None:
                    return version
                if last:
                    raise
        # On top of obstore's own retries: here the store answers, and contradicts itself for a moment.
        time.sleep(_PAUSE_SECONDS * 2**attempt)
    return None


def _stored_version(store: ObjectStore, address: str, path: str, mark: str) -> tuple[bool, Version | None]:
    """Whether there is an object, and its version if it is the one with this mark."""
    try:
        answer = obstore.get(store, path, options={"head": True})
    except FileNotFoundError as error:
        if has_no_place(error):
            raise
        return False, None
    mine = answer.attributes.get(_MARK) == mark
    return True, version_of(address, answer.meta) if mine else None


def probe_once(store: ObjectStore, address: str) -> None:
    """Find out, once in a process, whether the store honours both conditions."""
    if address in _TRUSTED:
        return
    path = f"{PROBES}{secrets.token_hex(12)}"
    first = _put_if(store, address, path, b"1", When.ABSENT)
    try:
        ignored = None
        if first is None or _put_if(store, address, path, b"2", When.ABSENT) is not None:
            ignored = "put-if-absent (If-None-Match)"
        else:
            second = _put_if(store, address, path, b"3", first)
            # The version that was replaced must be refused, and the one that is there be taken.
            if second is None or _put_if(store, address, path, b"4", first) is not None:
                ignored = "put-if-unchanged (If-Match)"
    finally:
        with suppress(StorageError, exceptions.BaseError, OSError):  # not everybody who may write may delete
            obstore.delete(store, path)
    if ignored is not None:
        problem = f"the store ignores {ignored}, so that two runs would overwrite each other's records"
        remedy = "Use a store that honours it, such as S3, GCS, Azure or a current MinIO, or a directory."
        raise StorageError(problem, address, remedy)
    _TRUSTED.add(address)
    mark_reachable(address)
