import numpy as np
import pytest

from evalcube.stages.analyze.formulas.clustering import (
    cluster_effect,
    cluster_moments,
    design_effect,
    unit_effect,
    units_of,
)
from evalcube.stages.analyze.formulas.compare.paired import paired_difference
from evalcube.stages.analyze.formulas.stratified import exact_estimate
from evalcube.stages.reply.status import COUNTERS, Status


def outcomes(alike, seed=0, questions=32, repeats=4, rate=0.5):
    """Shape (6 points, question, repeat); with chance `alike` the answers to a question are the same."""
    rng = np.random.default_rng(seed)
    same = rng.random((6, questions, 1)) < alike
    right = np.where(same, rng.random((6, questions, 1)), rng.random((6, questions, repeats))) < rate
    return right.astype(np.uint8)


def test_cluster_effect__from_one_to_the_number_of_repeats():
    effects = [float(cluster_effect(cluster_moments(outcomes(alike)))) for alike in (0.0, 0.5, 1.0)]

    assert 1.0 <= effects[0] < 1.3
    assert 2.0 < effects[1] < 3.2
    assert effects[2] == 4.0


def test_cluster_moments__add_over_parts_of_the_questions_and_leave_out_what_was_not_answered():
    status = outcomes(0.5)
    status[:, 5] = Status.MISSING
    status[:, 6, 1:] = Status.TRANSPORT
    status[0, 7] = Status.TRUNCATED

    parts = cluster_moments(status[:, :10]) + cluster_moments(status[:, 10:])

    assert (parts == cluster_moments(status)).all()
    assert (parts[:, 2] == 31).all()
    assert (parts[:, 1] == 31 * 4 - 3).all()


def test_exact_estimate__by_question_covers_where_by_answer_does_not():
    held = []
    for seed in range(200):
        status = outcomes(1.0, seed)
        cells = np.zeros(len(COUNTERS))
        for name, value in (("trials", status.size), ("completed", status.size), ("correct", status.sum())):
            cells[COUNTERS.index(name)] = value
        effect = float(cluster_effect(cluster_moments(status)))
        bounds = [exact_estimate(cells, effect=worth)[1:] for worth in (1.0, effect)]
        held.append([lower <= 0.5 <= upper for lower, upper in bounds])

    by_answer, by_question = np.mean(held, axis=0)

    assert by_question >= 0.92
    assert by_answer < 0.8


def test_unit_effect__one_unit_says_nothing_and_own_units_are_independent():
    right = np.random.default_rng(0).integers(0, 2, 400).astype(float)
    cells, own = np.zeros(400, np.int64), np.arange(400)

    one = unit_effect(right, right, np.ones(400), np.ones(1), cells, cells=cells)
    each = unit_effect(right, right, np.ones(400), np.ones(1), own, cells=cells)

    assert one == 400
    assert 1 <= each < 1.05


@pytest.mark.parametrize("guess", [0.0, 0.25])
def test_unit_effect__intervals_cover_and_equals_are_told_apart_seldom(guess):
    rng = np.random.default_rng([23, 8])
    inside, alarms = [], []
    for number in range(300):
        units = np.repeat(np.arange(number % 40 + 10), rng.integers(2, 30, number % 40 + 10))
        rates = rng.beta(1.2, 0.8, units.max() + 1)[units]
        right = (rng.random((2, len(units))) < guess + (1 - guess) * rates).astype(float)
        ones, cells = np.ones(len(units)), np.zeros(len(units), np.int64)
        effect = unit_effect(right[0], right[0], ones, np.ones(1), units, cells=cells)
        counts = [len(units), len(units), right[0].sum(), 0, guess * len(units)]
        _, lower, upper = exact_estimate(
            counts, labels=["trials", "completed", "correct", "truncated", "guess_sum"], effect=effect
        )
        inside.append(lower <= 0.6 <= upper)
        rates = rng.beta(1.2, 0.8, (2, units.max() + 1))[:, units]
        d = np.subtract(*(rng.random((2, len(units))) < guess + (1 - guess) * rates).astype(float))
        effect = unit_effect(d, d**2, ones, np.ones(1), units, cells=cells, prior=0.0)
        parts = [np.array([part.sum() / effect]) for part in (d > 0, d < 0, ones)]
        _, low, high = paired_difference(*parts)
        alarms.append(not low <= 0 <= high)

    assert np.mean(inside) >= 0.93
    assert np.mean(alarms) <= 0.08


def test_units_of__clusters_of_a_task_lie_in_any_of_its_points():
    clusters = np.array([[5, 0], [5, 7], [5, 5]])

    units, tasks = units_of(clusters, np.array([0, 0, 1]))

    assert units[0, 0] == units[1, 0] != units[2, 0] == units[2, 1]
    assert len(np.unique(units)) == 4
    assert tasks[units].tolist() == [[0, 0], [0, 0], [1, 1]]


def drawn(alike, seed=0, asked=4):
    rng = np.random.default_rng(seed)
    shape = (2, 20, 60, asked)
    same = rng.random((*shape[:-1], 1)) < alike
    right = np.where(same, rng.random((*shape[:-1], 1)), rng.random(shape)) < 0.6
    b, c = ((right[i] & ~right[1 - i]).sum(axis=-1) for i in (0, 1))
    return b, c, np.full(b.shape, asked)


def test_design_effect__is_1_for_independent_trials_and_their_number_for_copies():
    assert design_effect(*drawn(0.0)) == pytest.approx(1, abs=0.15)
    assert design_effect(*drawn(1.0)) == 4
    assert 1.5 < design_effect(*drawn(0.7)) < 3.8
    b, c, n = drawn(0.0, asked=1)
    assert design_effect(b, c, n) == 1.0
    assert design_effect([[0, 0]], [[0, 0]], [[3, 2]]) == 3.0  # nothing differs, so nothing is known
    assert design_effect([[1]], [[0]], [[3]]) == 3.0


def test_design_effect__copies_of_answers_tell_nothing_new():
    b, c, n = drawn(0.5, asked=1)
    copied = [3 * part for part in (b, c, n)]
    effect = design_effect(*copied)

    once = paired_difference(*(part.sum(axis=-1) for part in (b, c, n)))
    again = paired_difference(*(part.sum(axis=-1) / effect for part in copied))

    assert np.allclose(once, again, atol=1e-3)
