import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.design import WEIGHING
from evalcube.stages.analyze.formulas.estimators import estimate
from evalcube.stages.analyze.labelled import counters
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.remarks import CLIPPED
from evalcube.stages.analyze.labelled.report_data import task_views
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import Profile, dataset


@pytest.fixture(scope="module")
def ds():
    return dataset(gaps=True)


@pytest.fixture(scope="module")
def board(ds):
    return leaderboard(ds, draws=200)


def row(board, name):
    return next(item for item in board.rows if item.model_name == name)


def test_leaderboard__sorts_by_score_and_ranks_from_one(board):
    complete = [item for item in board.rows if not item.incomplete]
    scores = [board.leading(item).value for item in complete]

    assert scores == sorted(scores, reverse=True)
    assert [item.rank for item in board.rows] == [1, 2, 3, None, None]
    assert board.rows[:3] == tuple(complete)


def test_leaderboard__equal_scores_by_name_and_undefined_last():
    ds = dataset([Profile("b"), Profile("c"), Profile("a")])
    ds["counters"][2] = ds["counters"][0].values
    ds["counters"][1] = 0.0

    board = leaderboard(ds, draws=20)

    assert [item.model_name for item in board.rows] == ["a", "b", "c"]
    assert [item.rank for item in board.rows] == [1, 2, None]
    assert math.isnan(board.rows[2].score.value)
    assert board.rows[2].incomplete


def test_leaderboard__flags_a_missing_task_and_missing_points(board):
    lacking_task, lacking_points = row(board, "smollm2-135m-instruct"), row(board, "heron-mini-3b")

    assert [(t.tasks_present, t.tasks_expected) for t in lacking_task.tiers] == [(3, 4)] * 3
    assert [t.incomplete for t in lacking_points.tiers] == [False, False, True]
    assert lacking_points.tiers[2].cells_present == lacking_points.tiers[2].cells_expected - 2
    assert board.incomplete == tuple(item for item in board.rows if item.incomplete)
    assert not row(board, "orchid-70b-instruct").incomplete
    assert re.findall(r"\d+", board.notes[0]) == ["100", "64"]
    assert "truncated" in board.notes[1]
    assert "Incomplete evaluations (*): 2 of 5" in board.notes[2]
    assert "are not counted: 704" in board.notes[3]
    assert "last retry: 3" in board.notes[4]


def test_leaderboard__numbers_of_one_row_by_hand(ds, board):
    index = ds["model_name"].values.tolist().index("orchid-8b-instruct")
    total = dict(zip(COUNTERS, ds["counters"].values[index].sum(axis=(0, 1)), strict=True))

    item = row(board, "orchid-8b-instruct")

    assert item.accuracy.value == pytest.approx(total["correct"] / total["trials"])
    assert item.accuracy.lower < item.accuracy.value < item.accuracy.upper
    tasks = ds["counters"].values[index].sum(axis=1)
    assert item.rate.value == pytest.approx(np.mean(estimate(tasks, mode="C_P")[0]))
    assert item.rate.lower < item.rate.value < item.rate.upper
    assert item.tokens_per_trial == pytest.approx(total["tokens_sum"] / total["trials"])
    assert item.truncated == total["truncated"] / total["trials"]
    assert item.invalid == pytest.approx(total["invalid"] / total["trials"])
    assert item.score.value == pytest.approx(np.mean([tier.score.value for tier in item.tiers]), rel=0.01)
    assert item.score_per_token.value == pytest.approx(
        item.score.value / np.mean([tier.tokens for tier in item.tiers])
    )
    assert item.score.lower <= item.score.value <= item.score.upper
    assert item.cost == pytest.approx((total["prompt_tokens_sum"] / 3 + total["tokens_sum"]) * 0.1 / 1e6)
    assert item.cost_per_1000 == pytest.approx(1000 * item.cost / total["trials"])
    assert item.facets == {"family": "made up"}


def test_leaderboard__cost_counted_without_prices_and_unknown_without_both(ds):
    counted = ds.drop_vars(["price_prompt", "price_completion"]).copy(deep=True)
    counted["counters"][0, 0, 0, COUNTERS.index("cost_sum")] = 1.5

    board = leaderboard(counted, draws=10)

    assert row(board, "orchid-70b-instruct").cost == 1.5
    assert math.isnan(row(board, "orchid-8b-instruct").cost)


