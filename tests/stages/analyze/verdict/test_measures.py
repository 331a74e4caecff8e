import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from evalcube.stages.analyze.verdict.agreement import (
    alphas,
    gold_agreement,
    gwet_ac2,
    judge_agreement,
    krippendorff_alpha,
    pearson,
    weighted_kappa,
)
from evalcube.stages.analyze.verdict.comparison import standardise
from evalcube.stages.analyze.verdict.composite import common, composite, describe, judge_layer, layer_bits
from evalcube.stages.analyze.verdict.measures import (
    Checkpoint,
    cumulative,
    gain_gap,
    saturation,
    split_holdout,
)
from tests.cases import with_cases
from tests.stages.analyze.verdict.omk import GOLDEN, number

score = st.one_of(st.just(math.nan), st.floats(1, 5))


@given(st.lists(score, min_size=3, max_size=3), st.lists(st.floats(0.1, 9), min_size=3, max_size=3))
def test_composite__weighted_mean_of_the_layers_present(values, weights):
    present = [
        (value, weight) for value, weight in zip(values, weights, strict=True) if not math.isnan(value)
    ]

    found = float(composite(values, weights))

    if present:
        assert found == pytest.approx(sum(v * w for v, w in present) / sum(w for _, w in present))
        assert min(v for v, _ in present) - 1e-9 <= found <= max(v for v, _ in present) + 1e-9
    else:
        assert math.isnan(found)
    assert int(layer_bits(values)) == sum(
        1 << place for place, value in enumerate(values) if not math.isnan(value)
    )


def test_composite__keeps_full_precision_and_missing_is_not_zero():
    assert float(composite([4.2, 4.0, 4.0])) == pytest.approx(12.2 / 3, abs=1e-15)
    assert math.isnan(composite([math.nan] * 3))
    assert math.isnan(composite([math.nan, 4.0, math.nan], [1, 0, 1]))


def test_describe__equal_numbers_of_different_layers_look_different():
    same = [composite([4.5, 4.0, 4.5]), composite([math.nan, math.nan, 13 / 3])]

    assert same[0] == pytest.approx(same[1])
    assert [describe(float(value), bits) for value, bits in zip(same, (7, 4), strict=True)] == [
        "4.33 (3/3)",
        "4.33 (judge only)",
    ]
    assert describe(math.nan, [0, 0]) == "missing"


def test_common__blanks_what_one_arm_lacks():
    one, other = common([[4.0, math.nan, 3.0]], [[math.nan, 4.0, 5.0]])

    assert np.isnan(one).tolist() == np.isnan(other).tolist() == [[True, True, False]]


@given(st.lists(st.sampled_from([0.0, -1.0, math.nan, 1.0, 4.0, 5.0]), min_size=1, max_size=6))
def test_judge_layer__mean_of_valid_readings(readings):
    valid = [value for value in readings if value > 0]

    found = float(judge_layer(readings))

    assert math.isnan(found) if not valid else found == pytest.approx(sum(valid) / len(valid))


def test_standardised__scales_layers_and_leaves_constant_ones():
    control, treatment = standardise(np.array([[1.0, 4.0], [3.0, 4.0]]), np.array([[2.0, 4.0], [4.0, 4.0]]))

    assert np.concatenate([control, treatment])[:, 0].std(ddof=1) == pytest.approx(1.0)
    assert (treatment - control)[:, 1].tolist() == [0.0, 0.0]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=9))
def test_weighted_kappa__is_that_of_all_pairs(pairs):
    a, b = np.array(pairs, dtype=float).T

    found = weighted_kappa(a, b)

    expected = ((a[:, np.newaxis] - b) ** 2).mean()
    assert found == pytest.approx(
        1 - ((a - b) ** 2).mean() / expected if expected else math.nan, abs=1e-12, nan_ok=True
    )


def test_weighted_kappa__of_very_many_ratings_takes_no_table_of_all_pairs():
    ratings = np.arange(300_000) % 5 + 1.0

    assert weighted_kappa(ratings, ratings) == 1.0


