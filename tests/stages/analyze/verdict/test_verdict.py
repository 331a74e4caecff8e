import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.verdict import verdict
from tests.cases import with_cases
from tests.stages.analyze.verdict.omk import GOLDEN, scores_of
from tests.stages.analyze.verdict.variants import UNITS, ask, noisy


def test_verdict__progress():
    found = ask(noisy(4.0, 4.5))

    assert (found.verdict, found.branch, found.exit_code) == ("PROGRESS", "positive_clean", 0)
    assert found.representative == ("base", "t1")
    assert found.badges.significant == "yes"
    pair = found.pairs[0]
    assert pair.composite.estimate == pytest.approx(0.5, abs=0.1)
    assert set(pair.layers) == set(pair.simultaneous) == {"fact", "behavior", "judge"}
    assert pair.joint.p_value < 0.01
    assert pair.sensitivity.same_result == 1.0
    assert pair.standardised.positive


@pytest.mark.parametrize("options", [{}, {"method": "anytime"}, {"units": 10}])
def test_verdict__copies_of_a_unit_in_one_cluster_say_no_more_than_it(options):
    """Shares, a missing layer and all that rests on trials: what is drawn, and what it weighs, is the same."""
    units = options.pop("units", 24)
    layers = noisy(4.0, 4.3, 3.9, units=units)
    layers[1, 3, 2] = layers[0, 5] = np.nan
    shares = np.linspace(1, 2, units)
    options = options | {"draws": 500, "holdout_ratio": 0.3, "shares": shares}
    copies = {"shares": np.repeat(shares, 3) / 3, "clusters": np.repeat(np.arange(units) + 7, 3)}
    names, variants = [f"u{place:03}" for place in range(3 * units)], ["base", "t1", "t2"]

    one = verdict(layers, variants, names[:units], **options)
    three = verdict(layers.repeat(3, axis=1), variants, names, **options | copies)

    assert (three.verdict, three.branch, three.next_step) == (
        one.verdict,
        one.branch,
        one.next_step.replace("pairs", "clusters"),
    )
    for alone, drawn in zip(one.pairs, three.pairs, strict=True):
        assert drawn.complete_pairs == 3 * alone.complete_pairs
        assert drawn.composite.clusters == alone.composite.pairs
        for name in ("composite", "layers", "simultaneous", "missing"):
            assert bounds_of(getattr(drawn, name)) == pytest.approx(bounds_of(getattr(alone, name))), name
        assert drawn.joint.p_value == pytest.approx(alone.joint.p_value)
        assert drawn.sensitivity == alone.sensitivity
        assert drawn.reach.pairs == pytest.approx(alone.reach.pairs, abs=1)
        assert bounds_of(drawn.holdout.gap) == pytest.approx(bounds_of(alone.holdout.gap))


def bounds_of(found):
    """Numbers of an interval, of several, or of those in case of missing scores."""
    if hasattr(found, "worst"):
        return [*bounds_of(found.if_failed), *bounds_of(found.worst)]
    several = found.values() if isinstance(found, dict) else [found]
    return [part for one in several for part in (one.estimate, one.low, one.high, one.p_value)]


@pytest.mark.parametrize("clusters", [[1.5] * 24, [1] * 23, [-1] * 24])
def test_verdict__refuses_clusters_that_are_no_numbers_of_them(clusters):
    with pytest.raises(ValueError, match="`clusters` must be 24"):
        ask(noisy(4.0, 4.5), clusters=clusters)


def test_verdict__gold_of_units_in_clusters_is_as_sure_as_these_are_many():
    layers = noisy(4.0, 4.5, spread=1.0)
    gold = dict(zip(UNITS, np.clip(layers[0, :, 2] + np.repeat([-1, 1, 0, 1], 6), 1, 5), strict=True))

    alone, drawn = (
        ask(layers, gold=gold, clusters=given).gold for given in (None, np.repeat([1, 2, 3, 4], 6))
    )

    assert (alone.alpha, alone.kappa, alone.units) == (drawn.alpha, drawn.kappa, drawn.units)
    assert drawn.high - drawn.low > 0
    assert (alone.low, alone.high) != (drawn.low, drawn.high)


def test_verdict__regress():
    found = ask(noisy(4.5, 4.0))

    assert (found.verdict, found.branch, found.exit_code) == ("REGRESS", "significant_negative", 1)


def test_verdict__equal_scores_are_noise_and_too_few_of_them_underpowered():
    assert ask(noisy(4.0, 4.0, spread=0)).verdict == "NOISE"
    assert ask(noisy(4.0, 4.0, units=19, spread=0)).verdict == "UNDERPOWERED"


