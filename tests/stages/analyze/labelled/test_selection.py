import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.selection import keys, restrict, select
from tests.stages.analyze.synthetic import PROFILES, dataset

DS = dataset(PROFILES[:3], tasks=3, points=6, trials=16)

CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "task": st.lists(st.sampled_from(["arithmetic", "boolean", "brackets"]), min_size=1),
        "tier": st.sampled_from(["easy", "medium", "hard"]),
        "model_name": st.sampled_from([profile.name for profile in PROFILES[:3]]),
        "params": st.tuples(st.integers(0, 2), st.integers(3, 6)),
    },
)


def outcome(function):
    try:
        return function()
    except ValueError as error:
        return str(error).partition("leaves no")[1]


@given(where=CONDITIONS, by=st.sampled_from([(), ("model_name",), ("task", "tier")]))
def test_restrict__then_aggregate_is_aggregate_of_the_selection(where, by):
    direct = outcome(lambda: aggregate(DS, where=where, by=by))
    restricted = outcome(lambda: aggregate(restrict(DS, where), by=by))

    if isinstance(direct, str):
        assert restricted == direct
    else:
        xr.testing.assert_equal(direct.drop_vars("counter"), restricted.drop_vars("counter"))


def test_restrict__blanks_trials_and_labels_and_leaves_the_dataset_alone():
    ds = DS.assign(
        status=(("model", "task", "params", "trial", "repeat"), np.ones((3, 3, 7, 2, 1), np.uint8))
    ).assign_coords(cell_id=(("task", "params"), np.full((3, 7), "x")))
    before = ds.copy(deep=True)

    part = restrict(ds, {"tier": "easy"})

    xr.testing.assert_identical(ds, before)
    inside = part["in_tier"].isel(tier=0).values
    assert part["status"].dtype == np.uint8
    assert ((part["status"].values == 1).all(axis=(0, 3, 4)) == inside).all()
    assert ((part["cell_id"].values == "x") == inside).all()
    assert restrict(ds, {}) is ds
    with pytest.raises(ValueError, match="there is no tier"):
        restrict(ds, {"tier": "none"})


@settings(derandomize=True, max_examples=30)
@given(where=CONDITIONS, lazy=st.booleans())
def test_restrict__masks_by_the_names_of_dims_in_whatever_order(where, lazy):
    plan = xr.DataArray(np.arange(63, dtype=np.int32).reshape(7, 3, 3), dims=("params", "model", "task"))
    ds = DS.assign(
        planned_trials=plan, counters=DS["counters"].transpose("counter", "task", "model", "params")
    )
    part = outcome(lambda: restrict(ds.chunk(model=1) if lazy else ds, where))
    if isinstance(part, str):
        return

    chosen = select(ds, where, keys(ds))
    inside = xr.DataArray(chosen.cells, dims=("task", "params"))
    kept = {"model": chosen.models, "task": inside.any("params"), "params": inside.any("task")}
    places = {dim: np.flatnonzero(there) for dim, there in kept.items()} | {"tier": list(chosen.tiers)}
    for name in ("planned_trials", "counters", "in_tier"):
        expected = ds[name].where(inside, ds[name].dtype.type(0))
        xr.testing.assert_identical(
            part[name].compute(),
            expected.isel({dim: at for dim, at in places.items() if dim in expected.dims}),
        )
    assert (part["counters"].chunks is not None) == lazy
