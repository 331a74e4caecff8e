"""Cubes with layer scores and judge readings: made on request only, written, read and grown like the other arrays."""

import numpy as np
import pytest
from storage_workers import make_cube, region_arrays

from evalcube.flows.state.growing import with_said
from evalcube.storage.cube.cube import Cube, Region, region_digest
from evalcube.storage.cube.schema import LAYERS
from evalcube.storage.errors import CubeMismatchError

pytestmark = pytest.mark.long

JUDGED = {"judge_name": 3, "judge_repeat": 2}


def layered(path, **more):
    sizes = {"model": 2, "task": 2, "params": 3, "trial": 8, "repeat": 1, **JUDGED}
    return make_cube(path, sizes=sizes, layers=list(LAYERS), **more)


def layered_arrays(cube, region):
    arrays = region_arrays(cube, region)
    rng = np.random.default_rng(5)
    for name in LAYERS:
        more = tuple(JUDGED.values()) if name == "judge_readings" else ()
        arrays[name] = rng.integers(0, 2, (*cube.region_shape(region), *more)).astype(LAYERS[name].dtype)
    return arrays


def test_write_region__layers_are_read_back_and_survive_growth(tmp_path):
    cube = layered(tmp_path / "c.zarr")
    region = Region(1, 0, 0)
    arrays = layered_arrays(cube, region)

    digest = cube.write_region(region, arrays)
    cube.grow(trial=40, repeat=3)

    again = Cube.open(cube.url).read_region(region)
    assert list(cube.trial_arrays)[-1] == "status"
    assert digest == region_digest({name: again[name][:, :, :8, :1] for name in again})
    dataset = cube.dataset()
    assert dataset["judge_readings"].dims[-2:] == ("judge_name", "judge_repeat")
    assert dataset["judge_readings"].shape == (2, 2, 3, 40, 3, 3, 2)
    assert np.isnan(dataset["judge_readings"][:, :, :, 8:]).all()
    assert np.isnan(dataset["fact"][0]).all()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("fact", None, r"arrays missing \['fact'\]"),
        ("judge_readings", lambda values: values[..., 0], r"`judge_readings` must have shape"),
        ("judge", lambda values: values.astype(np.float64), "`judge` must have dtype float32"),
    ],
)
def test_write_region__refuses_layers_that_do_not_fit(tmp_path, name, change, message):
    cube = layered(tmp_path / "c.zarr")
    arrays = layered_arrays(cube, Region(0, 0, 0))
    wrong = arrays.pop(name)
    if change is not None:
        arrays[name] = change(wrong)

    with pytest.raises(CubeMismatchError, match=message):
        cube.write_region(Region(0, 0, 0), arrays)


def test_write_region__cubes_without_a_place_for_what_endpoints_say_do_without(tmp_path):
    cube = make_cube(tmp_path / "c.zarr")
    region = Region(0, 0, 0)
    arrays = region_arrays(cube, region)
    said = {"cached_tokens": np.full(cube.region_shape(region), 7, np.int32)}

    digest = cube.write_region(region, arrays | said)
    with_said(cube)
    grown = cube.write_region(region, arrays | said)

    assert digest == region_digest(arrays)
    assert grown == region_digest(cube.read_region(region)) != digest
    assert (cube.read_region(region)["cached_tokens"] == 7).all()
