"""Zarr's store of a bucket, whose errors are those of storage, and which is pickled without any connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

import obstore
from obstore.store import ObjectStore as Connection
from zarr.storage import ObjectStore

from evalcube.storage.cube.bounds import most_of, refuse_bomb, refuse_larger
from evalcube.storage.cube.bucket.conditions import put_if
from evalcube.storage.cube.space import Version, When
from evalcube.storage.errors import LeaseLostError
from evalcube.storage.object_stores import connected, translated

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype


_PART_BYTES = 2**20


class BucketStore(ObjectStore[Connection]):
    """The objects of a cube, as zarr reads and writes them.

    Parameters
    ----------
    address
        Of the cube.
    read_only
        Whether zarr may write.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        with translated(address, "open the store"):
            super().__init__(connected(address), read_only=read_only)
        self._address = address
        self._expected: dict[str, Version | None] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # By its address: each process connects by its own environment, and no credentials travel.
        return _store, (self._address, self.read_only)

    def with_read_only(self, read_only: bool = False) -> Self:
        """The same store, to be read only or written, too."""
        return type(self)(self._address, read_only=read_only)

    def expect(self, versions: Mapping[str, Version | None]) -> None:
        """Put each of these objects, the next time, only over its version, or where there is none."""
        self._expected.update(versions)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """A value, as `ObjectStore.get` gives it."""
        with translated(self._address, "read from the store"):
            if byte_range is not None:
                return await super().get(key, prototype, byte_range)
            try:
                found = await obstore.get_async(self.store, key)
            except FileNotFoundError:
                return None
            refuse_larger(found.meta["size"], most_of(key), f"{self._address}/{key}")
            data = bytearray()
            # In parts: a length that is only claimed takes no memory.
            async for part in found.stream(min_chunk_size=_PART_BYTES):
                data += part
        refuse_bomb(key, data, self._address)
        return prototype.buffer.from_bytes(bytes(data))

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of values, as `ObjectStore.get_partial_values` gives them."""
        with translated(self._address, "read from the store"):
            return await super().get_partial_values(prototype, key_ranges)

    async def exists(self, key: str) -> bool:
        """Whether there is a value."""
        with translated(self._address, "read from the store"):
            return await super().exists(key)

    async def set(self, key: str, value: Buffer) -> None:
        """Store a value, as `ObjectStore.set` does, unless somebody else has done so since `expect`.

        Raises
        ------
        LeaseLostError
            Somebody has.
        """
        if key in self._expected:
            when = self._expected.pop(key) or When.ABSENT
            # In a thread: it may wait for long, and zarr's loop serves the others meanwhile.
            if not await asyncio.to_thread(put_if, self.store, self._address, key, value.to_bytes(), when):
                what = f"another process has written {key} since the lease was asked for"
                raise LeaseLostError(what, self._address, "Let it finish, then run again.")
            return
        with translated(self._address, "write to the store"):
            await super().set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Store a value where there is none, as `ObjectStore.set_if_not_exists` does."""
        with translated(self._address, "write to the store"):
            await super().set_if_not_exists(key, value)

    async def delete(self, key: str) -> None:
        """Delete a value, as `ObjectStore.delete` does."""
        with translated(self._address, "delete from the store"):
            await super().delete(key)


def _store(address: str, read_only: bool) -> BucketStore:
    return BucketStore(address, read_only=read_only)