def test_leaderboard__undeclared_prices_are_no_cost_of_nothing(ds):
    prices = {f"price_{kind}": ds[f"price_{kind}"].copy(deep=True) for kind in ("prompt", "completion")}
    for values in prices.values():
        values[0] = 0.0

    item = row(leaderboard(ds.assign_coords(prices), draws=10), "orchid-70b-instruct")

    assert item.tokens_per_trial > 0
    assert math.isnan(item.cost)
    assert math.isnan(item.cost_per_1000)


def test_leaderboard__lazy_counters_give_the_same(ds, board):
    lazy = leaderboard(ds.chunk({"model": 1, "task": 2}), draws=200)

    assert lazy.to_dict() == board.to_dict()


def rounded(document):
    return json.loads(json.dumps(document), parse_float=lambda digits: round(float(digits), 9))


def test_leaderboard__order_of_dims_and_padding_do_not_matter(ds, board):
    turned = ds.transpose("counter", "params", "task", "tier", "model")
    wider = ds.pad(params=(0, 3), constant_values=0).assign_coords(
        in_tier=ds["in_tier"].pad(params=(0, 3), constant_values=False)
    )

    for other in (turned, wider):  # sums in another order differ by their last bits on some processors
        assert rounded(leaderboard(other, draws=200).to_dict()) == rounded(board.to_dict())


def test_leaderboard__adding_a_model_leaves_the_others_as_they_are(ds, board):
    alone = leaderboard(ds.isel(model=[1]), draws=200).rows[0]

    assert alone.score == row(board, alone.model_name).score
    assert alone.score_per_token == row(board, alone.model_name).score_per_token


@given(st.integers(0, 3), st.integers(2, 40))
@settings(max_examples=5, deadline=None)
def test_leaderboard__a_task_asked_more_often_leaves_tokens_where_they_were(place, times):
    ds = dataset(tasks=4)
    ds = ds.assign_coords(base_trials=ds["counters"].sel(counter="trials", drop=True).astype(int))
    grown = ds.copy(deep=True)
    grown["counters"][:, place] *= times

    before, after = (leaderboard(one, draws=20) for one in (ds, grown))

    for item in before.rows:
        other = row(after, item.model_name)
        assert other.tokens_per_trial == pytest.approx(item.tokens_per_trial)
        assert other.correct_per_1000_tokens.value == pytest.approx(item.correct_per_1000_tokens.value)
        assert other.score_per_token.value == pytest.approx(other.score.value / other.tokens_per_trial)


def test_leaderboard__point_in_two_tiers_counts_in_both():
    ds = dataset([Profile("a")], tasks=1)
    ds["in_tier"][:] = ds["in_tier"].values.any(axis=0) & True

    tiers = leaderboard(ds, draws=10, version="v1").rows[0].tiers

    assert len({tier.score.value for tier in tiers}) == 1


def test_leaderboard__says_what_the_dataset_lacks(ds):
    with pytest.raises(ValueError, match=r"lacks the coordinates \['tier', 'in_tier'\]"):
        leaderboard(ds.drop_vars(["tier", "in_tier"]))
    with pytest.raises(ValueError, match="no array `counters`"):
        leaderboard(ds.drop_vars("counters"))


def test_leaderboard__facets_that_are_no_object_are_ignored(ds):
    odd = ds.assign_coords(facets=("model", ["", "[1]", "{", '{"a": [1], "b": 2}', "null"]))

    facets = {item.model_name: item.facets for item in leaderboard(odd, draws=5).rows}

    assert sorted(map(str, facets.values())) == sorted(map(str, [{}, {}, {}, {"b": 2}, {}]))


def test_to_dict__is_stable_json_without_nan(board):
    data = board.to_dict()

    text = json.dumps(data, allow_nan=False)

    assert json.loads(text) == data
    assert (data["schema"], data["schema_version"]) == ("evalcube.leaderboard", 3)
    assert set(data["rows"][0]) >= {"rank", "model_name", "eval_id", "score", "tiers", "incomplete", "cost"}
    assert data["rows"][0]["score"].keys() == {"value", "lower", "upper"}


