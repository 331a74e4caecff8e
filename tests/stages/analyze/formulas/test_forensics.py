"""Life tables and curves against exact rational arithmetic and against what must hold of any data."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.budget import budget_curve
from evalcube.stages.analyze.formulas.forensics import (
    aalen_johansen,
    count_ends,
    kaplan_meier,
    life_table,
)
from evalcube.stages.analyze.formulas.intervals import wilson_bounds
from evalcube.stages.reply.status import Status

STATUS = [1, 1, 0, 1, 2, 0, 1, 2]
TOKENS = [100, 300, 300, 600, 1024, 700, 200, 1024]

tables = st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=8)


def exact(table):
    """Survival, incidences and their variances per bin as fractions, by the definitions; None: nobody at risk."""
    rows, survival, incidence, done = [], Fraction(1), [Fraction(0), Fraction(0)], []
    for place, (right, wrong, _) in enumerate(table):
        risk = sum(sum(row) for row in table[place:])
        if risk == 0:
            rows.append(None)
            continue
        done.append((risk, right + wrong, survival, (right, wrong), None))
        incidence = [f + survival * Fraction(d, risk) for f, d in zip(incidence, (right, wrong), strict=True)]
        survival *= Fraction(risk - right - wrong, risk)
        done[-1] = (*done[-1][:4], tuple(incidence))
        greenwood = sum((Fraction(d, n * (n - d)) for n, d, *_ in done if n > d), Fraction(0))
        rows.append((survival, survival**2 * greenwood, tuple(incidence), variances(done, incidence)))
    return rows


def variances(done, incidence):
    """Marubini and Valsecchi, each of the two causes."""
    result = []
    for cause, final in enumerate(incidence):
        total = Fraction(0)
        for n, d, before, events, then in done:
            gap, own = final - then[cause], events[cause]
            total += gap**2 * Fraction(d, n * (n - d)) if n > d else 0
            total += before**2 * Fraction(own * (n - own), n**3)
            total -= 2 * gap * before * Fraction(own, n**2)
        result.append(total)
    return tuple(result)


def log_log(value, variance, start):
    if value == start:
        return float(start), float(start)
    if value in (0, 1):
        return math.nan, math.nan
    width = 1.96 * math.sqrt(variance) / abs(float(value) * math.log(value))
    return float(value) ** math.exp(width), float(value) ** math.exp(-width)


def test_count_ends__bins_are_closed_on_the_right():
    ends = count_ends([1, 1, 0, 2, 2], [0, 256, 257, 512, 513])

    assert ends.tolist() == [[2, 0, 0], [0, 1, 1], [0, 0, 1]]


def test_count_ends__every_outcome():
    ends = count_ends([int(status) for status in Status], [1] * len(Status), width=1)

    assert ends.tolist() == [[1, 3, 1]]


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 3))
def test_count_ends__add_over_trials_and_keep_groups_apart(seed, width, groups):
    rng = np.random.default_rng(seed)
    status = rng.choice([int(s) for s in Status], size=(groups, 20))
    tokens = rng.integers(-1, 900, size=(groups, 20))

    whole = count_ends(status, tokens, width=width, bins=900)

    parts = [
        count_ends(status[:, cut], tokens[:, cut], width=width, bins=900)
        for cut in (slice(7), slice(7, None))
    ]
    np.testing.assert_array_equal(sum(parts), whole)
    for group in range(groups):
        np.testing.assert_array_equal(
            count_ends(status[group], tokens[group], width=width, bins=900), whole[group]
        )
    assert whole.sum() == ((status <= Status.REFUSED) & (tokens >= 0)).sum()


def test_count_ends__of_nothing():
    assert count_ends([], []).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "`width` must be at least 1, got 0"),
        ({"bins": 3}, "`bins` is 3, but the longest trial needs 4"),
        ({"tokens": [*TOKENS[1:], 2**31 - 1]}, "`width` = 256 makes 8,388,608 bins.* give a larger one"),
    ],
)
def test_count_ends__refuses(options, message):
    with pytest.raises(ValueError, match=message):
        count_ends(**{"status": STATUS, "tokens": TOKENS, **options})


def test_count_ends__refuses_arrays_of_another_shape():
    with pytest.raises(ValueError, match=r"`tokens` has shape \(2,\), `status` has \(1,\)"):
        count_ends([1], [1, 2])


def test_life_table__published_numbers():
    table = life_table(count_ends(STATUS, TOKENS))

    assert table.at_risk.tolist() == [8, 6, 4, 2]
    assert table.ends[:, 2].tolist() == [0, 0, 0, 2]
    assert table.hazard.value.round(4).T.tolist() == [[0.25, 0.1667, 0.25, 0], [0, 0.1667, 0.25, 0]]
    assert (table.hazard.lower <= table.hazard.value).all()
    assert (table.hazard.upper >= table.hazard.value).all()


def test_life_table__nobody_at_risk_has_no_hazard():
    table = life_table([[1, 0, 0], [0, 0, 0]])

    assert np.isnan(table.hazard.value[1]).all()


@pytest.mark.parametrize("shape", [(3,), (4, 2)])
def test_life_table__refuses_other_shapes(shape):
    with pytest.raises(ValueError, match="must be"):
        life_table(np.zeros(shape))


@given(tables)
def test_curves__equal_exact_arithmetic(table):
    survival, incidence = kaplan_meier(table), aalen_johansen(table)

    for place, row in enumerate(exact(table)):
        found = (survival.value[place], survival.lower[place], survival.upper[place])
        if row is None:
            assert np.isnan(found).all()
            assert np.isnan(incidence.value[place]).all()
            continue
        assert found[0] == pytest.approx(float(row[0]), abs=1e-12)
        assert found[1:] == pytest.approx(log_log(row[0], row[1], 1), abs=1e-6, nan_ok=True)
        for cause in (0, 1):
            value, variance = row[2][cause], row[3][cause]
            assert incidence.value[place, cause] == pytest.approx(float(value), abs=1e-12)
            if value == 0:
                ended = sum(one + other for one, other, _ in table[:place])
                alive = sum(map(sum, table[place:]))
                assert incidence.lower[place, cause] == 0
                assert incidence.upper[place, cause] == pytest.approx(1 - 0.025 ** (1 / (ended + alive)))
            elif value < 1:  # rounded, a curve at 1 may be just below it
                bounds = incidence.lower[place, cause], incidence.upper[place, cause]
                assert bounds == pytest.approx(log_log(value, variance, 0), abs=1e-6)


@given(tables)
def test_curves__survival_and_incidences_make_one(table):
    survival, incidence = kaplan_meier(table), aalen_johansen(table)
    there = ~np.isnan(survival.value)

    np.testing.assert_allclose((survival.value + incidence.value.sum(axis=-1))[there], 1, atol=1e-12)


def test_curves__without_truncation_they_are_shares_with_binomial_errors():
    rng = np.random.default_rng(2)
    tokens, status = rng.integers(1, 2000, size=500), rng.integers(0, 2, size=500)
    incidence = aalen_johansen(count_ends(status, tokens, width=1))
    share = ((tokens <= 1000) & (status == 1)).mean()
    width = 1.96 * math.sqrt(share * (1 - share) / 500) / abs(share * math.log(share))

    assert incidence.value[999, 0] == pytest.approx(share, rel=1e-12)
    assert incidence.lower[999, 0] == pytest.approx(share ** math.exp(width), rel=1e-9)


def test_curves__groups_are_their_own():
    tables = np.random.default_rng(1).integers(0, 5, size=(3, 2, 6, 3))

    for curve in (kaplan_meier, aalen_johansen):
        np.testing.assert_array_equal(curve(tables).upper[1, 1], curve(tables[1, 1]).upper)


def test_curves__another_level_gives_other_bounds():
    ends = count_ends(STATUS, TOKENS)

    assert (kaplan_meier(ends, confidence=0.8).lower[1:] > kaplan_meier(ends).lower[1:]).all()


def test_curves__intervals_cover():
    # Right answers at a rate of 1/600 and wrong ones at 1/900 a token, a limit of 1 500 tokens.
    rng = np.random.default_rng(3)
    times = rng.exponential([[[600.0]], [[900.0]]], size=(2, 400, 200))
    status = np.where(times.min(axis=0) > 1500, 2, np.where(times[0] < times[1], 1, 0))
    tokens = np.minimum(np.ceil(times.min(axis=0)), 1500).astype(int)
    incidence = aalen_johansen(count_ends(status, tokens, bins=6))
    truth = 0.6 * (1 - math.exp(-768 * (1 / 600 + 1 / 900)))

    covered = (incidence.lower[:, 2, 0] <= truth) & (truth <= incidence.upper[:, 2, 0])

    assert 0.92 < covered.mean() < 0.98


def test_budget_curve__bounds_what_cut_replies_would_have_said():
    curve = budget_curve([[[3, 1, 0], [2, 0, 2], [0, 0, 2]]])

    _, low, _ = wilson_bounds([3, 5, 5], [10, 10, 10])
    _, _, high = wilson_bounds([3, 7, 9], [10, 10, 10])
    assert curve.value[0].tolist() == [0.3, 0.5, 0.5]
    np.testing.assert_array_equal([curve.lower[0], curve.upper[0]], [low, high])
    assert budget_curve([[3, 1, 0], [2, 0, 2]], [0, 2]).upper[1] == wilson_bounds(5, 8)[2]
    assert np.isnan(budget_curve(np.zeros((1, 3), dtype=int)).value).all()


@pytest.mark.parametrize("bound", [256, 1024], ids=["many cut", "few cut"])
@pytest.mark.parametrize("tied", [False, True], ids=["right by chance", "long thoughts are wrong"])
def test_budget_curve__holds_the_accuracy_of_a_thinker_whose_law_is_known(bound, tied):
    """Thoughts of lognormal length under mixed limits; right with a chance that depends on the length or not."""
    rng, limits = np.random.default_rng(11), np.arange(1, 9) * 256

    def drawn(trials):
        length = np.ceil(rng.lognormal(6, 0.8, trials))
        chance = 1 / (1 + (length / 600) ** 2) if tied else np.full(trials, 0.6)
        return length, rng.random(trials) < chance

    length, right = drawn(400_000)
    truth = np.array([(right & (length <= limit)).mean() for limit in limits])
    held = []
    for _ in range(300):
        length, right = drawn(120)
        most = rng.choice([bound, 2 * bound], 120)
        status = np.where(length > most, Status.TRUNCATED, np.where(right, Status.CORRECT, Status.INCORRECT))
        ends = count_ends(status, np.minimum(length, most).astype(int), width=256, bins=len(limits))
        cut = [((status == Status.TRUNCATED) & (most == limit)).sum() for limit in limits]
        curve = budget_curve(ends, cut)
        held.append((curve.lower <= truth) & (truth <= curve.upper))

    assert np.mean(held, axis=0).min() >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 300)
    assert np.mean(held) >= 0.93
