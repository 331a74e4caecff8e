"""Forensic tables of datasets, and their drawings."""

import numpy as np
import pytest
import xarray as xr

from evalcube.stages.analyze.formulas.forensics import (
    aalen_johansen,
    compression,
    count_ends,
    kaplan_meier,
    life_table,
    sum_traces,
)
from evalcube.stages.analyze.labelled.forensics import (
    compression_table,
    cost_table,
    hazard_table,
    pareto_rows,
)
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from tests.stages.analyze.synthetic import dataset

DIMS = ("model", "task", "params", "trial", "repeat")
SHAPE = (2, 3, 4, 16, 2)


@pytest.fixture
def trials():
    """Two evaluations, the second of longer trials; nothing ran in the last task of the first."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(1, 2000, size=SHAPE) * np.array([1, 2]).reshape(2, 1, 1, 1, 1)
    status = np.where(tokens > 3000, 2, rng.choice([0, 1, 3], size=SHAPE))
    status[0, 2], tokens[0, 2] = 255, -1
    raw = np.where(tokens > 0, tokens * 4, -1)
    arrays = {"status": status, "tokens": tokens, "reasoning_bytes": raw, "compressed_bytes": raw // 3}
    return xr.Dataset(
        {name: (DIMS, array) for name, array in arrays.items()},
        {"model_name": ("model", ["a", "b"]), "eval_id": ("model", ["1", "2"]), "task": ["x", "y", "z"]},
    )


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("by_task", [False, True])
def test_hazard_table__is_the_formulas_on_each_group(trials, lazy, by_task):
    table = hazard_table(trials.chunk(model=1, trial=5) if lazy else trials, by_task=by_task)

    assert table.sizes["bin"] == 16
    assert table["tokens"].values.tolist() == [256 * bin for bin in range(1, 17)]
    for index in np.ndindex(*(table.sizes[dim] for dim in (("model", "task") if by_task else ("model",)))):
        ends = count_ends(*(trials[name].values[index].ravel() for name in ("status", "tokens")), bins=16)
        np.testing.assert_array_equal(table["ends"].values[index], ends)
        np.testing.assert_array_equal(table["at_risk"].values[index], life_table(ends).at_risk)
        for name, curve in (
            ("hazard", life_table(ends).hazard),
            ("survival", kaplan_meier(ends)),
            ("incidence", aalen_johansen(ends)),
        ):
            expected = np.stack([curve.value, curve.lower, curve.upper], axis=-1)
            np.testing.assert_array_equal(table[name].values[index], expected)


def test_hazard_table__labels(trials):
    table = hazard_table(trials, by_task=True, width=100)

    assert table["incidence"].sel(cause="right", bound="upper", task="x").dims == ("model", "bin")
    assert table["model_name"].values.tolist() == ["a", "b"]
    assert table["tokens"].values[0] == 100


def test_hazard_table__refuses_datasets_without_trials(trials):
    with pytest.raises(ValueError, match=r"lacks the trial arrays \['tokens'\]"):
        hazard_table(trials.drop_vars("tokens"))


@pytest.mark.parametrize("by_task", [False, True])
def test_compression_table__is_the_formulas_on_each_group(trials, by_task):
    table = compression_table(trials, by_task=by_task)
    arrays = [trials[name].values for name in ("status", "tokens", "reasoning_bytes", "compressed_bytes")]

    for index in np.ndindex(*((2, 3) if by_task else (2,))):
        found = compression(sum_traces(*(array[index].ravel() for array in arrays)))
        np.testing.assert_array_equal(table["traces"].values[index], found.traces)
        np.testing.assert_array_equal(table["ratio"].sel(bound="upper").values[index], found.ratio.upper)
    assert table["bytes_per_token"].sel(outcome="correct", bound="value").values.ravel()[0] == pytest.approx(
        4
    )


def test_tables__copies_in_a_cluster_tell_no_more_than_one_of_them():
    rng = np.random.default_rng(2)
    tokens = rng.integers(1, 2000, size=(1, 1, 1, 400, 1))
    raw = tokens * rng.integers(2, 6, size=tokens.shape)
    once = {"status": rng.choice([0, 1], size=tokens.shape), "tokens": tokens, "reasoning_bytes": raw}
    once["compressed_bytes"] = raw // 3 + rng.integers(0, 9, size=raw.shape)
    single = xr.Dataset(
        {name: (DIMS, array) for name, array in once.items()}, {"task": ["x"], "model_name": ("model", ["a"])}
    )
    number = np.arange(1, 401).reshape(tokens.shape)
    copied = xr.Dataset(
        {name: (DIMS, np.repeat(array, 5, axis=3)) for name, array in (once | {"cluster": number}).items()},
        single.coords,
    )

    for table, name in ((hazard_table, "hazard"), (hazard_table, "incidence"), (hazard_table, "survival"),
                        (hazard_table, "budget"), (compression_table, "ratio")):  # fmt: skip
        for by_task in (False, True):
            expected, found = (table(ds, by_task=by_task)[name].isel(model=0) for ds in (single, copied))
            np.testing.assert_allclose(found.sel(bound="value"), expected.sel(bound="value"))
            width, known = (
                (one.sel(bound="upper") - one.sel(bound="lower")).values for one in (found, expected)
            )
            np.testing.assert_allclose(width, known, rtol=0.12, atol=0.02)


def test_cost_table__from_prices_else_from_what_was_counted():
    ds = dataset(["a", "b", "c"])
    counted = ds["counters"].copy()
    counted.loc[{"counter": "cost_sum"}] = 0.5 * (counted.sel(counter="trials") > 0)
    ds = ds.assign(counters=counted).assign_coords(
        price_prompt=("model", [1.0, np.nan, 0.0]), price_completion=("model", [2.0, 2.0, 2.0])
    )
    sums = ds["counters"].sum(["task", "params"])

    table = cost_table(ds)

    priced = 1.0 * sums.sel(counter="prompt_tokens_sum") + ds["price_completion"] * sums.sel(
        counter="tokens_sum"
    )
    np.testing.assert_allclose(table["total"][0], priced[0] / 1e6)
    np.testing.assert_allclose(table["total"][1], sums.sel(counter="cost_sum")[1])
    np.testing.assert_allclose(table["per_correct"], table["total"] / sums.sel(counter="correct"))
    by_task = cost_table(ds, by_task=True)
    assert by_task["per_trial"].dims == ("model", "task")
    counted.loc[{"counter": "cost_sum"}] = 0.0
    unpriced = ds.assign(counters=counted).assign_coords(
        price_prompt=("model", [1.0, 0.0, 0.0]), price_completion=("model", [2.0, 0.0, 2.0])
    )
    assert np.isnan(cost_table(unpriced)["total"]).values.tolist() == [False, True, False]
    np.testing.assert_allclose(by_task["total"].sum("task"), table["total"])


def test_cost_table__prices_of_0_are_prices_where_they_were_declared():
    ds = dataset(["a", "b"])
    counted = ds["counters"].copy()
    counted.loc[{"counter": "cost_sum"}] = 0.0
    ds = ds.assign(counters=counted).assign_coords(
        price_prompt=("model", [0.0, 0.0]),
        price_completion=("model", [0.0, 0.0]),
        price_declared=("model", [True, False]),
    )

    costs = {row.model_name: row.cost for row in leaderboard(ds, draws=5).rows}

    assert cost_table(ds)["total"].values[0] == costs["a"] == 0
    assert np.isnan(cost_table(ds)["total"].values[1])
    assert np.isnan(costs["b"])


def test_pareto_rows__one_for_each_row_of_the_board():
    ds = dataset(["a", "b", "c", "d"]).assign_coords(
        price_prompt=("model", [1.0] * 4), price_completion=("model", [4.0, 3.0, 2.0, 1.0])
    )
    board = leaderboard(ds, draws=2)

    rows = pareto_rows(board)

    assert [row.eval_id for row in rows] == [row.eval_id for row in board.rows]
    assert rows[0].on_token_front  # the best score is always on it
    cheapest = min(rows, key=lambda row: row.tokens)
    assert cheapest.on_token_front
    assert all(row.on_front for row in rows if row.on_token_front or row.on_cost_front)
