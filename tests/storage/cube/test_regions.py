"""Digests of regions."""

import numpy as np
import pytest

from evalcube.storage.cube.cube import Region, region_digest

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


def test_region_digest__depends_on_content_only(cube, workers):
    arrays = workers.region_arrays(cube, Region(0, 0, 0))
    digest = region_digest(arrays)
    layout = {
        name: np.asfortranarray(a.astype(a.dtype.newbyteorder(">"))) for name, a in reversed(arrays.items())
    }
    layout["latency"] = arrays["latency"] + 1

    assert region_digest(layout) == digest
    assert len(digest) == 32
    for name in set(arrays) - {"latency"}:
        changed = {**arrays, name: arrays[name].copy()}
        changed[name].flat[-1] += 1
        assert region_digest(changed) != digest, name