def test_verdict__a_clear_gain_in_few_units_is_not_powered():
    found = ask(noisy(4.0, 4.8, units=10))

    assert (found.verdict, found.branch) == ("CAUTIOUS", "positive_underpowered")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("progress_n2_degenerate_ci", "UNDERPOWERED"), ("holdout_too_small_disabled", "CAUTIOUS")],
)
def test_verdict__a_positive_shift_of_few_units_proves_nothing(name, expected):
    """Two equal differences, and eight units: omk 0.54 answers PROGRESS."""
    case = next(case for case in GOLDEN["verdict_end_to_end"] if case["id"] == name)
    scores = scores_of(case["input"])

    found = verdict(scores.layers, scores.variants, scores.units)

    assert case["expected"]["verdict"] == "PROGRESS"
    assert (found.verdict, found.exit_code) == (expected, 1)


def test_verdict__a_gate_failed_by_both_is_not_ignored():
    case = next(case for case in GOLDEN["verdict_end_to_end"] if case["id"] == "noise_gate_broken_ignored")
    scores = scores_of(case["input"])

    found = verdict(scores.layers, scores.variants, scores.units)

    assert (found.verdict, found.branch) == ("CAUTIOUS", "gate_broken_in_both")


def test_verdict__a_layer_that_falls_below_the_gate_regresses():
    found = ask(noisy([4.2, 4.2, 4.2], [4.65, 4.65, 3.3], spread=0.1))

    assert (found.verdict, found.branch) == ("REGRESS", "gate_dropped")
    assert "judge" in found.reasons[0]


def test_verdict__a_trade_between_layers_is_named():
    found = ask(noisy([4.2, 4.2, 4.2], [4.7, 4.2, 3.7]))

    assert (found.verdict, found.branch) == ("CAUTIOUS", "layer_moved")
    assert "rose, judge fell" in found.reasons[0]


def test_verdict__solo():
    passed, failed = ask(noisy(4.0)), ask(noisy([4.0, 4.0, 3.0]))
    nothing = ask(np.full((1, 4, 3), np.nan))

    assert (passed.verdict, passed.branch, passed.exit_code) == ("SOLO", "solo_gate_pass", 0)
    assert (failed.branch, failed.exit_code) == ("solo_gate_fail", 1)
    assert "judge" in failed.reasons[1]
    assert (nothing.branch, nothing.arms[0].shown) == ("solo_gate_fail", "missing")


def test_verdict__one_unit_ships_nothing():
    found = verdict(noisy(4.0, 4.6, units=1, spread=0), ["a", "b"], UNITS[:1])

    assert found.exit_code == 1
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(("variants", "units"), [(2, 0), (0, 3)])
def test_verdict__refuses_to_compare_nothing(variants, units):
    with pytest.raises(ValueError, match="nothing to compare"):
        verdict(np.empty((variants, units, 3)), ["a", "b"][:variants], UNITS[:units])


def test_verdict__the_worst_treatment_decides_and_each_is_tested_at_its_share():
    found = ask(noisy(4.0, 4.6, 3.6, 4.0))

    assert [pair.verdict for pair in found.pairs] == ["PROGRESS", "REGRESS", "NOISE"]
    assert (found.verdict, found.representative) == ("REGRESS", ("base", "t2"))
    assert {pair.composite.alpha for pair in found.pairs} == {0.05 / 3}


def test_verdict__a_treatment_without_a_comparable_unit_is_not_dropped():
    layers = noisy(4.0, 4.6, 4.6)
    layers[2] = np.nan

    found = ask(layers)

    assert (found.verdict, found.representative) == ("REGRESS", ("base", "t2"))
    assert found.pairs[1].complete_pairs == 0


def test_verdict__counts_complete_pairs_not_authored_units():
    layers = noisy(4.0, 4.0, spread=0)
    layers[1, 3:] = np.nan

    found = ask(layers)

    assert found.verdict == "UNDERPOWERED"
    assert [note[:8] for note in found.notes] == ["21 of 24"]


def test_verdict__compares_the_layers_that_both_arms_have():
    layers = noisy([4.0, 4.0, 4.4], 4.4, spread=0)
    layers[1, :, :2] = np.nan

    common, own = ask(layers), ask(layers, layer_set="own")

    assert common.pairs[0].shown == ("4.40 (judge only)", "4.40 (judge only)")
    assert (common.verdict, common.branch) == ("UNDERPOWERED", "not_significant_missing")
    assert own.pairs[0].shown == ("4.13 (3/3)", "4.40 (judge only)")
    assert (own.verdict, own.branch) == ("CAUTIOUS", "positive_missing")
    assert "compared as" in common.notes[0]