def test_to_dict__undefined_is_null():
    ds = dataset([Profile("a")])
    ds["counters"][:] = 0.0

    data = leaderboard(ds, draws=5).to_dict()

    assert data["rows"][0]["score"] == {"value": None, "lower": None, "upper": None}
    assert data["rows"][0]["rank"] is None


def test_leaderboard__second_version_scores_what_was_measured(ds):
    from evalcube.stages.analyze.formulas import reasonscore_v2

    board = leaderboard(ds, draws=50, version="v2", mode="C_P")

    grouped = counters.tier_counters(ds)
    expected = ds["in_tier"].values.any(axis=-1)
    scores = reasonscore_v2.tier_score(grouped, labels=list(COUNTERS), expected=expected).score
    names = ds["model_name"].values.tolist()
    for item in board.rows:
        assert [tier.score.value for tier in item.tiers] == scores[names.index(item.model_name)].tolist()
        assert item.score.lower <= item.score.value <= item.score.upper
    assert (board.version, board.to_dict()["version"], board.mode) == ("v2", "v2", "C_P")


def test_leaderboard__rank_intervals(board, ds):
    complete = board.rows[:3]
    assert all(item.rank_interval.lower <= item.rank <= item.rank_interval.upper for item in complete)
    assert max(item.rank_interval.upper for item in complete) <= 3
    assert all(math.isnan(item.rank_interval.value) for item in board.rows[3:])
    alone = leaderboard(ds.isel(model=[1]), draws=20).rows[0]
    assert (alone.rank_interval.lower, alone.rank_interval.upper) == (1, 1)


