"""The space of a cube that is being made in a bucket: it has no metadata there yet, and so is none to others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalcube.storage.cube.bucket.creation import METADATA
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.cube.space import Found, Version, When

if TYPE_CHECKING:
    from zarr.abc.store import Store

    from evalcube.storage.cube.bucket.creation_store import CreationStore


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
