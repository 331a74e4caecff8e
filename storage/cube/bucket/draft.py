"""The space of a cube that is being made in a bucket: it has no metadata there yet, and so is none to others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from evalcube.storage.cube.bucket.conditions import put_always, put_if
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.cube.space import METADATA, Found, Version, When
from evalcube.storage.errors import CubeExistsError

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest, Store
    from zarr.core.buffer import Buffer, BufferPrototype

    from evalcube.storage.cube.bucket.creation import CreationClaim


@dataclass(frozen=True, slots=True)
class _Part(Bucket):
    """A part of a cube that is being made, which notes what it puts."""

    put_keys: set[str] = field(kw_only=True, compare=False)

    def at(self, name: str) -> Bucket:
        """A part of this part."""
        return _Part(self.cube, f"{self.prefix}{name}/", put_keys=self.put_keys)

    def put(
        self, key: str, data: bytes, *, when: When | Version = When.ALWAYS, durable: bool = True
    ) -> Version | None:
        """Store an object; see `evalcube.storage.cube.space.Space.put`."""
        version = Bucket.put(self, key, data, when=when, durable=durable)
        if version is not None:
            self.put_keys.add(self.prefix + key)
        return version

    def delete(self, key: str, *, durable: bool = True) -> None:
        """Delete an object, if it is there."""
        Bucket.delete(self, key, durable=durable)
        self.put_keys.discard(self.prefix + key)


@dataclass(frozen=True, slots=True)
class Draft(Bucket):
    """What lies at the cube's top goes through the store that it is built in; its parts are put as they come."""

    built: CreationStore = field(kw_only=True)
    put_keys: set[str] = field(default_factory=set, kw_only=True, compare=False)
    """Keys that its parts have put."""

    def is_there(self) -> bool:
        """Whether it has metadata."""
        return self.get(METADATA) is not None

    def get(self, key: str, most: int | None = None) -> Found | None:
        """An object as it was built, or its first bytes."""
        data = self.built.held(key)
        # What its parts have put is in the bucket already.
        return Bucket.get(self, key, most) if data is None else Found(data[:most], _version(data), len(data))

    def version(self, key: str) -> Version | None:
        """A digest of an object that is being built; None if there is none."""
        data = self.built.held(key)
        return Bucket.version(self, key) if data is None else _version(data)

    def put(
        self,
        key: str,
        data: bytes,
        *,
        when: When | Version = When.ALWAYS,
        durable: bool = True,  # noqa: ARG002 - it is, once all of it is
    ) -> Version | None:
        """Build an object; see `evalcube.storage.cube.space.Space.put`."""
        if when is not When.ALWAYS and self.version(key) != (None if when is When.ABSENT else when):
            return None
        self.built.hold(key, data)
        return _version(data)

    def delete(self, key: str, *, durable: bool = True) -> None:  # noqa: ARG002
        """Delete an object, if it is there."""
        self.built.drop(key)

    def at(self, name: str) -> Bucket:
        """A part, whose puts are noted."""
        return _Part(self.cube, f"{self.prefix}{name}/", put_keys=self.put_keys)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys that were built or put, in no order; the store's own list may lack what was put a moment ago."""
        mine = {key for key in self.built.keys() | self.put_keys if key.startswith(prefix)}
        return iter(mine.union(key for key in Bucket.list(self, prefix) if key != METADATA))

    def zarr(self, *, read_only: bool = False) -> Store:
        """The store that the cube is built in."""
        return self.built.with_read_only(read_only) if read_only else self.built


def _version(data: bytes) -> Version:
    return Version(hashlib.sha256(data).hexdigest())


_MOST_BYTES = 32 * 2**20
_THREADS = 32


class CreationStore(MemoryStore):
    """A store in memory whose objects `flush` puts, all but the cube's metadata.

    Metadata stay in memory until then, so that they can be consolidated without asking the bucket.
    """

    def __init__(self, space: Bucket, claim: CreationClaim) -> None:
        super().__init__()
        self._space, self._claim = space, claim
        self._bytes = 0
        self._sent: set[str] = set()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A value, from the bucket if it is no longer in memory."""
        if key in self._sent and key not in self._store_dict:
            found = self._space.found(key)
            if found is not None:
                self._store_dict[key] = default_buffer_prototype().buffer.from_bytes(found.data)
        return await super().get(key, prototype or default_buffer_prototype(), byte_range)

    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        """Keep a value in memory, and put chunks if they have become many."""
        await super().set(key, value, byte_range)
        self._bytes += len(value)
        if self._bytes > _MOST_BYTES:
            self._claim.renew()
            self._send(key for key in list(self._store_dict) if not key.endswith(METADATA))

    def held(self, key: str) -> bytes | None:
        """A value as it is now; None if there is none."""
        value = self._store_dict.get(key)
        if value is None and key in self._sent:
            found = self._space.found(key)
            return None if found is None else found.data
        return None if value is None else value.to_bytes()

    def hold(self, key: str, data: bytes) -> None:
        """Keep a value in memory until it is flushed."""
        self._store_dict[key] = default_buffer_prototype().buffer.from_bytes(data)

    def drop(self, key: str) -> None:
        """Forget a value, wherever it is."""
        self._store_dict.pop(key, None)
        if key in self._sent:
            self._sent.discard(key)
            self._space.delete(key)

    def keys(self) -> frozenset[str]:
        """Keys of all values, in memory and put."""
        return frozenset(self._store_dict).union(self._sent)

    def flush(self) -> bytes:
        """Put all that is left, and return the cube's metadata, which were not put."""
        metadata = self._store_dict.pop(METADATA).to_bytes()
        # A creator that was stopped for long finds out here, before it leaves objects in somebody else's cube.
        self._claim.renew(older_than=0.0)
        self._send(list(self._store_dict))
        return metadata

    def _send(self, keys: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="evalcube-create") as pool:
            for key in pool.map(self._put, keys):
                self._sent.add(key)
                del self._store_dict[key]
        self._bytes = 0

    def _put(self, key: str) -> str:
        store, cube, data = self._space.store, self._space.cube, self._store_dict[key].to_bytes()
        if key in self._sent:
            put_always(store, cube, key, data)
        elif put_if(store, cube, key, data, When.ABSENT) is None:
            # Nothing was here when the place was taken: a creator that was taken over from has woken up.
            what = "cannot create the cube: another process creates it at this moment"
            raise CubeExistsError(what, cube, "Wait for it, then run again.")
        return key