@pytest.mark.parametrize(
    "options", [{"version": "v3"}, {"mode": "X"}, {"draws": 0}, {"confidence": 1.0}, {"basis": "some"}]
)
def test_leaderboard__refuses_options(ds, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        leaderboard(ds, **{"draws": 5, **options})


def test_leaderboard__says_that_points_differ_in_trials():
    ds = dataset(tasks=2)
    even = leaderboard(ds, draws=5)
    ds["counters"][0, 0, 0] *= 2

    assert not even.uneven
    assert WEIGHING["tasks"] in leaderboard(ds, draws=5).notes[-1]


def test_unique_shares__are_unknown_until_prompts_were_compared():
    ds = dataset(tasks=2, trials=4)
    ds["counters"][..., COUNTERS.index("duplicates")] = 1
    flags = np.zeros((2, ds.sizes["params"], 4), np.uint8)
    marked = ds.assign(duplicate=(("task", "params", "trial"), flags.copy()))
    flags[0, 0, 2] = 255
    partly = ds.assign(duplicate=(("task", "params", "trial"), flags))

    assert np.isnan(counters.unique_shares(ds, "task")).all()
    known = counters.unique_shares(marked, "task")
    assert np.isfinite(known).all()
    assert (known < 1).all()
    assert np.isnan(counters.unique_shares(partly, "task")).tolist() == [True, False]
    assert np.isnan(leaderboard(partly, draws=5).rows[0].unique)


def test_accuracy__leaves_out_points_in_no_tier(ds):
    """A point without reference answers is measured, but never right: it says nothing of who is."""
    member = ds["in_tier"].copy()
    member[:, 0] = False
    open_ended = ds.assign_coords(in_tier=member)
    rest = ds.isel(task=slice(1, None))

    found = leaderboard(open_ended, draws=50)
    expected = leaderboard(rest, draws=50)
    (first, *others), *_ = task_views(open_ended, [0])

    assert {one.model_name: one.accuracy for one in found.rows} == {
        one.model_name: one.accuracy for one in expected.rows
    }
    assert math.isnan(first.accuracy.value)
    assert first.trials > 0
    assert others == task_views(rest, [0])[0]


def unequal(extra):
    """Two models of equal rates on an easy and a hard point; the first has `extra` times the trials on the hard one."""
    ds = dataset([Profile("a"), Profile("b")], tasks=2, points=2).assign_coords(
        base_trials=(("task", "params"), np.full((2, 3), 64))
    )
    cells = ds["counters"].values
    cells[...] = 0.0
    for slot, rate in ((0, 0.9375), (1, 0.25)):
        values = {"trials": 64.0, "completed": 64.0, "correct": 64.0 * rate, "tokens_sum": 6400.0}
        for label, value in values.items():
            cells[:, :, slot, COUNTERS.index(label)] = value
    cells[0, :, 1] *= extra
    ds["in_tier"][:] = [[[True, True, False]] * 2, [[False] * 3] * 2, [[False] * 3] * 2]
    return ds.isel(tier=[0])


@pytest.mark.parametrize("version", ["auto", "v1", "v2"])
@pytest.mark.parametrize("extra", [2, 16])
def test_leaderboard__trials_that_are_added_do_not_move_a_score(version, extra):
    even, uneven = (leaderboard(unequal(times), version=version, draws=400) for times in (1, extra))

    for before, after in zip(sorted(even.rows, key=str), sorted(uneven.rows, key=str), strict=True):
        assert after.accuracy.value == pytest.approx(before.accuracy.value)
        assert after.rate.value == pytest.approx(before.rate.value)
        slack = {"v2": 1e-9, "v1": 0.06, "auto": 0.02}[version]
        assert after.score.value == pytest.approx(before.score.value, rel=slack)
    assert (even.weighed, uneven.weighed) == ("", "base")
    assert WEIGHING["tasks"] in uneven.notes[-1]


def test_leaderboard__growth_of_all_points_alike_is_plain_sums():
    ds = unequal(1)
    ds["counters"][0] *= 3

    weighed, plain = (leaderboard(item, version="v1", draws=50) for item in (ds, ds.drop_vars("base_trials")))

    assert weighed.to_dict()["rows"] == plain.to_dict()["rows"]
    assert weighed.weighed == ""


@pytest.mark.parametrize("trials", [8, 32, 128, 480])
def test_leaderboard__what_leads_is_near_zero_for_a_model_that_is_never_right(trials):
    ds = dataset([Profile("a")], tasks=12, points=1, trials=trials)
    ds["counters"][..., COUNTERS.index("correct")] = 0.0
    ds["counters"][..., COUNTERS.index("guess_sum")] = 0.0

    board = leaderboard(ds, draws=500)
    first = leaderboard(ds, draws=20, version="v1").rows[0]

    lead = board.leading(board.rows[0])
    assert board.lead == ("score" if trials >= 100 else "rate")
    assert lead.value <= (11 if board.lead == "score" else 0)
    assert lead.lower < lead.upper
    assert first.guesser == pytest.approx(first.score.value, rel=0.25)


def test_leaderboard__answers_that_are_all_the_same_are_one_question():
    ds = dataset([Profile("a")], tasks=2, points=2, trials=64)
    shape = (1, 2, ds.sizes["params"], 16, 4)
    right = np.random.default_rng(3).random(shape[:4]) < 0.6
    status = np.where(
        np.arange(3)[:, np.newaxis, np.newaxis] < 2, np.repeat(right[..., np.newaxis], 4, -1), 255
    )
    cells = np.zeros(ds["counters"].shape)
    for label, count in (("trials", 64), ("completed", 64), ("correct", 4 * right.sum(axis=-1))):
        cells[..., COUNTERS.index(label)] = count
    cells[:, :, 2] = 0.0
    ds = ds.assign(
        counters=(ds["counters"].dims, cells),
        status=(("model", "task", "params", "trial", "repeat"), status.astype(np.uint8)),
    )

    by_question, by_answer = (leaderboard(item, draws=50) for item in (ds, ds.drop_vars("status")))

    widths = [board.rows[0].rate.upper - board.rows[0].rate.lower for board in (by_question, by_answer)]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.1)
    assert by_question.size == by_answer.size / 4


