"""Recorded regions are graded again in place."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from evalcube.flows.events import Announcer
from evalcube.flows.read.reader import Reader
from evalcube.flows.state.rescoring import regrade_recorded
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger


def test_regrade_recorded__writes_newer_receipts_of_the_same_trials(
    small_sweep: Path, tmp_path: Path
) -> None:
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    cube = Cube.open(tmp_path / "cube.zarr", writable=True)
    before = Ledger(cube.records).newest()
    arrays = {region: cube.read_region(region)["status"] for region in before}
    cache = open_cache(small_sweep / "cache", writable=False)

    done = regrade_recorded(cube, Reader(cube.url).plan, cache, Announcer([]), older_only=False)

    after = Ledger(cube.records).newest()
    assert (done.regions, done.changed, done.lost) == (len(before), 0, 0)
    for region, receipt in before.items():
        assert after[region].generation == receipt.generation + 1
        assert after[region].fingerprints == receipt.fingerprints
        np.testing.assert_array_equal(cube.read_region(region)["status"], arrays[region])
