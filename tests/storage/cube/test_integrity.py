"""Lazy datasets, and regions compared with their receipts."""

import numpy as np
import pytest

from evalcube.storage.cube.cube import Cube, Region
from evalcube.storage.cube.integrity import stored_problems
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.schema import VARIABLES
from tests.storage.cube.growths import arrays_of, grown, receipt, recorded

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


def test_dataset__is_lazy_and_equal_to_what_was_written(cube, workers):
    region = Region(1, 0, 0)
    arrays = workers.region_arrays(cube, region)
    cube.write_region(region, arrays)

    dataset = cube.dataset()

    assert dataset.status.chunks is not None
    for name, array in arrays.items():
        np.testing.assert_array_equal(dataset[name].values[1], array)


def test_extend__keeps_what_was_there_and_receipts_stay_true(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    before = cube.dataset().load()
    newest = Ledger(cube.records).newest()

    grown(cube)

    after = cube.dataset().load()
    old = after.isel(model=slice(2), task=slice(2), params=slice(3))
    for name in [*VARIABLES, "counters", "planned_trials"]:
        assert old[name].values.tobytes() == before[name].values.tobytes(), name
    assert (after["status"][2] == 255).all()
    assert (after["status"][:, 2:] == 255).all()
    assert (after["counters"][2] == 0).all()
    assert (after["planned_trials"][:, 2:] == 0).all()
    assert after.sizes["tier"] == 3
    assert cube.attrs == {"name": "grown"}
    assert np.isnan(after["param_length"][3, 4])
    assert Ledger(cube.records).newest() == newest
    for one in newest.values():
        assert stored_problems(cube, one)[0] == {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cube, "shape_of", lambda self, _: self.shapes[-1])
        assert stored_problems(cube, one)[0] == dict.fromkeys(VARIABLES, "is gone")


def test_extend__regions_are_written_and_recorded_at_the_new_size(tmp_path):
    cube = recorded(tmp_path / "c.zarr")
    grown(cube)
    region = Region(0, 0, 0)
    arrays = arrays_of(cube, region)

    new = receipt(cube, region, cube.write_region(region, arrays), generation=2)
    with Ledger(cube.records) as ledger:
        ledger.append(new)

    assert arrays["status"].shape == (4, 5, 8, 1)
    newest = Ledger(cube.records).newest()
    assert newest[region] == new
    for one in newest.values():
        assert stored_problems(cube, one)[0] == {}
    (tmp_path / "c.zarr/status/c.0.1.1.0.0").unlink()
    assert stored_problems(cube, new)[0] == {"status": "is gone"}
