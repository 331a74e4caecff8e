import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.arguments import column
from evalcube.stages.analyze.formulas.reasonscore import (
    COUNTERS,
    combine_tasks,
    correct_guesses,
    mean_score,
    per_token,
    point_score,
    score_per_token,
    task_score,
    tier_score,
    tier_tokens,
)
from tests.cases import with_cases

GOLDEN = json.loads((Path(__file__).parents[3] / "data" / "reasonscore_rows.json").read_text())


def counts(n=0, correct=0, truncated=0, guess=0.0, tokens=0.0, completed=None):
    values = dict.fromkeys(COUNTERS, 0.0) | {
        "trials": n,
        "completed": n - truncated if completed is None else completed,
        "correct": correct,
        "truncated": truncated,
        "guess_sum": guess,
        "tokens_sum": tokens,
    }
    return np.array([values[label] for label in COUNTERS], dtype=float)


@st.composite
def cells(draw):
    n = draw(st.integers(1, 200))
    truncated = draw(st.integers(0, n))
    correct = draw(st.integers(0, n - truncated))
    guess = draw(st.sampled_from([0.0, 0.25, 0.5])) * (n - truncated)
    return counts(n, correct, truncated, guess, tokens=float(draw(st.integers(1, 10**6))))


def test_point_score__real_stored_point():
    cell = counts(896, 337, 8, 74)

    assert point_score(cell) == 0.3239267848444002 + 0.03206244563179326 - 8 / 896


def test_point_score__worked_example_with_all_trials():
    cell = counts(128, 120, 2, 1.5)

    successes, trials = correct_guesses(cell, basis="all")

    assert (successes, trials) == (118.5, 126.5)
    assert point_score(cell, basis="all") == pytest.approx(0.923886158 + 0.043723634 - 2 / 128, abs=1e-9)
    assert correct_guesses(cell)[1] == 124.5


def test_task_score__worked_example():
    task = counts(640, 520.4 + 25.2, 12, 25.2)

    assert task_score(task, basis="all") == pytest.approx(0.8540, abs=5e-5)


def test_task_score__three_points_pooled():
    points = [counts(128, 120, 0, 1.5), counts(64, 50, 0, 1.8), counts(32, 18, 0, 1.2)]

    score = task_score(np.sum(points, axis=0))

    assert score == pytest.approx(0.830211658 + 0.048905726, abs=1e-9)


def test_task_score__clips_after_pooling_and_not_before():
    below, above = counts(100, 10, 0, 50), counts(100, 100, 0, 50)

    pooled = task_score(below + above)

    assert pooled == pytest.approx(point_score(counts(200, 110, 0, 100)))
    assert pooled < task_score(above)


def test_task_score__clamped_per_task():
    assert task_score(counts(100, 0, 90)) == 0.01
    assert task_score(counts(100, 0, 0, 50)) > 0.01


@with_cases("tasks", [1, 2, 3, 7, 12])
def test_combine_tasks__tasks_that_are_alike_have_exactly_their_score(tasks):
    for score in (0.01, 0.3, 0.99, 1.0):
        assert float(combine_tasks([score] * tasks).score) == 1000.0 * score


def test_task_score__all_truncated_is_the_floor_and_nothing_is_undefined():
    assert task_score(counts(50, 0, 50)) == 0.01
    assert math.isnan(point_score(counts(50, 0, 50)))
    assert math.isnan(task_score(counts()))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([0.95] * 11 + [0.05], 743), ([0.95] * 11 + [0.01], 650), ([0.85, 0.72, 0.12], 418.8)],
)
def test_combine_tasks__geometric_means(scores, expected):
    assert combine_tasks(scores).score == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: f"{row['model']}-{row['tier']}")
def test_combine_tasks__published_rows(row):
    cells = [re.fullmatch(r"\.\d+-(\.\d+)(?:\[(\.\d+)\])?", cell) for cell in row["cells"]]

    tasks = [max(0.01, float(cell[1]) - float(cell[2] or 0)) for cell in cells]

    assert combine_tasks(tasks).score == pytest.approx(row["recomputed"], abs=0.6)
    assert combine_tasks(tasks).score == pytest.approx(row["published"], abs=5)


