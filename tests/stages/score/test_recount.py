"""Datasets recounted: the same numbers however the dataset is chunked."""

import tracemalloc

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from evalcube._arrays import PlainDataset, as_xarray, variable
from evalcube.stages.reply.status import COUNTERS, Status
from evalcube.stages.score.counters import count_trials
from evalcube.stages.score.recount import recount, trim_trials
from tests.stages.score.trials import draw_trials

pytestmark = pytest.mark.long

DIMS = ("model", "task", "params", "trial", "repeat")
SHAPE = (3, 2, 2, 7, 2)


def dataset(seed=1, *, planned=True):
    rng = np.random.default_rng(seed)
    arrays = draw_trials(rng, SHAPE)
    ds = xr.Dataset({name: (DIMS, array) for name, array in arrays.items()})
    ds["duplicate"] = DIMS[1:4], rng.choice(np.array([0, 1, 255], np.uint8), size=SHAPE[1:4])
    if planned:
        ds["planned_trials"] = DIMS[:3], rng.integers(0, SHAPE[3] + 1, size=SHAPE[:3]).astype(np.int32)
        ds["planned_repeats"] = DIMS[:3], rng.integers(0, SHAPE[4] + 1, size=SHAPE[:3]).astype(np.int32)
    ds["counters"] = xr.DataArray(np.ones((*SHAPE[:3], 2)), dims=(*DIMS[:3], "counter"), attrs={"units": "1"})
    return ds.assign_coords(
        counter=["trials", "old"],
        price_prompt=("model", [0.5, np.nan, 2.0]),
        price_completion=("model", [1.5, 1.0, 0.0]),
    )


def expected(ds, **options):
    """Counters of each model by the formula floor alone."""
    parts = []
    for model in range(ds.sizes["model"]):
        one = ds.isel(model=model)
        arrays = {name: one[name].values for name in ds.data_vars if ds[name].dims == DIMS}
        arrays["duplicate"] = ds["duplicate"].values[..., np.newaxis]
        if "planned_trials" in ds:
            trial, repeat = np.arange(SHAPE[3])[:, np.newaxis], np.arange(SHAPE[4])
            arrays["planned"] = (trial < one["planned_trials"].values[..., None, None]) & (
                repeat < one["planned_repeats"].values[..., None, None]
            )
        prompt, completion = (np.nan_to_num(float(one[f"price_{kind}"])) for kind in ("prompt", "completion"))
        parts.append(count_trials(arrays, price_prompt=prompt, price_completion=completion, **options))
    return np.stack(parts)