@given(st.permutations(range(12)))
def test_verdict__does_not_depend_on_the_order_of_units(order):
    layers = noisy(3.9, 4.1, units=12, seed=3).round(2)
    known = verdict(layers, ["a", "b"], UNITS[:12], draws=500)

    found = verdict(layers[:, order], ["a", "b"], [UNITS[place] for place in order], draws=500)

    assert found == known


def test_verdict__repeats_and_depends_on_the_seed_only_beyond_enumeration():
    layers = noisy(4.0, 4.1)

    assert ask(layers) == ask(layers)
    assert ask(layers) != ask(layers, seed=9)
    assert ask(layers[:, :8]).pairs[0].composite == ask(layers[:, :8], seed=9).pairs[0].composite


def test_verdict__runs_of_a_unit_are_averaged_first():
    once = noisy(3.0, 3.3)
    offset = np.where(np.arange(3) == 2, -0.4, 0.2)[:, np.newaxis, np.newaxis, np.newaxis]
    runs = np.stack([once] * 3) + offset

    found, known = ask(runs), ask(once)

    assert found.pairs[0].composite.estimate == pytest.approx(known.pairs[0].composite.estimate)
    assert found.pairs[0].complete_pairs == 24
    assert math.isnan(known.arms[0].variation)
    assert found.arms[0].variation == pytest.approx(np.std([3.2, 3.2, 2.6], ddof=1) / 3.0, rel=0.05)


def test_verdict__a_gain_that_differs_from_run_to_run_is_not_shipped():
    runs = np.stack([np.clip(noisy(3.7, 4.3, spread=0.1) * scale, 1, 5) for scale in (0.8, 1.0, 1.2)])

    assert ask(runs).branch == "positive_unstable"


def test_verdict__five_runs_say_whether_the_scores_have_settled():
    runs = np.stack([noisy(4.0, 4.6, seed=seed) for seed in range(5)])

    found = ask(runs)

    assert found.badges.saturated == "no"
    assert found.branch == "positive_unsaturated"


def test_verdict__failed_executions_are_missing_everywhere():
    layers, ok = noisy(4.0, 4.5), np.ones((2, 24), dtype=bool)
    ok[1, :3] = False
    layers[1, :3] = 1.0

    found = ask(layers, ok=ok)

    assert found.pairs[0].complete_pairs == 21
    assert found.arms[1].layers["fact"] == pytest.approx(np.mean(layers[1, 3:, 0]))


def test_verdict__judges_fill_the_judge_layer_and_must_agree():
    rng = np.random.default_rng(1)
    layers = noisy(4.0, 4.6)
    layers[..., 2] = np.nan
    together = np.clip(rng.integers(3, 6, (2, 24, 1)) + np.zeros((1, 1, 2)), 1, 5)
    apart = rng.integers(3, 6, (2, 24, 2)).astype(float)
    apart[1, 0, 0] = 0

    agreed, split = ask(layers, judges=together), ask(layers, judges=apart)

    assert agreed.badges.judges_agree == "yes"
    assert agreed.arms[0].shown.endswith("(3/3)")
    assert split.badges.judges_agree == "no"
    assert split.branch == "positive_judge_dissent"
    assert split.arms[1].agreement.units == 23


def test_verdict__repeated_judgements_count_as_their_mean():
    readings = np.random.default_rng(2).integers(2, 5, (2, 24, 3)).astype(float)
    repeats = np.stack([readings + 0.5, readings - 0.5, np.zeros_like(readings)], axis=-1)

    found, known = ask(noisy(4.0, 4.2), judges=repeats), ask(noisy(4.0, 4.2), judges=readings)

    assert found.arms[0].agreement == known.arms[0].agreement


@pytest.mark.parametrize(
    ("options", "method", "alpha", "note"),
    [
        ({}, "sign-flip", 0.025, "24 pairs are fewer"),
        ({"grown": True}, "anytime", 0.025, "the first look"),
        ({"trivial": 1.0}, "sign-flip", 0.05, None),
        ({"method": "sign-flip", "grown": True}, "sign-flip", 0.05, None),
    ],
)
def test_verdict__all_looks_together_err_in_5_percent(options, method, alpha, note):
    found = ask(noisy(4.0, 4.0), **({"method": None} | options))

    interval = found.pairs[0].composite
    assert (interval.method, interval.alpha) == (method, alpha)
    assert all(one.alpha == alpha for one in found.pairs[0].layers.values())
    assert not found.notes if note is None else any(note in text for text in found.notes)


