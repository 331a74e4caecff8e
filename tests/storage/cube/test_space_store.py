"""Chunks of numbers as evalcube codes them, beside the same ones by zarr."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec
from zarr.storage import MemoryStore

from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.space_store import ArrayChunks, SpaceStore

CODECS = (BloscCodec(shuffle="bitshuffle"), Crc32cCodec())


def created(store, shape, steps, dtype, *, codecs=CODECS, **more):
    fill = np.nan if np.dtype(dtype).kind == "f" else 3
    zarr.create_array(
        store, name="a", shape=shape, chunks=steps, dtype=dtype, fill_value=fill, compressors=codecs, **more
    )
    return zarr.open_array(store, path="a", mode="r+")


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3),
    st.sampled_from(["u1", "i4", "f4", "f8"]),
    st.booleans(),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_chunks_are_those_of_zarr_bit_by_bit(tmp_path_factory, dims, dtype, sparse, data):
    shape, steps = tuple(step * 2 - 1 for step, _ in dims), tuple(step for step, _ in dims)
    values = np.random.default_rng(len(dims)).integers(0, 9, shape).astype(dtype)
    first = tuple(slice(0, step) for step in steps)
    values[first] = np.nan if dtype.startswith("f") else 3
    space, theirs = Directory(Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp()))), MemoryStore()
    store = SpaceStore(space)
    chunks = ArrayChunks(created(store, shape, steps, dtype))
    other = created(theirs, shape, steps, dtype).with_config({"write_empty_chunks": not sparse})
    other[...] = values
    chunks.write(space, (), values, sparse=sparse)
    stored = {key: buffer.to_bytes() for key, buffer in theirs._store_dict.items() if "/c/" in key}
    assert {key: space.get(key).data for key in space.list() if "/c/" in key} == stored
    bounds = [sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in shape]
    selection = tuple(slice(*pair) for pair in bounds)
    np.testing.assert_array_equal(chunks.read(store, selection), other[selection])


def test_a_chunk_that_was_changed_is_refused(tmp_path):
    space = Directory(tmp_path)
    chunks = ArrayChunks(created(SpaceStore(space), (4,), (4,), "i4"))
    chunks.write(space, (), np.arange(4, dtype="i4"), sparse=False)
    changed = bytearray(space.get("a/c/0").data)
    changed[-6] ^= 1
    space.put("a/c/0", bytes(changed))
    with pytest.raises(ValueError, match="checksum"):
        chunks.read(SpaceStore(space), ())


@pytest.mark.parametrize("more", [{"serializer": BytesCodec(endian="big")}, {"codecs": ()}])
def test_what_is_stored_in_another_way_is_left_to_zarr(tmp_path, more):
    assert not ArrayChunks(created(SpaceStore(Directory(tmp_path)), (4,), (4,), "i4", **more)).plain
