"""Arrays that all models of a cube share: counters and labels."""

import numpy as np
import pytest

from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.schema import COUNTER_LABELS, COUNTERS
from evalcube.storage.errors import (
    CubeMismatchError,
)

pytestmark = pytest.mark.long


@pytest.fixture
def cube(tmp_path, workers):
    return workers.make_cube(tmp_path / "c.zarr")


def test_write_counters__models_share_chunks(tmp_path, workers):
    cube = workers.make_cube(tmp_path / "c.zarr", {"model": 30})
    shape = tuple(cube.sizes[dim] for dim in COUNTERS.dims)
    expected = np.zeros(shape)
    rng = np.random.default_rng(1)

    for models in ([3], [24, 25], list(range(25)), [29]):
        values = {model: rng.integers(0, 2**53, shape[1:]).astype(float) for model in models}
        cube.write_counters(values)
        for model, array in values.items():
            expected[model] = array

    np.testing.assert_array_equal(Cube.open(cube.url).read_counters(), expected)
    assert list(cube.dataset().counter.values) == list(COUNTER_LABELS)


@pytest.mark.parametrize(
    ("model", "array", "text"),
    [
        (3, np.zeros((2, 4, 20)), "3 models"),
        (0, np.zeros((2, 4, 14)), "shape"),
        (0, np.zeros((2, 4, 20), "int64"), "float64"),
        (0, np.full((2, 4, 20), np.nan), "finite"),
    ],
)
def test_write_counters__refuses_what_does_not_fit(cube, model, array, text):
    with pytest.raises(CubeMismatchError, match=text):
        cube.write_counters({1: np.ones((2, 4, 20)), model: array})

    assert not cube.read_counters().any()


def test_write_label__replaces_a_coordinate_along_model_and_nothing_else(cube):
    names = cube.read_label("model_name")
    before = cube.dataset().load()

    cube.write_label("model_name", np.array([f"{name}!" for name in names], dtype=object))

    after = Cube.open(cube.url).dataset().load()
    assert after["model_name"].values.tolist() == [f"{name}!" for name in names]
    assert after.drop_vars("model_name").identical(before.drop_vars("model_name"))
    with pytest.raises(CubeMismatchError, match="no coordinate `price`"):
        cube.read_label("price")
    with pytest.raises(CubeMismatchError, match="has shape"):
        cube.write_label("model_name", np.array(["one", "too", "many", "of", "them"], dtype=object))


def test_labels__are_those_that_the_stages_count():
    from evalcube.stages.reply.status import COUNTERS as COUNTED
    from evalcube.stages.reply.status import QUESTION_COUNTERS

    assert tuple(COUNTER_LABELS) == (*COUNTED, *QUESTION_COUNTERS)
