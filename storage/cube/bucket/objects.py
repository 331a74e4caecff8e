# ruff: noqa: ARG002 - a store acknowledges what is durable, and has nothing on its way
"""Objects under keys in a bucket."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import obstore
from obstore import exceptions

from evalcube.storage.cube.bounds import MOST_OBJECT, refuse_larger
from evalcube.storage.cube.bucket import creation
from evalcube.storage.cube.bucket.conditions import PROBES, put_always, put_if, version_of
from evalcube.storage.cube.bucket.records import BucketLease, BucketLog
from evalcube.storage.cube.space import METADATA, Found, Space, Version, When
from evalcube.storage.object_stores import connect, first_bytes, has_no_place, mark_reachable, store_errors

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore
    from zarr.abc.store import Store

_RANGE_BYTES = 65536
"""Up to so many first bytes are asked for as a range; more than that is most of an object."""
_LIST_SIZE = 1000
_THREADS = 16


@dataclass(frozen=True, slots=True)
class Bucket:
    """A `evalcube.storage.cube.space.Space` below a prefix of a bucket; it need not exist yet.

    It holds no connection and no secret, only where the cube is: each process connects by its own environment.
    """

    cube: str
    """Address of the whole cube, such as ``s3://bucket/cubes/a.zarr``."""
    prefix: str = ""
    """Of the keys, empty or with a slash at its end: of which part of the cube this is the space."""

    is_object_store = True

    @property
    def address(self) -> str:
        """The address, as it would be written for a tool of the store."""
        return f"{self.cube}/{self.prefix}".rstrip("/")

    @property
    def store(self) -> ObjectStore:
        """The connection, whose paths begin where the cube does."""
        with store_errors(self.address, "open the store"):
            return connect(self.cube)

    def at(self, name: str) -> Bucket:
        """The objects whose keys begin with a name and a slash."""
        return Bucket(self.cube, f"{self.prefix}{name}/")

    def is_there(self) -> bool:
        """Whether there is a cube, or anything else that is no creation under way."""
        metadata = self.read_object(self.prefix + METADATA)
        if metadata is not None:
            return bool(self.prefix) or not creation.is_claim(metadata.data)
        return any(True for _ in self.list())

    def is_writable(self) -> bool:
        """Always true: who may write is known once one has tried, and a refusal says what to do."""
        return True

    def get(self, key: str, most: int | None = None) -> Found | None:
        """An object, or its first `most` bytes; None if there is none."""
        stored = self.read_object(self.prefix + key, most)
        # What holds the place of a cube that is being made is no object to anybody else.
        hidden = stored is not None and not self.prefix and key == METADATA and creation.is_claim(stored.data)
        return None if hidden else stored

    def read_object(self, path: str, most: int | None = None) -> Found | None:
        """An object of the cube, also one that holds the place of its metadata; `path` begins where the cube does."""
        options = {"range": (0, max(most, 1))} if most is not None and most <= _RANGE_BYTES else None
        store = self.store
        with store_errors(self.address, "read from the store"):
            try:
                answer = obstore.get(store, path, options=options)  # type: ignore[arg-type]
            except FileNotFoundError as error:
                if has_no_place(error):
                    raise
                mark_reachable(self.cube)
                return None
            except exceptions.GenericError:
                # An empty object has no first byte, which stores say in different ways.
                if options is None:
                    raise
                answer = obstore.get(store, path)
            if most is None:
                refuse_larger(answer.meta["size"], MOST_OBJECT, f"{self.cube}/{path}")
            data = first_bytes(answer, most)
            mark_reachable(self.cube)
            return Found(data, version_of(self.cube, answer.meta), answer.meta["size"])

    def version(self, key: str) -> Version | None:
        """What the store calls this content of an object; None if there is none."""
        meta = self._meta(self.prefix + key)
        return None if meta is None else version_of(self.cube, meta)

    def _meta(self, path: str) -> ObjectMeta | None:
        store = self.store
        with store_errors(self.address, "read from the store"):
            try:
                return obstore.head(store, path)
            except FileNotFoundError as error:
                if has_no_place(error):
                    raise
                return None

    def put(
        self, key: str, data: bytes, *, when: When | Version = When.ALWAYS, durable: bool = True
    ) -> Version | None:
        """Store an object in one step; see `evalcube.storage.cube.space.Space.put`."""
        path = self.prefix + key
        if when is When.ALWAYS:
            return put_always(self.store, self.cube, path, data)
        return put_if(self.store, self.cube, path, data, when)

    def delete(self, key: str, *, durable: bool = True) -> None:
        """Delete an object, if it is there."""
        self.delete_each([self.prefix + key])

    def delete_each(self, paths: list[str]) -> None:
        """Delete objects, as far as they are there; paths begin where the cube does."""
        store = self.store
        with store_errors(self.address, "delete from the store"):
            try:
                if paths:
                    obstore.delete(store, paths)
            except FileNotFoundError:  # some stores say so of what is gone already, and stop there
                for path in paths:
                    with suppress(FileNotFoundError):
                        obstore.delete(store, path)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys below a prefix, in no order; probes, which are there for a moment, are none."""
        paths = (meta["path"] for meta in self.list_objects(self.prefix + prefix))
        return (path.removeprefix(self.prefix) for path in paths if not path.startswith(PROBES))

    def list_objects(self, prefix: str = "") -> Iterator[ObjectMeta]:
        """What the store says of the objects below a prefix; paths begin where the cube does."""
        with store_errors(self.address, "list the store"):
            for page in obstore.list(self.store, prefix or None, chunk_size=_LIST_SIZE):
                yield from page

    def clear(self, prefix: str) -> None:
        """Delete all below a prefix."""
        self.delete_each([meta["path"] for meta in self.list_objects(self.prefix + prefix)])

    def delete_all(self, *, but: str) -> None:
        """Delete all objects but one."""
        paths = [meta["path"] for meta in self.list_objects(self.prefix)]
        self.delete_each([path for path in paths if path != self.prefix + but])

    def stored_at(self, key: str) -> float | None:
        """When an object was put, seconds since the epoch by the store's clock; None if there is none."""
        meta = self._meta(self.prefix + key)
        return None if meta is None else meta["last_modified"].timestamp()

    def sync(self, keys: Iterable[str]) -> None:
        """Nothing: what the store has acknowledged is durable."""

    def fence(self, store: Store, keys: Sequence[str]) -> None:
        """Have zarr put these objects only over the versions that are there now."""
        from evalcube.storage.cube.space_store import SpaceStore  # with zarr, which takes a while

        if isinstance(store, SpaceStore):
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-fence") as pool:
                store.expect(dict(zip(keys, pool.map(self.version, keys), strict=True)))

    def zarr(self, *, read_only: bool = False) -> Store:
        """Zarr's store of a bucket, with errors of storage."""
        from evalcube.storage.cube.space_store import SpaceStore  # with zarr, which takes a while

        return SpaceStore(self, read_only=read_only)

    def assemble(self, fill: Callable[[Space], object]) -> None:
        """Put all that `fill` puts into a space, the metadata last; see `evalcube.storage.cube.bucket.creation`."""
        creation.create_objects(self, fill)

    def remove(self) -> bool:
        """Remove all objects; it is no cube any more from the first one on."""
        return creation.remove_objects(self)

    def sweep(self, prefixes: Iterable[str], older_than: float, *, delete: bool) -> int:
        """Count, or delete, probes that killed writers left: no other object is ever on its way."""
        before = time.time() - older_than
        stale = [
            meta["path"] for meta in self.list_objects(PROBES) if meta["last_modified"].timestamp() < before
        ]
        if delete:
            self.delete_each(stale)
        return len(stale)

    def log(self, key: str) -> BucketLog:
        """Numbered objects."""
        return BucketLog(self, key)

    def lease(self, key: str) -> BucketLease:
        """A lease's object."""
        return BucketLease(self, key)
