"""A cube that is merged is only read, and only what its ledger vouches for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from evalcube.flows.read.merged.inputs import Input
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.regions import Region, region_digest
from evalcube.storage.errors import CubeDamagedError
from tests.flows.read.merged.generated import make_cube
from tests.flows.read.merged.two_teams import A

pytestmark = pytest.mark.long


def test_read__what_the_ledger_vouches_for_while_a_run_goes_on(pair: tuple[str, str]) -> None:
    one, region = Input(pair[0]), Region(0, 0, 0)
    before = one.receipts[region]
    cube = Cube.open(pair[0], writable=True)
    arrays = cube.read_region(region)
    arrays["tokens"] = arrays["tokens"] + np.int32(1)
    digest = cube.write_region(region, arrays)

    with pytest.raises(CubeDamagedError, match="is not what was recorded"):
        one.read_region(region)
    other = replace(before, region=Region(0, 7, 0))
    with Ledger(cube.records) as ledger:
        ledger.append(other)
        ledger.append(replace(before, generation=before.generation + 1, digest=digest))
    found = one.read_region(region)

    assert found is not None
    assert found[0].generation == before.generation + 1
    assert np.array_equal(found[1]["tokens"], arrays["tokens"])
    assert one.read_region(other.region) is None  # as it was not there when the cube was listed


def test_read__asks_for_chunks_again_only_where_a_region_is_not_as_recorded(
    pair: tuple[str, str], monkeypatch: Any
) -> None:
    one, region = Input(pair[0]), Region(0, 0, 0)
    asked, look = [], Cube.chunk_problems
    monkeypatch.setattr(Cube, "chunk_problems", lambda *given: asked.append(given) or look(*given))

    assert (one.read_region(region) is None, asked) == (False, [])
    stored = zarr.open_group(pair[0], mode="r+")["status"]
    stored[0] = np.full(stored.shape[1:], 77, np.uint8)
    before = one.receipts[region]
    stored = one.cube.stored_arrays(region, one.cube.trial_arrays)
    arrays = one.cube.shape_of(before).crop(stored, before.trials, before.repeats)
    one.receipts[region] = replace(before, digest=region_digest(arrays))
    with pytest.raises(CubeDamagedError, match="holds invalid values"):
        one.read_region(region)
    assert asked


def test_input__refuses_a_region_that_is_not_as_its_ledger_says(tmp_path: Path) -> None:
    cube = make_cube(tmp_path / "a.zarr", replace(A, models=("alpha",)))
    region = next(iter(cube.regions()))
    whole = Input(cube.url).read_region(region)
    arrays = cube.read_region(region)
    assert whole is not None
    assert (whole[1]["tokens"] == arrays["tokens"]).all()

    Cube.open(cube.url, writable=True).write_region(region, {**arrays, "tokens": arrays["tokens"] + 1})

    with pytest.raises(CubeDamagedError, match="a chunk of"):
        Input(cube.url).read_region(region)
    assert Input(cube.url).read_region(Region(0, 9, 0)) is None