def test_verdict__a_gain_on_train_units_only_is_overfitting():
    layers = noisy(3.8, 4.9, spread=0.05)
    layers[1, ::4] -= 0.9

    found = ask(layers, holdout_ratio=0.25)

    assert found.branch == "positive_overfit"
    assert found.pairs[0].holdout.gap.estimate == pytest.approx(0.9, abs=0.1)


def test_verdict__harder_questions_that_are_held_out_are_no_overfitting():
    layers = noisy(4.2, 4.6, spread=0.05)
    layers[:, ::4] -= 1.0

    assert ask(layers, holdout_ratio=0.25, threshold=3).verdict == "PROGRESS"


def test_verdict__declared_weights_change_the_composite():
    layers = noisy([4.0, 4.0, 4.0], [4.8, 4.0, 3.6], spread=0.05)

    assert ask(layers, weights=[3, 1, 0]).verdict == "CAUTIOUS"
    assert ask(layers, weights=[3, 1, 0]).pairs[0].composite.estimate == pytest.approx(0.6, abs=0.05)
    assert ask(layers, weights=[1, 1, 4]).pairs[0].composite.negative
    assert ask(layers).pairs[0].sensitivity.positive < 1


def test_verdict__to_dict_is_json_and_complete():
    plain = ask(noisy(4.0, 4.5)).to_dict()

    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again["exit_code"] == 0
    assert again["verdict"] == "PROGRESS"
    assert again["pairs"][0]["decision"]["branch"] == "positive_clean"
    assert again["arms"][0]["shown"].endswith("(3/3)")
    assert again["arms"][0]["variation"] is None


@with_cases(
    ("change", "message"),
    [
        ({"layers": np.zeros((2, 24, 2))}, "`layers` must be"),
        ({"layers": np.zeros((2, 23, 3))}, "`layers` must be"),
        ({"layers": np.zeros((0, 2, 24, 3))}, "no run"),
        ({"layers": [[[1, 2, 3]], [[1, 2]]]}, "`layers` must hold numbers"),
        ({"layers": [[[10**400] * 3]] * 2}, "`layers` must hold numbers"),
        ({"judges": [[[10**400]]] * 2}, "`judges` must hold numbers"),
        ({"shares": [10**400] * 24}, "`shares` must hold numbers"),
        ({"layers": np.full((2, 24, 3), np.inf)}, "`layers` has the score inf, which is not from 1 to 5"),
        ({"layers": np.full((2, 24, 3), 0.99)}, "`layers` has the score 0.99"),
        ({"layers": np.full((2, 24, 3), [3, 7, 3])}, "`layers` has the score 7"),
        ({"layers": np.full((2, 24, 3), [0, 3, 3])}, "`layers` has the score 0"),
        ({"judges": np.full((2, 24, 2), 5.5)}, "`judges` has the score 5.5"),
        ({"judges": np.full((2, 24, 2, 2), [[4, 6], [3, 3]])}, "`judges` has the score 6"),
        ({"judges": np.full((2, 24, 2), 4.0), "judge_names": ["x"]}, "`judge_names` must name 2 judges"),
        ({"missing": 1.5}, "`missing` must be a share"),
        ({"holdout_ratio": -0.1}, "`holdout_ratio` must be a share"),
        ({"variants": ["a", "a"]}, "`variants`.*'a' occurs twice"),
        ({"units": ["u"] * 24}, "`units`.*'u' occurs twice"),
        ({"judges": np.zeros((2, 24))}, "`judges` must be"),
        ({"judges": np.zeros((2, 23, 2))}, "`judges` must be"),
        ({"ok": np.ones((2, 23))}, "`ok` must be"),
        ({"layer_set": "all"}, "`layer_set` must be"),
        ({"weights": [1, 2]}, "`weights` must be"),
        ({"weights": [0, 0, 0]}, "`weights` must be"),
        ({"weights": [1, -1, 1]}, "`weights` must be"),
        ({"alpha": 1.5}, "`alpha`"),
    ],
)
def test_verdict__says_what_does_not_fit(change, message):
    given = {"layers": noisy(4.0, 4.0), "variants": ["a", "b"], "units": UNITS, **change}

    with pytest.raises(ValueError, match=message):
        verdict(given.pop("layers"), given.pop("variants"), given.pop("units"), **given)