OPTIONS = [
    {},
    {"unique_only": True},
    {"trials": 5},
    {"clip_tokens": 50_000},
    {"unique_only": True, "trials": 3},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("planned", [True, False])
def test_recount__of_arrays_is_done_at_once(options, planned):
    ds = dataset(planned=planned)

    counted = recount(ds, **options)["counters"]

    assert counted.chunks is None
    assert counted.dims == (*DIMS[:3], "counter")
    assert counted.attrs == {"units": "1"}
    assert counted["counter"].values.tolist() == list(COUNTERS)
    np.testing.assert_array_equal(counted.values, expected(ds, **options))


@pytest.mark.parametrize("options", OPTIONS)
def test_recount__and_trimmed__of_plain_arrays_are_those_of_labelled_ones(options):
    ds = dataset().transpose("trial", ...)
    data, labels = (
        {name: variable(one.dims, one.values, one.attrs) for name, one in part.items()}
        for part in (ds.data_vars, ds.coords)
    )
    plain = PlainDataset(data, labels)

    for function in (recount, trim_trials):
        found = function(plain, **options)
        assert isinstance(found, PlainDataset)
        xr.testing.assert_identical(as_xarray(found), function(ds, **options))


@given(st.integers(0, 2**32), st.sampled_from(OPTIONS), st.tuples(*(st.integers(1, size) for size in SHAPE)))
def test_recount__is_the_same_for_any_chunks(seed, options, chunks):
    ds = dataset(seed)
    lazy = ds.chunk(dict(zip(DIMS, chunks, strict=True)))

    counted = recount(lazy, **options)["counters"]

    assert counted.chunks is not None
    got, whole = counted.compute(scheduler="sync").values, expected(ds, **options)
    exact = [index for index, name in enumerate(COUNTERS) if name not in {"latency_sum", "cost_sum"}]
    np.testing.assert_array_equal(got[..., exact], whole[..., exact])
    np.testing.assert_allclose(got, whole, rtol=4e-16)


def test_recount__arrays_may_be_chunked_differently():
    ds = dataset()
    mixed = ds.chunk(model=1, trial=2)
    mixed["tokens"] = ds["tokens"].chunk(trial=3)
    mixed["latency"] = ds["latency"]
    mixed = mixed.assign_coords(price_prompt=ds["price_prompt"].chunk(model=3))

    np.testing.assert_allclose(recount(mixed)["counters"].values, expected(ds), rtol=4e-16)


def test_recount__dims_in_any_order():
    ds = dataset()

    np.testing.assert_array_equal(
        recount(ds.transpose(*reversed(DIMS), ...))["counters"].values, expected(ds)
    )


@pytest.mark.parametrize("options", [*OPTIONS, {"clip_tokens": 2**31}, {"clip_tokens": 1, "trials": 2}])
def test_trimmed__trials_are_those_that_are_counted(options):
    ds = dataset()
    small = trim_trials(ds.chunk(model=1, trial=3), **options)
    # A repeated prompt is left out of the counters, and a missing trial among the arrays.
    apart = ["missing", "duplicates"] if options.get("unique_only") else []

    counted, again = (
        data["counters"].drop_sel(counter=apart) for data in (recount(ds, **options), recount(small))
    )

    np.testing.assert_array_equal(again.values, counted.values)
    assert small["status"].chunks is not None
    assert (small["status"].dtype, small["tokens"].dtype) == (np.uint8, np.int32)
    assert not ((small["tokens"] > options.get("clip_tokens", 2**31)) & (small["status"] < 5)).any()


def test_trimmed__changes_nothing_else():
    ds = dataset()
    small = trim_trials(ds, trials=5, unique_only=True, clip_tokens=50_000)
    changed = ["status", "tokens"]

    xr.testing.assert_identical(small.drop_vars(changed), ds.isel(trial=slice(5)).drop_vars(changed))
    xr.testing.assert_identical(trim_trials(ds), ds)


def test_trimmed__repeated_prompts_are_missing_and_unmeasured_trials_are_not_cut():
    ds = dataset()
    small = trim_trials(ds, unique_only=True, clip_tokens=1)
    repeated = (ds["duplicate"] == 1).broadcast_like(ds["status"])

    assert (small["status"].where(repeated, Status.MISSING) == Status.MISSING).all()
    unmeasured = (ds["tokens"] < 0) & ~repeated
    assert (small["status"] == ds["status"]).where(unmeasured, True).all()


def test_recount__keeps_all_else():
    ds = dataset()
    kept = recount(ds, trials=2).drop_vars(["counters", "counter"])

    xr.testing.assert_identical(kept, ds.drop_vars(["counters", "counter"]))


def test_recount__reads_no_trial_before_it_is_computed():
    ds = dataset().chunk(model=1)
    blocks = ds["status"].data.map_blocks(refuse, dtype=np.uint8, meta=np.empty((0,) * 5, np.uint8))

    counted = recount(ds.assign(status=(DIMS, blocks)))["counters"]

    with pytest.raises(RuntimeError, match="a chunk was read"):
        counted.compute(scheduler="sync")


def test_recount__takes_little_more_than_the_counters_of_arrays_in_memory():
    ds = dataset().isel(model=[0] * 20, trial=[0] * 5000).copy(deep=True)

    tracemalloc.start()
    recount(ds)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < ds.nbytes / 2


def refuse(_):
    raise RuntimeError("a chunk was read")


def test_recount__without_prices_nothing_costs_anything():
    ds = dataset().drop_vars(["price_prompt", "price_completion"])

    assert not recount(ds)["counters"].sel(counter="cost_sum").any()


def test_recount__without_models():
    assert recount(dataset().isel(model=slice(0)))["counters"].shape == (0, *SHAPE[1:3], len(COUNTERS))


def test_recount__what_lies_beyond_the_plan_is_not_missing():
    ds = dataset()
    ds["status"][...] = int(Status.MISSING)
    counted = recount(ds, trials=4)["counters"].sel(counter="missing")

    wanted = ds["planned_trials"].clip(max=4) * ds["planned_repeats"]
    np.testing.assert_array_equal(counted.values, wanted.values)


def test_recount__refuses_datasets_without_trials():
    with pytest.raises(ValueError, match=r"lacks the trial arrays \['latency'\]"):
        recount(dataset().drop_vars("latency"))


def test_recount__refuses_unique_only_without_marks():
    with pytest.raises(ValueError, match="needs the array `duplicate`"):
        recount(dataset().drop_vars("duplicate"), unique_only=True)


@pytest.mark.parametrize("option", ["trials", "clip_tokens"])
def test_recount__refuses_options_below_one_before_it_reads(option):
    with pytest.raises(ValueError, match=f"`{option}` must be at least 1, got -1"):
        recount(dataset().chunk(), **{option: -1})
