"""Where further trials help most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.allocation import allocate
from evalcube.stages.reply.status import COUNTERS


def counters(trials, correct, *, truncated=0, guess=0.0):
    trials, correct = np.broadcast_arrays(np.asarray(trials, float), np.asarray(correct, float))
    values = np.zeros((*trials.shape, len(COUNTERS)))
    columns = {"trials": trials, "completed": trials - truncated, "correct": correct, "guess_sum": guess}
    for name, column in columns.items():
        values[..., COUNTERS.index(name)] = column
    return values


def spend(correct, *, planned=32, budget=1000.0, cost=1.0, purpose="intervals", most=10_000, tiers=None):
    correct = np.asarray(correct)
    planned = np.broadcast_to(planned, correct.shape)
    return allocate(
        counters(planned, correct),
        planned,
        np.ones((1, *correct.shape[1:]), bool) if tiers is None else tiers,
        budget=budget,
        cost=np.broadcast_to(cost, correct.shape),
        purpose=purpose,
        most=np.broadcast_to(most, correct.shape),
    )


def test_allocate__narrows_where_the_outcome_is_open():
    trials = spend([[[32, 16, 32]]])

    assert trials[0, 0, 1] - 32 > 1.5 * (trials[0, 0, [0, 2]] - 32).sum()


def test_allocate__is_neymans_allocation_for_equal_costs():
    # rates one half and 1/65, drawn towards one half by two trials: n is as sqrt(p(1 - p))
    trials = spend([[[32, 1]]], planned=64, budget=20_000, most=10**6)[0, 0]

    p = np.array([33.0, 2.0]) / 66
    assert trials[0] / trials[1] == pytest.approx(np.sqrt(p[0] * (1 - p[0]) / p[1] / (1 - p[1])), rel=1e-3)


def test_allocate__prefers_what_is_cheap():
    cheap, dear = spend([[[16, 16]]], cost=np.array([1.0, 9.0]))[0, 0]

    assert (cheap - 32) > 3 * (dear - 32)


def test_allocate__ranking_spends_on_models_that_are_close():
    trials = spend([[[20]], [[64]], [[66]], [[120]]], planned=128, purpose="ranking")

    added = trials[:, 0, 0] - 128
    assert min(added[1], added[2]) > 3 * max(added[0], added[3])


def test_allocate__equal_tasks_count_equally_however_many_points_they_have():
    present = np.array([[True, True, True, True], [True, False, False, False]])
    planned = np.where(present, 32, 0)[None]
    trials = spend(planned / 2, planned=planned, budget=4000)[0]

    assert trials[~present].sum() == 0
    assert trials[1, 0] == pytest.approx(4 * trials[0, 0], rel=0.02)


@given(st.data())
def test_allocate__keeps_to_the_budget_the_room_and_what_is_there(data):
    shape = (3, 2, 4)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    planned = rng.integers(0, 40, shape)
    correct = rng.integers(0, planned + 1)
    cost, most = rng.uniform(0.1, 50, shape), rng.integers(1, 100, shape)
    budget = data.draw(st.floats(0, 10_000))
    purpose = data.draw(st.sampled_from(["ranking", "intervals"]))

    trials = spend(correct, planned=planned, budget=budget, cost=cost, purpose=purpose, most=most)

    assert (trials >= planned).all()
    assert (trials <= np.maximum(planned, most)).all()
    assert (trials[planned == 0] == 0).all()
    assert ((trials - planned) * cost).sum() <= budget * (1 + 1e-9)


def test_allocate__cells_that_are_truncated_or_guessed_throughout_are_no_trouble():
    values = counters(
        [[[32, 32, 0]]], [[[0, 16, 0]]], truncated=np.array([32, 0, 0]), guess=np.array([0, 32, 0])
    )

    trials = allocate(
        values,
        np.array([[[32, 32, 0]]]),
        np.ones((1, 1, 3), bool),
        budget=100,
        cost=np.ones((1, 1, 3)),
        purpose="ranking",
        most=np.full((1, 1, 3), 500),
    )

    assert trials.tolist() == [[[32, 32, 0]]]  # one model has no rank to settle


def test_allocate__a_point_that_weighs_little_gets_little():
    cells = counters(np.array([[[16, 16]]]), np.full((1, 1, 2), 32))
    options = {
        "budget": 10_000,
        "cost": np.ones((1, 1, 2)),
        "purpose": "intervals",
        "most": np.full((1, 1, 2), 10**6),
    }

    trials = allocate(
        cells, np.full((1, 1, 2), 32), np.ones((1, 1, 2), bool), weights=np.array([[128, 32]]), **options
    )[0, 0]

    assert trials[0] / trials[1] == pytest.approx(4, rel=0.01)
