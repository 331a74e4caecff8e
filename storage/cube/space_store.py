"""Zarr's store of a space, with its bounds and errors; chunks of numbers, coded as zarr codes them."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import google_crc32c
import numpy as np
from numcodecs.blosc import Blosc  # type: ignore[import-untyped]
from numpy.typing import NDArray
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store
from zarr.codecs.bytes import Endian

from evalcube.storage.cube.bounds import MOST_METADATA, MOST_OBJECT, refuse_bomb, refuse_larger
from evalcube.storage.cube.space import METADATA, Found, Space, Version, When
from evalcube.storage.errors import LeaseLostError

if TYPE_CHECKING:
    import zarr
    from zarr.core.buffer import Buffer, BufferPrototype

CHECKSUM_BYTES = 4
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_CODED = (["blosc"], ["blosc", "crc32c"])


class SpaceStore(Store):
    """The objects of a space, as zarr reads and writes them; it is pickled without any connection.

    Parameters
    ----------
    space
        The space.
    read_only
        Whether zarr may not write.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(self, space: Space, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._space = space
        self._expected: dict[str, Version | None] = {}
        self.texts: frozenset[str] = frozenset()  # names of the arrays whose chunks are texts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpaceStore) and other._space == self._space

    def __hash__(self) -> int:
        return hash(self._space)

    def __reduce__(self) -> tuple[object, ...]:
        return _store, (self._space, self.read_only)

    def with_read_only(self, read_only: bool = False) -> Self:
        """The same store, to be read only or written, too."""
        same = type(self)(self._space, read_only=read_only)
        same.texts = self.texts
        return same

    def expect(self, versions: Mapping[str, Version | None]) -> None:
        """Put each of these objects, the next time, only over its version, or where there is none."""
        self._expected.update(versions)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """An object, or a part of it."""
        # In a thread: it may wait for a server, and zarr's loop asks for others meanwhile.
        stored = await asyncio.to_thread(self.fetch, key)
        return stored and prototype.buffer.from_bytes(stored.data[_part(byte_range, stored.size)])

    def fetch(self, key: str) -> Found | None:
        """An object that may be decoded."""
        # A space refuses by itself, before it reads any of it, what is larger than any object.
        most = MOST_METADATA if key.endswith(METADATA) else None
        stored = self._space.get(key, most)
        if stored is not None:
            refuse_larger(
                max(stored.size, len(stored.data)), most or MOST_OBJECT, f"{self._space.address}/{key}"
            )
            refuse_bomb(key, stored.data, self._space.address, texts=key.partition("/")[0] in self.texts)
        return stored

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of objects."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        """Whether there is such an object."""
        return await asyncio.to_thread(self._space.version, key) is not None

    async def set(self, key: str, value: Buffer) -> None:
        """Store an object, unless somebody else has done so since `expect`."""
        self._check_writable()
        when = (self._expected.pop(key) or When.ABSENT) if key in self._expected else When.ALWAYS
        put = partial(self._space.put, key, value.to_bytes(), when=when, durable=False)
        # In this thread where a file is written: those are small, and another thread costs more.
        if (await asyncio.to_thread(put) if self._space.is_object_store else put()) is None:
            problem = f"another process has written {key} since the lease was asked for"
            raise LeaseLostError(problem, self._space.address, "Let it finish, then run again.")

    async def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        self._check_writable()
        await asyncio.to_thread(self._space.delete, key, durable=False)

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in self._space.list():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Keys that begin with a prefix."""
        for key in self._space.list(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names directly below a folder."""
        begin = f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
        names = {key.removeprefix(begin).partition("/")[0] for key in self._space.list(begin)}
        for name in sorted(names):
            yield name


def _store(space: Space, read_only: bool) -> SpaceStore:
    return SpaceStore(space, read_only=read_only)


def _part(byte_range: ByteRequest | None, size: int) -> slice:
    if byte_range is None:
        return slice(None)
    if isinstance(byte_range, RangeByteRequest):
        return slice(byte_range.start, byte_range.end)
    if isinstance(byte_range, OffsetByteRequest):
        return slice(byte_range.offset, None)
    return slice(max(0, size - byte_range.suffix), None)


class ArrayChunks:
    """The chunks of an array: their keys, and their content without zarr's loop if they are `plain`."""

    def __init__(self, array: zarr.Array[Any]) -> None:
        self._shape, self._steps, self._dtype = array.shape, array.chunks, array.dtype
        self._fill, self._path = array.fill_value, array.path
        self._encode_key = array.metadata.encode_chunk_key
        compressors: Any = array.compressors
        codecs = [codec.to_dict() for codec in compressors]
        little = array.dtype.str[0] != ">" and getattr(array.serializer, "endian", None) != Endian.big
        self.plain = [codec["name"] for codec in codecs] in _CODED and little
        """Whether they are stored as `evalcube.storage.cube.layout.create_variable` has them stored."""
        self.checked = len(codecs) > 1
        """Whether a checksum follows."""
        self.decoded_bytes = math.prod(array.chunks) * array.dtype.itemsize
        if self.plain:
            how: Any = codecs[0]["configuration"]
            shuffle = _SHUFFLES.index(how["shuffle"])
            self._blosc = Blosc(how["cname"], how["clevel"], shuffle, how["blocksize"], how["typesize"])

    def key(self, index: tuple[int, ...]) -> str:
        """Key of a chunk."""
        return f"{self._path}/{self._encode_key(index)}"

    def keys(self, selection: tuple[slice, ...]) -> list[str]:
        """Keys of the chunks that a selection has cells of."""
        return [self.key(index) for index in self._indexes(self._spans(selection))]

    def read(self, store: SpaceStore, selection: tuple[slice, ...]) -> NDArray[Any]:
        """Values of a selection."""
        spans = self._spans(selection)
        values = np.full([max(0, end - begin) for begin, end in spans], self._fill, self._dtype)
        for index in self._indexes(spans):
            stored = store.fetch(self.key(index))
            if stored is not None:
                mine, its = self._meeting(index, spans)
                values[mine] = self._decode(stored.data)[its]
        return values

    def write(
        self, space: Space, selection: tuple[slice, ...], values: NDArray[Any], *, sparse: bool
    ) -> list[str]:
        """Write whole chunks, bit by bit as zarr, but no sparse ones that hold only their fill; keys of the rest."""
        spans = self._spans(selection)
        empty, keys = np.full(self._steps, self._fill, self._dtype), []
        for index in self._indexes(spans):
            mine, its = self._meeting(index, spans)
            chunk = empty.copy()
            chunk[its] = values[mine]
            if sparse and np.array_equal(chunk, empty, equal_nan=True):
                space.delete(self.key(index), durable=False)
            else:
                keys.append(self.key(index))
                space.put(keys[-1], self._encode(chunk), durable=False)
        return keys

    def _decode(self, data: bytes) -> NDArray[Any]:
        if self.checked:
            data, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
            if _checksum(data) != checksum:
                raise ValueError("its checksum is not that of its content")
        return np.frombuffer(self._blosc.decode(data), self._dtype).reshape(self._steps)

    def _encode(self, chunk: NDArray[Any]) -> bytes:
        data = bytes(self._blosc.encode(chunk))
        return data + _checksum(data) if self.checked else data

    def _spans(self, selection: tuple[slice, ...]) -> list[tuple[int, int]]:
        """First cell along each dim that a selection has, and the one after its last."""
        every = itertools.chain(selection, itertools.repeat(slice(None)))
        return [part.indices(size)[:2] for size, part in zip(self._shape, every, strict=False)]

    def _indexes(self, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
        steps = zip(spans, self._steps, strict=True)
        return itertools.product(*(range(begin // step, -(-end // step)) for (begin, end), step in steps))

    def _meeting(
        self, index: tuple[int, ...], spans: Sequence[tuple[int, int]]
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where a selection and a chunk meet, in the selection and in the chunk."""
        mine, its = [], []
        for i, step, (begin, end) in zip(index, self._steps, spans, strict=True):
            first, last = max(begin, i * step), min(end, (i + 1) * step)
            mine.append(slice(first - begin, last - begin))
            its.append(slice(first - i * step, last - i * step))
        return tuple(mine), tuple(its)


def _checksum(data: bytes) -> bytes:
    return int(google_crc32c.value(data)).to_bytes(CHECKSUM_BYTES, "little")