@with_cases("case", GOLDEN["krippendorff"])
def test_agreement__equals_that_of_omk(case):
    a, b, expected = case["input"]["coder_a"], case["input"]["coder_b"], case["expected"]

    found = (
        krippendorff_alpha(np.array([a, b], dtype=float).T.reshape(-1, 2)),
        weighted_kappa(a, b),
        pearson(a, b),
    )

    wanted = tuple(number(expected[name]) for name in ("alpha", "kappa", "pearson"))
    assert found == pytest.approx(wanted, abs=1e-12, nan_ok=True)


@with_cases("case", GOLDEN["judge_agreement"])
def test_judge_agreement__golden_at_full_precision(case):
    scores, expected = case["input"]["judge_scores"], case["expected"]

    found = judge_agreement(np.array(scores, dtype=float).T)

    if len(scores[0]) < 2:
        assert found is None
    else:
        assert found.pearson == pytest.approx(number(expected["pearson"]), abs=5.1e-4, nan_ok=True)
        assert found.mad == pytest.approx(expected["mad"], abs=5.1e-4)
        assert found.pairs == expected["pair_count"]


def test_gold_agreement__interval_close_to_another_generators():
    case = next(case for case in GOLDEN["agreement_ci"] if case["id"] == "ci_random5")
    a, b, expected = case["input"]["coder_a"], case["input"]["coder_b"], case["expected"]

    found = gold_agreement(a, b, draws=4000)

    assert (found.alpha, found.kappa, found.pearson) == pytest.approx(
        (expected["alpha"], expected["kappa"], expected["pearson"]), abs=5.1e-5
    )
    assert (found.low, found.high) == pytest.approx((expected["ci_low"], expected["ci_high"]), abs=0.02)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 4)), min_size=1), st.randoms())
def test_alphas__are_those_of_the_units_of_the_drawn_clusters(rated, random):
    both = np.array([unit[:2] for unit in rated], dtype=float)
    names, place = np.unique([unit[2] for unit in rated], return_inverse=True)
    drawn = np.array([random.choices(range(len(names)), k=len(names)) for _ in range(5)])

    found = alphas(both, drawn, place)

    units = ([unit for cluster in row for unit in np.flatnonzero(place == cluster)] for row in drawn)
    assert found == pytest.approx([krippendorff_alpha(both[chosen]) for chosen in units], nan_ok=True)


def test_krippendorff_alpha__several_coders_with_gaps():
    """Interval alpha of the worked example of Krippendorff (2011), section D: .849."""
    gap = math.nan
    coders = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]

    assert krippendorff_alpha(np.array(coders).T) == pytest.approx(0.849, abs=5e-4)


def test_judge_agreement__a_judge_that_never_answers_is_left_out():
    readings = np.array([[4, 4, 0], [2, 3, 0], [5, 4, math.nan], [3, 0, 0]], dtype=float)

    found = judge_agreement(readings)

    assert (found.pairs, found.units) == (1, 3)
    assert judge_agreement(readings[:, :1]) is None
    assert judge_agreement(np.zeros((0, 2))) is None


def test_saturation__needs_a_window_of_small_changes_in_a_row():
    widths = [1.0, 0.5, 0.49, 0.48, 0.3, 0.295, 0.29, 0.285]
    points = [Checkpoint(10 * (place + 1), 4.0, width) for place, width in enumerate(widths)]

    found = saturation(points)

    assert (found.saturated, found.at, found.confidence) == (True, 80, "high")
    assert [change <= 0.05 for _, change in found.trace] == [False, True, True, False, True, True, True]
    assert (saturation(points[:5]).saturated, saturation(points[:5]).confidence) == (False, "high")
    assert saturation(points[:3]).trace == ()


def test_cumulative__width_is_students_t():
    points = cumulative([[math.nan], [4.0, 5.0], [3.0, math.nan]])

    assert [point.samples for point in points] == [2, 3]
    assert points[1].width == pytest.approx(2 * 4.302653 * 1.0 / math.sqrt(3), rel=1e-6)


def test_gain_gap__needs_three_pairs_on_either_side():
    split = split_holdout([str(place) for place in range(12)], 0.25)
    gains = np.where(np.isin(np.arange(12), split.holdout), 0.0, 1.0)

    assert gain_gap(gains, split).gap.estimate == pytest.approx(1.0)
    gains[split.holdout[0]] = math.nan
    assert gain_gap(gains, split) is None


