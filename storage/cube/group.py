"""The zarr arrays of a cube, read and written chunk by chunk.

All that knows zarr after creation is here. `evalcube.storage.cube.cube` is the public face and checks what comes in.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import shlex
import struct
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.sync import sync

from evalcube._together import in_threads
from evalcube.storage.cube.bounds import MOST_ARRAY, MOST_DECODED
from evalcube.storage.cube.layout import LABELS, RESERVED_ATTRS, SHAPES, expected_warnings
from evalcube.storage.cube.metadata import LONGEST, REPAIR, check_version, own_problem, put_own, read_metadata
from evalcube.storage.cube.regions import Region, RegionShape, dims_of, shapes_from
from evalcube.storage.cube.schema import DUPLICATE, LAYERS, SHARED, VARIABLES, Variable, is_sparse
from evalcube.storage.cube.space import METADATA, Space
from evalcube.storage.cube.space_store import CHECKSUM_BYTES, ArrayChunks
from evalcube.storage.errors import CubeDamagedError, LeaseLostError, StorageError, guarded, storage_error

if not __debug__:  # zarr does some of its work inside of assertions
    raise StorageError(
        "runs without assertions, which zarr needs", "Python", "Unset PYTHONOPTIMIZE, leave -O out"
    )

T = TypeVar("T")

_CODECS = (("bytes",), ("blosc", "zstd"), ("crc32c",))
_TEXT_CODECS = (("vlen-utf8",), ("zstd",))
"""How arrays may be stored, a name of each in turn, the last one if at all: as evalcube stores them. Others run what
they read, or say in no header what they decode to."""
_BLOSC_HEADER = struct.Struct("<BBBBIII")
"""Two versions, flags, size of an item; bytes before compression, of a block, and as stored."""
_GONE = "is gone"
UNREADABLE = (RuntimeError, ValueError, TypeError, KeyError, MemoryError, OverflowError)
"""What zarr and its codecs raise at chunks that are cut off or changed."""


class CubeGroup:
    """The arrays of one cube, with the sizes that its consolidated metadata have.

    These metadata are the commit of every growth. The arrays' own metadata may differ from them after a kill, and are
    asked in a cube without consolidated ones only.

    Raises
    ------
    CubeNotFoundError
        Nothing there, or no cube.
    CubeVersionError
        Written by a newer version.
    CubeDamagedError
        Its metadata cannot be read or lack an array.
    """

    def __init__(self, space: Space, *, writable: bool) -> None:
        self.space = space
        where = space.address
        # The version of the very bytes that are read: a change after that is noticed as a change.
        raw, self._version = read_metadata(space)
        check_version(space, raw)
        self.consolidated = bool(raw.get("consolidated_metadata"))
        """Whether the group's metadata hold those of its arrays; each array is asked for its own where not."""
        # Zarr takes longer to look up an array than to look at one of its chunks.
        self._opened: dict[str, zarr.Array[Any]] | None = None
        self._coders: dict[str, ArrayChunks] = {}
        try:
            how: Any = {"mode": "r+" if writable else "r", "zarr_format": 3}
            self._group = zarr.open_group(space.zarr(), use_consolidated=self.consolidated, **how)
            present = set(self.names())  # layers are optional, and the arrays themselves say which there are
            self.layers = tuple(variable for name, variable in LAYERS.items() if name in present)
            self._refuse_foreign_codecs()
            store: Any = self._group.store  # which refuses texts of more than they have bytes for
            store.texts = frozenset(
                name for name, array in self._arrays().items() if array.dtype.kind in "OUT"
            )
            self.sizes = self._checked_sizes()
            self.shapes = shapes_from(self._group.attrs.get(SHAPES), self.sizes, self.layers)
            """What regions consisted of when the cube was made, and after each growth that changed it."""
        except (KeyError, RecursionError, TypeError, ValueError, AttributeError, FileNotFoundError) as error:
            raise CubeDamagedError(f"its metadata are damaged: {error}", where, REPAIR) from error
        except OSError as error:
            raise storage_error(error, where, "open the cube") from error

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes given at creation, a copy."""
        return {key: value for key, value in self.all_attrs.items() if key not in RESERVED_ATTRS}

    @property
    def all_attrs(self) -> dict[str, Any]:
        """Attributes of the cube as any program reads them: what names labels is none of them."""
        return {key: value for key, value in self._group.attrs.asdict().items() if key != LABELS}

    @property
    def trial_arrays(self) -> dict[str, Variable]:
        """The arrays that a region has, in the order in which they are written: status last."""
        # Sparse ones after others: an object that is not to be there is deleted without asking whose it is.
        variables = (*self.layers, *VARIABLES.values())
        return {
            each.name: each
            for each in sorted(variables, key=lambda each: (each.name == "status", each.sparse))
        }

    @property
    def is_outdated(self) -> bool:
        """Whether the metadata were written again since this object read them."""
        with guarded(self.space.address, "open the cube"):
            return self.space.version(METADATA) != self._version

    def names(self) -> list[str]:
        """Names of all arrays, coordinates included."""
        return list(self._arrays())

    def _arrays(self) -> dict[str, zarr.Array[Any]]:
        if self._opened is not None:
            return self._opened
        with expected_warnings():
            arrays = dict(self._group.arrays())
        if self.consolidated:  # else a growth changes them without making this object outdated
            self._opened = arrays
        return arrays

    def chunks(self, name: str) -> tuple[int, ...]:
        """Chunk shape of an array."""
        return tuple(self._array(name).chunks)

    @property
    def labels(self) -> frozenset[str]:
        """Names of the arrays that label others."""
        named = str(self._group.attrs.get(LABELS, "")).split()
        return frozenset(name for name in self.names() if name in named or self.dims(name) == (name,))

    def dims(self, name: str) -> tuple[str, ...]:
        """Dims of an array."""
        return _dims(self._array(name))

    def array_attrs(self, name: str) -> dict[str, Any]:
        """Attributes of an array."""
        try:
            return self._array(name).attrs.asdict()
        except (TypeError, ValueError) as error:
            problem = f"the attributes of array '{name}' are damaged: {error}"
            raise CubeDamagedError(problem, self.space.address, REPAIR) from error

    def read(self, name: str, selection: tuple[Any, ...]) -> NDArray[Any]:
        """Values of a selection; cells never written hold the fill."""
        return self.read_all({name: selection})[name]

    def read_all(self, selections: Mapping[str, tuple[Any, ...]]) -> dict[str, NDArray[Any]]:
        """As `read`, of several arrays at once."""
        arrays, damaged = self.attempt(selections)
        for error in damaged.values():
            raise error
        return arrays

    def attempt(
        self, selections: Mapping[str, tuple[Any, ...]]
    ) -> tuple[dict[str, NDArray[Any]], dict[str, CubeDamagedError]]:
        """As `read_all`, and for arrays that cannot be decoded the reason."""
        decoded, damaged = dict[str, NDArray[Any]](), dict[str, CubeDamagedError]()
        arrays = dict[str, zarr.AsyncArray[Any]]()
        for name, selection in selections.items():
            with self._noting(name, damaged):
                chunks = self._chunks(name)
                if self._codes(chunks, selection):
                    store: Any = self._group.store
                    decoded[name] = chunks.read(store, selection)
                else:
                    arrays[name] = self._array(name).async_array
        outcomes = _together([array.getitem(selections[name]) for name, array in arrays.items()])
        for name, outcome in zip(arrays, outcomes, strict=True):
            with self._noting(name, damaged):
                decoded[name] = np.asarray(_unwrap(outcome))
        return decoded, damaged

    def _chunks(self, name: str) -> ArrayChunks:
        if not self.consolidated:
            return ArrayChunks(self._array(name))
        if name not in self._coders:
            self._coders[name] = ArrayChunks(self._array(name))
        return self._coders[name]

    def _codes(self, chunks: ArrayChunks, selection: tuple[Any, ...]) -> bool:
        """Whether chunks are coded here: zarr takes five times as long, and waits for several objects at once."""
        simple = all(isinstance(part, slice) and part.step in (None, 1) for part in selection)
        return simple and not self.space.is_object_store and chunks.plain

    @contextmanager
    def _noting(self, name: str, damaged: dict[str, CubeDamagedError]) -> Iterator[None]:
        """A block that reads an array; that it cannot be decoded is noted, and ends the block."""
        with guarded(self.space.address, f"read {name}"):
            try:
                yield
            except CubeDamagedError as error:
                damaged[name] = error
            except UNREADABLE as error:
                damaged[name] = chunk_error(name, "cannot be decoded", self.space.address)
                damaged[name].__cause__ = error

    def chunk_key(self, name: str, index: tuple[int, ...]) -> str:
        """Key of an array's chunk."""
        return self._chunks(name).key(index)

    def chunk_problem(self, name: str, index: tuple[int, ...]) -> str | None:
        """What is wrong with a chunk as far as its first bytes and its length tell; None if nothing is."""
        chunks = self._chunks(name)
        with guarded(self.space.address, f"read {name}"):
            chunk = self.space.get(chunks.key(index), _BLOSC_HEADER.size)
        if chunk is None:
            return _GONE
        if not chunks.plain:
            return None if chunk.size else "is empty"
        if len(chunk.data) < _BLOSC_HEADER.size:
            return "is cut off"
        _, _, _, _, raw, _, stored = _BLOSC_HEADER.unpack(chunk.data)
        stored += CHECKSUM_BYTES * chunks.checked
        if stored != chunk.size:
            return "is cut off" if chunk.size < stored else "is longer than it was written"
        return None if raw == chunks.decoded_bytes else "is not of its array's size"

    def region_problems(
        self, region: Region, shape: RegionShape, names: Sequence[str] | None = None
    ) -> dict[str, str]:
        """What is wrong with the chunks of a region of some shape, by array; see `chunk_problem`."""
        problems = {}
        origin = {"model": region.model, "trial": region.trial, "repeat": region.repeat}
        for name in self.trial_arrays if names is None else names:
            if name in LAYERS and name not in shape.layers:
                continue
            steps = zip(("model", *dims_of(name)), self.chunks(name), strict=True)
            counts = [(dim, 1 if dim in origin else -(-shape.sizes[dim] // step)) for dim, step in steps]
            grid = [range(origin.get(dim, 0), origin.get(dim, 0) + count) for dim, count in counts]
            allowed = (None, _GONE) if name in LAYERS and LAYERS[name].sparse else (None,)
            for index in itertools.product(*grid):
                problem = self.chunk_problem(name, index)
                if problem is not None and problem not in allowed:
                    problems[name] = problem
                    break
        return problems

    def shared_problems(self, names: Sequence[str]) -> dict[str, str]:
        """What is wrong with the chunks of arrays that all models share, by array."""
        problems = dict[str, str]()
        # One chunk of each at a time: nearly all have but one.
        for chunks in itertools.zip_longest(
            *(zip(itertools.repeat(name), self.grid(name)) for name in names)
        ):
            there = dict[str, tuple[slice, ...]]()
            for name, (index, cells) in filter(None, chunks):
                if name in problems:
                    continue
                problem = self.chunk_problem(name, index)
                # Unknown flags, as far as the array itself tells: see `unwritten`.
                if problem is None:
                    there[name] = cells
                elif problem != _GONE or name != DUPLICATE.name:
                    problems[name] = problem
            problems |= dict.fromkeys(self.attempt(there)[1], "cannot be decoded")
        return problems

    def grid(self, name: str) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Index of each chunk of an array, and its cells."""
        array = self._array(name)
        counts = (-(-size // step) for size, step in zip(array.shape, array.chunks, strict=True))
        for index in np.ndindex(*counts):
            cells = zip(index, array.chunks, strict=True)
            yield index, tuple(slice(i * step, (i + 1) * step) for i, step in cells)

    def unwritten(self, name: str) -> NDArray[np.bool_]:
        """Which cells of an array are in a chunk that is not there, in the array's shape."""
        mask = np.zeros(self.shape(name), dtype=bool)
        for index, cells in self.grid(name):
            if self.chunk_problem(name, index) == _GONE:
                mask[cells] = True
        return mask

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an array."""
        return tuple(self._array(name).shape)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Type of an array."""
        return np.dtype(self._array(name).dtype)

    def metadata_problems(self) -> dict[str, str]:
        """Array -> what is wrong with its own metadata; see `evalcube.storage.cube.metadata.own_problem`."""
        arrays = self._consolidated_metadata()
        names = self.names()
        problems = in_threads(lambda name: own_problem(self.space, name, arrays.get(name, {})), names)
        return {name: problem for name, problem in zip(names, problems, strict=True) if problem is not None}

    def restore_metadata(self) -> list[str]:
        """Write the metadata of arrays anew that are gone, or not what the cube's say; names of these arrays."""
        arrays = self._consolidated_metadata()
        names = [name for name in self.names() if name in arrays]
        put = in_threads(lambda name: put_own(self.space, name, arrays[name]), names)
        return [name for name, changed in zip(names, put, strict=True) if changed]

    def _consolidated_metadata(self) -> dict[str, Any]:
        """What the cube's metadata say of its arrays."""
        document, _ = read_metadata(self.space)
        return dict((document.get("consolidated_metadata") or {}).get("metadata", {}))

    def drop_chunks(self, name: str) -> None:
        """Delete the chunks of an array, those of its earlier shapes included, whatever their keys are."""
        keys = [key for key in self.space.list(f"{name}/") if key != f"{name}/{METADATA}"]
        list(in_threads(partial(self.space.delete, durable=False), keys))
        self.space.sync([f"{name}/"])

    def fence(self, names: Sequence[str], selection: tuple[slice, ...]) -> None:
        """Have the next writing of a selection fail if somebody else writes it meanwhile; see `Space.fence`."""
        with guarded(self.space.address, "look up chunks"):
            keys = [key for name in names for key in self._chunks(name).keys(selection)]
            self.space.fence(self._group.store, keys)

    def write_chunks(self, selection: tuple[slice, ...], values: Mapping[str, NDArray[Any]]) -> list[str]:
        """Write whole chunks of arrays, at once; of each, others see the old or the new. Keys of what is there then."""
        writes, keys = [], []
        for name, block in values.items():
            chunks = self._chunks(name)
            if self._codes(chunks, selection):
                keys += chunks.write(self.space, selection, block, sparse=is_sparse(name))
                continue
            keys += chunks.keys(selection)
            # Zarr forgets this setting on opening, and a chunk equal to the fill would then not be written. It does not
            # say which it writes: where they are put on disk afterwards, all are.
            sparse = is_sparse(name) and self.space.is_object_store
            array = self._array(name).with_config({"write_empty_chunks": not sparse})
            # Whole chunks: zarr need not read the old ones, and two writers of neighbours never touch the same object.
            writes.append(array.async_array.setitem(selection, block))
        failures = [outcome for outcome in _together(writes) if isinstance(outcome, BaseException)]
        if failures:  # a lost lease before what else went wrong: it alone ends the run
            raise next((outcome for outcome in failures if isinstance(outcome, LeaseLostError)), failures[0])
        return keys

    def _array(self, name: str) -> zarr.Array[Any]:
        if self.consolidated:
            return self._arrays()[name]
        array = self._group[name]
        if not isinstance(array, zarr.Array):
            raise KeyError(name)
        return array

    def _refuse_foreign_codecs(self) -> None:
        """Raise for an array that some other filter decodes: one of them unpickles, which runs what it reads."""
        for name, array in self._arrays().items():
            # None in another format than 3, whose filters are any.
            codecs = getattr(array.metadata, "codecs", None)
            codec_names = [] if codecs is None else [str(codec.to_dict().get("name")) for codec in codecs]
            allowed = _TEXT_CODECS if codec_names[:1] == ["vlen-utf8"] else _CODECS
            wanted = allowed[: max(2, len(codec_names))]
            if len(codec_names) != len(wanted) or any(map(lambda a, b: a not in b, codec_names, wanted)):
                how = "in another format" if codecs is None else f"with {', '.join(codec_names)}"
                raise ValueError(f"array {name!r} is stored {how}, which no cube is")

    def _refuse_bombs(self, name: str, array: zarr.Array[Any]) -> None:
        """Raise for an array that would take more memory than any does, of whatever its chunks are."""
        item = 8 if array.dtype.kind in "OUT" else array.dtype.itemsize
        chunk = math.prod(array.chunks) * item
        whole = 0 if name in VARIABLES or name in LAYERS else math.prod(array.shape) * item
        if chunk > MOST_DECODED or whole > MOST_ARRAY or 0 in array.chunks:
            raise ValueError(f"array {name!r} has {array.shape} cells in chunks of {array.chunks}")

    def _checked_sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        # Of all arrays, at each opening: whoever wrote into one of another shape would write past its region.
        for variable in (*self.trial_arrays.values(), *SHARED):
            array = self._array(variable.name)
            if _dims(array) != variable.dims or array.dtype != np.dtype(variable.dtype):
                raise ValueError(f"array {variable.name!r} is {array.dtype} {_dims(array)}")
        region = self.chunks("status")[-2:]
        for name, array in self._arrays().items():
            self._refuse_bombs(name, array)
            # A region is one chunk of each, which is written and read as a whole.
            if name in self.trial_arrays and (array.chunks[0], *array.chunks[3:5]) != (1, *region):
                raise ValueError(f"array {name!r} has chunks of {array.chunks} cells, `status` others")
            for dim, size in zip(_dims(array), array.shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise ValueError(f"array {name!r} has {size} along {dim}, others {sizes[dim]}")
                if size > LONGEST:
                    raise ValueError(f"array {name!r} has {size} along {dim}, more than a cube can have")
        return sizes


def _together(requests: Sequence[Awaitable[T]]) -> list[T | BaseException]:
    """What requests to zarr give or raise once all have ended; each by itself would cost two switches of threads."""

    async def gather_all() -> list[T | BaseException]:
        return await asyncio.gather(*requests, return_exceptions=True)

    return sync(gather_all()) if requests else []


def _unwrap(outcome: T | BaseException) -> T:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def chunk_words(name: str, problem: str) -> str:
    """Say what is wrong with a chunk of an array, or of one that is not known."""
    array = f"array '{name}'" if name else "one of the arrays"
    return f"a chunk of {array} {problem}"


def chunk_error(name: str, problem: str, where: str) -> CubeDamagedError:
    """What is raised of such a chunk."""
    return CubeDamagedError(chunk_words(name, problem), where, heal(where))


def heal(where: str) -> str:
    """How to repair a cube at an address."""
    return f"Heal it with `evalcube cube verify --heal {shlex.quote(where)}`; the cache has the replies."


def _dims(array: zarr.Array[Any]) -> tuple[str, ...]:
    return tuple(str(name) for name in getattr(array.metadata, "dimension_names", None) or ())
