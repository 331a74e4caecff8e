"""All pages mean the same by all tasks, whatever was added, lost, reordered or laid beside it."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.outcomes import cube_outcome_metrics
from evalcube.stages.analyze.labelled.pairing import compare_evaluations
from evalcube.stages.analyze.labelled.report_data import outcome_shares
from evalcube.stages.reply.status import COUNTERS, Status
from tests.stages.analyze.synthetic import Profile, dataset

TRIAL = ("model", "task", "params", "trial", "repeat")
MOST = 24


@st.composite
def sweeps(draw):
    """A dataset of two models, two tasks and up to three points, of any base design and any finished trials."""
    shape = (2, 2, 3)
    there = np.array(draw(st.lists(st.booleans(), min_size=6, max_size=6))).reshape(shape[1:])
    there[:, 0] = True
    base = np.array(draw(st.lists(st.integers(1, 40), min_size=12, max_size=12))).reshape(shape)
    sizes = np.array(draw(st.lists(st.integers(1, MOST), min_size=12, max_size=12))).reshape(shape) * there
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    right = rng.random((*shape, MOST, 1)) < rng.random((*shape, 1, 1))
    asked = np.arange(MOST)[:, np.newaxis] < sizes[..., np.newaxis, np.newaxis]
    status = np.where(asked, right, int(Status.MISSING)).astype(np.uint8)
    return made(status, base * there, there)


def made(status, base, there):
    plain = dataset([Profile("a"), Profile("b")], tasks=2, points=2).drop_vars(
        "planned_trials", errors="ignore"
    )
    ds = plain.isel(params=range(3), tier=[0])
    cells = np.zeros(ds["counters"].shape)
    done = (status != int(Status.MISSING)).sum(axis=(3, 4))
    for name, values in (("trials", done), ("completed", done), ("correct", (status == 1).sum(axis=(3, 4)))):
        cells[..., COUNTERS.index(name)] = values
    found = ds.assign(counters=(ds["counters"].dims, cells), status=(TRIAL, status))
    ids = np.where(there, "x", "")
    coords = {"base_trials": (TRIAL[:3], base), "in_tier": (("tier", "task", "params"), there[np.newaxis])}
    return found.assign_coords(coords | {"cell_id": (("task", "params"), ids)})


def by_hand(ds):
    cells, base = ds["counters"], ds["base_trials"]
    trials = cells.sel(counter="trials")
    share = base.where(trials > 0, 0)
    rates = (share * (cells.sel(counter="correct") / trials).fillna(0)).sum("params") / share.sum("params")
    return rates.mean("task").values


@given(sweeps())
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_estimand__is_that_of_board_table_and_comparison(ds):
    ds = ds.assign_coords(base_trials=ds["base_trials"].isel(model=[0, 0]))
    ds["status"] = ds["status"].where(ds["status"].max("model") < int(Status.MISSING), int(Status.MISSING))
    ds = made(ds["status"].values.astype(np.uint8), ds["base_trials"].values, ds["in_tier"].values[0])
    expected = by_hand(ds)

    board = {row.model_name: row.accuracy.value for row in leaderboard(ds, draws=2).rows}
    table = aggregate(ds, by="model", mode="E_P")["point"].values
    pair = compare_evaluations(ds, [0, 1])[0].overall

    assert table == pytest.approx(expected)
    assert [board[name] for name in "ab"] == pytest.approx(expected)
    assert (pair.first_rate, pair.second_rate) == pytest.approx(expected)
    assert pair.difference.value == pytest.approx(expected[0] - expected[1])


@given(st.lists(st.booleans(), min_size=18, max_size=18), st.integers(0, 5), st.integers(0, 99))
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_estimand__rests_on_the_same_points_on_board_table_and_metrics(asked, apart, seed):
    """Whoever was asked what, and with a point in no tier."""
    planned = np.array(asked).reshape(3, 2, 3)
    planned[:, :, 0] |= ~planned.any(axis=2)
    tiered = np.arange(6).reshape(2, 3) != apart
    tiered[:, 0] |= ~tiered.any(axis=1)
    right = np.random.default_rng(seed).random((3, 2, 3, MOST, 1)) < 0.6
    status = np.where(planned[..., None, None], right, int(Status.MISSING)).astype(np.uint8)
    pair = made(status[:2], MOST * planned[:2], tiered)
    ds = xr.concat([pair, made(status[1:], MOST * planned[1:], tiered).isel(model=[1])], "model")
    names = ("model", list("abc"))
    ids = (("task", "params"), np.full((2, 3), "x"))
    ds = ds.assign_coords(model_name=names, eval_id=names, in_tier=pair["in_tier"], cell_id=ids)
    ds["planned_trials"] = (("model", "task", "params"), MOST * planned)

    places = [COUNTERS.index(name) for name in ("tokens_sum", "trials")]
    ds["counters"].values[..., places[0]] = ds["counters"].values[..., places[1]] * [1, 2, 3]
    rows = {row.model_name: row for row in leaderboard(ds, draws=2).rows}
    board = {name: row.accuracy.value for name, row in rows.items()}
    found = aggregate(ds, by="model_name", mode="E_P")
    tiers = aggregate(ds, by=["model_name", "tier"])["per_trial"].isel(tier=0)
    table, tokens = found["point"], tiers.sel(counter="tokens_sum", model_name=list(rows))
    ended = [share.get("correct", np.nan) for share in outcome_shares(ds, range(3))]
    pass_1 = cube_outcome_metrics(ds, ["pass_at_k"], 1, by="model")["pass_at_k"].values.ravel()

    shown = [board.get(name, np.nan) for name in "abc"]
    assert table.sel(model_name=list("abc")).values == pytest.approx(shown, nan_ok=True)
    assert pass_1 == pytest.approx(shown, nan_ok=True)
    assert ended == pytest.approx(shown, nan_ok=True)
    assert [row.tokens_per_trial for row in rows.values()] == pytest.approx(tokens.values, nan_ok=True)


@given(st.lists(st.integers(0, 4), min_size=8, max_size=8), st.integers(0, 99))
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_estimand__a_question_counts_once_however_often_it_was_answered(times, seed):
    """Some questions have one answer and others up to five: on every page the mean is that of questions."""
    rng = np.random.default_rng(seed)
    asked = np.arange(5) < 1 + np.array(times)[:, np.newaxis]
    right = rng.random((2, 2, 3, 8, 5)) < rng.random((2, 2, 3, 8, 1))
    status = np.where(asked, right, int(Status.MISSING)).astype(np.uint8)
    ds = made(status, np.full((2, 2, 3), 8), np.ones((2, 3), bool))
    expected = ((right & asked).sum(axis=-1) / asked.sum(axis=-1)).mean(axis=(1, 2, 3))

    board = {row.model_name: row.accuracy.value for row in leaderboard(ds, draws=2).rows}
    pair = compare_evaluations(ds, [0, 1])[0].overall

    assert [board[name] for name in "ab"] == pytest.approx(expected)
    assert aggregate(ds, by="model", mode="E_P")["point"].values == pytest.approx(expected)
    assert cube_outcome_metrics(ds, ["pass_at_k"], 1, by="model")[
        "pass_at_k"
    ].values.ravel() == pytest.approx(expected)
    assert [share["correct"] for share in outcome_shares(ds, range(2))] == pytest.approx(expected)
    assert (pair.first_rate, pair.second_rate) == pytest.approx(expected)
    assert pair.trials == 12 * asked.sum() // 2


@given(sweeps(), st.permutations(range(3)), st.integers(1, 5))
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_estimand__stays_whatever_order_scale_or_neighbour(ds, order, times):
    other = ds.isel(model=[1, 0], task=[1, 0], params=list(order))
    other = other.assign_coords(base_trials=other["base_trials"] * times)

    before, after = (aggregate(one, by="model_name", mode="E_P") for one in (ds, other))
    alone = aggregate(ds.isel(model=[0]), by="model_name", mode="E_P")

    for name in ("point", "lower", "upper"):
        assert after[name].sel(model_name=["a", "b"]).values == pytest.approx(before[name].values)
    assert alone["point"].item() == pytest.approx(before["point"].values[0], rel=1e-12)


@given(sweeps(), st.integers(2, 6))
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_compare__order_and_scale_of_sides_decide_nothing(ds, times):
    turned = ds.isel(model=[1, 0])
    turned = turned.assign_coords(base_trials=turned["base_trials"] * times)

    (one,), (other,) = (compare_evaluations(item, [0, 1]) for item in (ds, turned))

    assert other.overall.p == pytest.approx(one.overall.p)
    assert other.overall.difference.value == pytest.approx(-one.overall.difference.value)
    assert other.alike == one.alike
    assert ("differently" in one.weighing) == bool(one.alike)


def test_leaderboard__lost_trials_are_bounded_and_half_a_point_is_not_ranked():
    status = np.full((2, 2, 3, MOST, 1), int(Status.MISSING), np.uint8)
    there = np.array([[True, False, False]] * 2)
    status[:, :, 0] = 1
    ds = made(status, np.broadcast_to(MOST * there, (2, 2, 3)), there)
    cells = ds["counters"].values
    for model, kept in ((0, 18), (1, 10)):
        cells[model, 0, 0, COUNTERS.index("transport")] = MOST - kept
        for name in ("trials", "completed", "correct"):
            cells[model, 0, 0, COUNTERS.index(name)] = kept

    board = leaderboard(ds, draws=2)

    first, second = board.rows
    assert (first.rank, second.rank, second.thin) == (1, None, 1)
    assert first.bounds == pytest.approx(((18 / 24 + 1) / 2, 1.0))
    assert first.accuracy.value == 1.0
    assert "a 87.5–100.0%" in " ".join(board.notes)
    assert "b (1)" in " ".join(board.notes)