def partly(done, *, planned=True):
    """Three evaluations: one measured in full, one with a share of its trials, one whose last task has no trial."""
    ds = dataset([Profile("full"), Profile("part"), Profile("short")], tasks=3, trials=100)
    cells = ds["counters"].values
    trials, missing = COUNTERS.index("trials"), COUNTERS.index("missing")
    every = cells[1, ..., trials].copy()
    cells[1] *= done
    cells[1, ..., missing] = every - cells[1, ..., trials]
    cells[2, 2] = 0.0
    cells[2, 2, :, missing] = every[2] if planned else 0.0
    asked = cells[..., trials] + cells[..., missing]
    return ds.assign(planned_trials=(("model", "task", "params"), asked.astype(np.int32)))


def test_leaderboard__an_evaluation_with_three_of_a_hundred_trials_is_marked_and_named():
    board = leaderboard(partly(0.03), draws=20)

    part = row(board, "part")
    half = row(leaderboard(partly(0.6), draws=20), "part")
    assert (part.partial, part.incomplete, part.rank is None) == (True, False, True)
    assert (half.partial, half.incomplete, half.rank is None) == (True, False, False)
    assert f"part has {part.trials:,} of {part.planned:,}" in " ".join(board.notes)
    assert not row(board, "full").partial
    assert not row(leaderboard(partly(0.995), draws=20), "part").partial


def test_leaderboard__an_evaluation_without_a_trial_of_some_point_has_no_rank():
    board = leaderboard(partly(1.0), draws=20)

    assert [(item.model_name, item.rank is None) for item in board.rows][2] == ("short", True)
    assert max(item.rank_interval.upper for item in board.rows[:2]) <= 2


def test_leaderboard__points_that_nobody_asked_for_are_not_missing():
    ds = partly(1.0, planned=False)
    board = leaderboard(ds, draws=20)

    short = row(board, "short")
    assert (short.incomplete, short.rank, short.marked) == (False, None, True)
    assert short.others.startswith("lacks ")
    assert f"short {short.others}" in " ".join(board.notes)
    assert [item.rank for item in board.rows] == [1, 2, None]
    assert max(item.rank_interval.upper for item in board.rows[:2]) <= 2
    assert [tier.tasks_expected for tier in short.tiers] == [2] * 3
    gone = ds.assign(planned_trials=ds["planned_trials"].copy())
    gone["planned_trials"][2] = 0
    gone["counters"][2] = 0.0
    assert [item.model_name for item in leaderboard(gone, draws=20).rows if item.model_name == "short"] == []


def test_notes__call_evaluations_of_one_model_as_the_rows_do(board):
    first, second = board.rows[0], board.rows[1]
    cut = replace(second, model_name=first.model_name, sampler="warm", truncated=0.5)

    notes = replace(board, rows=(replace(first, truncated=0.0), cut)).notes

    assert any(note.startswith(f"{first.model_name} · warm: 50% truncated") for note in notes)


def test_notes__of_a_limit_that_no_evaluation_had_do_not_say_that_it_can_be_raised(board):
    cut = replace(board.rows[0], truncated=0.5, max_tokens=100)

    asked, clipped = (
        replace(board, rows=(cut,), selection=words).notes for words in ("", f"{CLIPPED} 100 tokens")
    )

    silent = replace(cut, truncated=1.0, tokens_per_trial=0.0)  # there is no room for any answer

    assert any("50% truncated" in note and "max_tokens 100: raise" in note for note in asked)
    assert any("50% truncated" in note and "raise" not in note for note in clipped)
    (note,) = (note for note in replace(board, rows=(silent,)).notes if "100% truncated" in note)
    assert "raise" not in note


def test_leaderboard__of_one_rate_the_more_accurate_stands_first():
    ds = dataset([Profile("a", ability=-20), Profile("b", ability=-20)], tasks=1, trials=40)
    place = list(ds["counter"].values).index
    trials = ds["counters"].isel(counter=place("trials")).copy()
    ds["counters"][{"counter": place("guess_sum")}] = 0.5 * trials
    ds["counters"][{"counter": place("correct")}] = 0
    # Less than guesses win: both have a C_P of 0.
    ds["counters"][{"counter": place("correct"), "model": 1}] = (trials.isel(model=1) > 0).astype(float)

    rows = leaderboard(ds, draws=20).rows

    assert [item.model_name for item in rows] == ["b", "a"]
    assert len({item.rate.value for item in rows}) == 1
