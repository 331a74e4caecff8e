"""Labelled arrays without xarray do what xarray's do, and xarray takes them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from evalcube._arrays import LabelledArray, PlainDataset, as_xarray, variable

DIMS = ("model", "task", "counter")
SIZES = (3, 2, 4)


def example() -> tuple[PlainDataset, xr.Dataset]:
    """The same content twice."""
    data = {
        "counts": (DIMS, np.arange(24.0).reshape(SIZES), {"units": "1"}),
        "plan": (DIMS[:2], np.ones((3, 2))),
    }
    coords = {"task": (("task",), np.array(["sort", "sums"])), "price": (("model",), np.arange(3))}
    return PlainDataset(data, coords, {"title": "t"}), xr.Dataset(data, coords, {"title": "t"})


def assert_same(ours: PlainDataset, theirs: xr.Dataset) -> None:
    """Fail where they differ."""
    xr.testing.assert_identical(as_xarray(ours), theirs)
    assert set(ours.coords) == set(theirs.coords)
    assert set(ours) == set(theirs)
    assert ours.sizes == dict(theirs.sizes)


places = st.one_of(
    st.integers(0, 1),
    st.lists(st.integers(0, 1), min_size=1, max_size=3),
    st.lists(st.integers(0, 1), min_size=1, max_size=3).map(np.array),
    st.sampled_from([slice(None), slice(1, None), slice(0, 1)]),
)


@given(st.dictionaries(st.sampled_from(DIMS), places))
def test_dataset_isel__is_that_of_xarray(chosen):
    ours, theirs = example()

    assert_same(ours.isel(chosen), theirs.isel(chosen))


@given(st.permutations(DIMS))
def test_variable_transpose__is_that_of_xarray(order):
    ours, theirs = example()

    found = ours.variables["counts"].transpose(order[0], ..., order[1])

    np.testing.assert_array_equal(found, theirs["counts"].transpose(order[0], ..., order[1]))
    assert found.dims == theirs["counts"].transpose(order[0], ..., order[1]).dims


def test_variable_transpose__refuses_other_dims():
    ours, _ = example()

    with pytest.raises(ValueError, match="must be the dims"):
        ours["plan"].transpose("model", "tier")


def test_dataset__assigns_and_drops_as_xarray():
    ours, theirs = example()
    more, label = variable(("task",), np.zeros(2)), variable(("model",), np.array(["a", "b", "c"]))

    for changed in (
        lambda ds: ds.assign(more=more).assign_coords(model=label).assign_attrs(by="us"),
        lambda ds: ds.drop_vars(["plan", "price"]),
        lambda ds: ds.drop_vars("nothing", errors="ignore"),
        lambda ds: ds[["plan"]].compute(),
    ):
        assert_same(changed(ours), changed(theirs))


def test_dataset__numbers_a_dim_without_labels():
    ours, theirs = example()

    np.testing.assert_array_equal(ours["counter"].values, theirs["counter"].values)
    with pytest.raises(ValueError, match="nothing"):
        ours.drop_vars("nothing")


def test_variable__is_xarrays_where_it_is_lazy():
    lazy = xr.Dataset({"a": ("x", np.ones(4))}).chunk(x=2)["a"]

    found = variable(("x",), lazy.data)

    assert isinstance(found, xr.Variable)
    assert not isinstance(variable(("x",), np.ones(4)), xr.Variable)
    assert isinstance(as_xarray(lazy.to_dataset()), xr.Dataset)
    assert LabelledArray(("x",), np.ones(4)).chunks is None