def test_gain_gap__is_students_test_of_two_samples():
    rng = np.random.default_rng(2)
    gains, split = rng.normal(0.2, 0.5, 24), split_holdout([f"{place:02}" for place in range(24)], 0.3)
    parts = gains[list(split.train)], gains[list(split.holdout)]

    found = gain_gap(gains, split)

    known = ttest_ind(*parts)
    assert found.gap.p_value == pytest.approx(known.pvalue)
    assert (found.gap.low, found.gap.high) == pytest.approx(tuple(known.confidence_interval(0.9)))


def test_gain_gap__errs_in_5_percent_and_finds_a_gain_that_is_on_the_others_only():
    rng, called = np.random.default_rng(4), {0.0: 0, 0.5: 0}
    split = split_holdout([f"{place:02}" for place in range(60)], 0.3)
    for lost in called:
        for _ in range(400):
            gains = rng.choice([-0.5, 0.0, 0.4, 0.8], 60) + 0.2
            gains[list(split.holdout)] -= lost
            called[lost] += gain_gap(gains, split).gap.positive

    assert called[0.0] <= 400 * 0.075
    assert called[0.5] >= 400 * 0.9


def test_gain_gap__says_which_gap_it_finds_in_four_of_five_cases():
    rng, split = np.random.default_rng(5), split_holdout([f"{place:02}" for place in range(24)], 0.3)
    lost = gain_gap(np.tile([-0.5, 0.5], 12), split).detectable

    called = 0
    for _ in range(400):
        gains = rng.normal(0.0, 0.51, 24)
        gains[list(split.holdout)] -= lost
        called += gain_gap(gains, split).gap.positive

    assert called == pytest.approx(400 * 0.8, abs=28)


@pytest.mark.parametrize(
    ("ratings", "expected"),
    [
        ([[5, 4], [4, 4], [5, 5], [3, 5], [4, 5], [5, 5]], 0.7193),
        (
            [
                [1, 1, None, 1],
                [2, 2, 3, 2],
                [3, 3, 3, 3],
                [3, 3, 3, 3],
                [2, 2, 2, 2],
                [1, 2, 3, 4],
                [4, 4, 4, 4],
                [1, 1, 2, 1],
                [2, 2, 2, 2],
                [None, 5, 5, 5],
                [None, None, 1, 1],
                [None, None, 3, None],
            ],
            0.85874,
        ),
    ],
)
def test_gwet_ac2__equals_that_of_irrcac(ratings, expected):
    """Linear weights over the categories 1 to 5, by irrCAC 0.4.4."""
    assert gwet_ac2(np.array(ratings, dtype=float)) == pytest.approx(expected, abs=5e-5)


def test_gwet_ac2__survives_range_restriction_and_sees_guessing():
    rng = np.random.default_rng(0)
    near = np.full((40, 2), 5.0)
    near[0, 0] = near[1, 1] = 4.0
    guessed = rng.integers(1, 6, (4000, 2)).astype(float)
    opposed = np.tile([[5.0, 1.0], [1.0, 5.0]], (20, 1))

    assert pearson(*near.T) == pytest.approx(-0.026, abs=1e-3)
    assert gwet_ac2(near) > 0.98
    assert gwet_ac2(guessed) == pytest.approx(0.0, abs=0.03)
    assert gwet_ac2(opposed) < -0.5
    assert math.isnan(gwet_ac2([[4.0, math.nan]]))


@given(st.lists(st.tuples(st.floats(1, 5), st.floats(1, 5)), min_size=1, max_size=12))
def test_gwet_ac2__is_at_most_1_and_blind_to_the_names_of_judges(pairs):
    ratings = np.array(pairs)

    found = gwet_ac2(ratings)

    assert found <= 1 + 1e-12
    assert found == pytest.approx(gwet_ac2(ratings[:, ::-1]))
    assert gwet_ac2(np.stack([ratings[:, 0]] * 2, axis=1)) == pytest.approx(1.0)