def test_tier_score__missing_task_is_flagged_and_left_out():
    tier = tier_score([counts(10, 5), counts(), counts(10, 5)])

    assert (tier.tasks_present, tier.tasks_expected, bool(tier.incomplete)) == (2, 3, True)
    assert tier.score == pytest.approx(tier_score([counts(10, 5)]).score)


def test_tier_score__task_outside_the_tier_is_neither_expected_nor_used():
    tier = tier_score([counts(10, 5), counts(10, 0)], expected=[True, False])

    assert (tier.tasks_present, tier.tasks_expected, bool(tier.incomplete)) == (1, 1, False)
    assert tier.score == pytest.approx(tier_score([counts(10, 5)]).score)


def test_tier_score__without_trials_is_undefined():
    tier = tier_score([counts(), counts()])

    assert math.isnan(tier.score)
    assert tier.incomplete


@given(st.integers(1, 10**6), st.integers(1, 5))
def test_tier_score__perfect_model_has_a_thousand(n, tasks):
    assert tier_score([counts(n, n)] * tasks).score == pytest.approx(1000, abs=1e-9)


@given(st.lists(cells(), min_size=1, max_size=6))
def test_tier_score__bounds_and_basis(tasks):
    for basis in ("completed", "all"):
        assert 10 - 1e-9 <= tier_score(tasks, basis=basis).score <= 1000 + 1e-9


@given(cells())
def test_task_score__grows_with_correct_answers(cell):
    more = cell.copy()
    more[COUNTERS.index("correct")] = min(cell[1], cell[2] + 1)

    assert task_score(more) >= task_score(cell) - 1e-12


@given(st.lists(cells(), min_size=2, max_size=5))
def test_every_function__works_over_leading_axes(tasks):
    block = np.stack([tasks, tasks[::-1]])[:, np.newaxis]

    assert np.array_equal(point_score(block)[0, 0], [point_score(cell) for cell in tasks], equal_nan=True)
    assert tier_score(block).score.shape == (2, 1)
    assert tier_score(block).score[0, 0] == pytest.approx(tier_score(block).score[1, 0])
    assert score_per_token(block[np.newaxis]).shape == (1, 2)


def test_score_per_token__ratio_of_means():
    assert per_token([850, 720, 580], [1180, 1250, 1380]) == pytest.approx(0.564, abs=5e-4)
    assert mean_score([850, 720, 580]) == pytest.approx(716.67, abs=0.01)


def test_score_per_token__tokens_are_the_mean_over_tasks_and_never_clipped():
    tiers = np.array([[counts(30, 30, tokens=30), counts(10, 10, tokens=50), counts()]])

    assert tier_tokens(tiers) == pytest.approx([(1 + 5) / 2])
    assert score_per_token(tiers) == pytest.approx(1000 / 3)


def test_score_per_token__missing_tier_takes_part_in_neither_mean():
    tiers = np.array([[counts(10, 10, tokens=20)], [counts()]])

    assert score_per_token(tiers) == pytest.approx(1000 / 2)
    assert math.isnan(score_per_token(tiers[1:]))


def test_per_token__a_tier_without_score_gives_no_tokens_either():
    assert per_token([100.0, math.nan], [10.0, 90.0]) == 10


def test_per_token__undefined_without_tokens():
    assert math.isnan(per_token([100.0], [0.0]))


def test_column__labels_in_any_order():
    assert column([[1, 2], [3, 4]], "b", ["b", "a"]).tolist() == [1, 3]


def test_column__says_which_counter_is_absent():
    with pytest.raises(ValueError, match="'correct' is not"):
        column([1.0], "correct", ["trials"])
    with pytest.raises(ValueError, match=r"names 16 counters"):
        column([1.0, 2.0], "correct")


def test_adjusted__refuses_another_basis():
    with pytest.raises(ValueError, match="`basis` must be"):
        correct_guesses(counts(1), basis="some")
