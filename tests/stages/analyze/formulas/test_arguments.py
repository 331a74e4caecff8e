"""Public formulas given anything at all: a result, or an error that names the argument."""

import inspect
import itertools
from functools import cache

import numpy as np
import pytest

from evalcube import EvalcubeError, stats
from evalcube.stages.reply.status import COUNTERS
from tests.cases import with_cases

COUNTS = {"trials": 32, "completed": 30, "correct": 20, "truncated": 2, "guess_sum": 1.5, "tokens_sum": 3000}
COUNTERS_OF_TASKS = np.array([[[COUNTS.get(name, 0) for name in COUNTERS]] * 3] * 2, dtype=float)
PAIRED = {"first_only": [1, 2], "second_only": [0, 1], "trials": [4, 4]}
RATES = [[np.nan, 0.6], [0.4, np.nan]]
GOOD = {
    "bradley_terry": {"rates": RATES, "prior": 0.1},
    "confidence_sequence": {"successes": [3, 4], "trials": [5, 6]},
    "design_effect": {name: [value] for name, value in PAIRED.items()},
    "expected_wins": {"rates": RATES},
    "holm": {"p": [0.01, 0.2]},
    "overlap_clusters": {"lower": [0.1, 0.5], "upper": [0.4, 0.8]},
    "paired_difference": PAIRED,
    "pareto_front": {"score": [1, 2], "spends": [3, 4]},
    "rank_intervals": {"draws": np.linspace(0, 1, 60).reshape(3, 20)},
    "threshold_spectrum_at_k": {"weights": [0.5, 0.5]},
    "threshold_spectrum_at_k_ci": {"weights": [0.5, 0.5]},
    "wilson": {"successes": 3, "trials": 5},
    "wilson_bounds": {"successes": 3, "trials": 5},
    "win_rates": {"successes": [[3, 4], [2, 2]], "trials": [[5, 5], [5, 5]]},
}
"""What each formula takes, beside what all take."""
COMMON = {"R": [[1, 0, 1, 1], [0, 0, 1, 0]], "k": 2, "tau": 0.5, "counters": COUNTERS_OF_TASKS}
FORMULAS = {
    name: value
    for name in stats.__all__
    if inspect.isfunction(value := getattr(stats, name))
    and inspect.unwrap(value).__globals__["__name__"].startswith("evalcube.stages.analyze.formulas")
}
HOSTILE = (
    *(None, "abc", b"x", "0.5", object(), {}, {"a": 1}, set(), len, 1j, True, np.datetime64("2020")),
    *(-1, 0, 1, 1.5, 10**9, 10**400, float("nan"), float("inf"), -float("inf")),
    *([], [[]], [[1], [1, 2]], [None], ["a"], [float("nan")], [-1, 2], (1, 2, 3), [1e308] * 3, [[10**30]]),
    *([[5, 5], [9, 9]], [[[[1]]]], np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2, 2, 2, 2))),
    *(np.array(["x"]), np.array([object()]), np.array(None)),
)


def arguments(name):
    """Good arguments of a formula by name."""
    known = COMMON | GOOD.get(name, {})
    parameters = inspect.signature(FORMULAS[name]).parameters
    return {
        key: known.get(key, None if one.default is one.empty else one.default)
        for key, one in parameters.items()
    }


@cache
def named_only(name):
    """The arguments of a formula that have no position."""
    parameters = inspect.signature(FORMULAS[name]).parameters
    return {key for key, one in parameters.items() if one.kind == inspect.Parameter.KEYWORD_ONLY}


def call(name, given):
    """Call a formula by position where it has no names."""
    by_name = {key: value for key, value in given.items() if key in named_only(name)}
    return FORMULAS[name](*(value for key, value in given.items() if key not in by_name), **by_name)


@pytest.mark.filterwarnings("ignore")
def test_formulas__say_which_argument_is_wrong():
    for name in FORMULAS:
        good = arguments(name)
        call(name, good)
        for key, value in itertools.product(good, HOSTILE):
            said = error_of(name, good | {key: value})
            assert said is None or any(f"`{one}`" in said for one in good), (name, key, value, said)


def error_of(name, given):
    """What the formula says against arguments; None if it takes them. Other errors than these are defects."""
    try:
        call(name, given)
    except (ValueError, TypeError, EvalcubeError) as error:
        return str(error)
    return None


@with_cases(
    ("name", "wrong", "said"),
    [
        ("paired_difference", {"first_only": None}, r"`first_only` must hold real numbers.*got None"),
        ("paired_difference", {"trials": 4, "first_only": 1, "second_only": 0}, r"`axis`.*0 dims"),
        ("paired_difference", {"axis": 1}, r"`axis` must name axes of an array of 1 dims, got 1"),
        (
            "paired_difference",
            {"first_only": [-1, 2]},
            r"`first_only` must hold finite counts from 0, got -1",
        ),
        ("paired_difference", {"trials": [1, 1]}, "must not exceed"),
        ("paired_difference", {"trials": [4, 4, 4]}, r"`first_only` \(2,\), .*`trials` \(3,\)"),
        ("wilson", {"successes": [1, 2], "trials": [3, 4, 5]}, r"`successes` \(2,\), `trials` \(3,\)"),
        ("wilson", {"confidence": 95}, r"`confidence` must lie inside \(0, 1\), got 95; 0.95 means"),
        ("holm", {"p": [0.1, 5]}, r"`p` must hold p values in \[0, 1\], got 5"),
        ("pass_at_k", {"k": 5}, r"`k` must be at most the number of samples, 4, got 5"),
        (
            "pass_at_k",
            {"k": 2**64},
            r"`k` must be a whole number of draws from 1 to 9223372036854775807, got",
        ),
        (
            "pass_at_k",
            {"R": [[1, 0], [1]]},
            r"`R` must hold whole numbers or booleans, as many in the row of each question, got \[\[1, 0\], \[1\]\]",
        ),
        ("pass_at_k", {"R": [["a"]]}, r"`R` must hold whole numbers or booleans.*got \[\['a'\]\]"),
        ("bayes", {"w": [0, None]}, r"`w` must hold a finite number for each category.*got \[0, None\]"),
        (
            "threshold_spectrum_at_k",
            {"weights": "x"},
            r"`weights` must hold a finite number for each threshold, got 'x'",
        ),
        ("pass_at_k_ci", {"bounds": 1}, r"`bounds` must be a pair"),
        ("estimate_success", {"counters": "abc"}, r"`counters` must hold real numbers.*got 'abc'"),
    ],
)
def test_formulas__name_value_and_remedy(name, wrong, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call(name, arguments(name) | wrong)


def test_formulas__read_what_pandas_and_lists_hold():
    plain = stats.paired_difference([1, 2], [0, 1], [4, 4])

    for kind in (np.int8, object, np.float32):
        given = (np.array(part, dtype=kind) for part in ([1, 2], [0, 1], [4, 4]))
        np.testing.assert_array_equal(stats.paired_difference(*given), plain)
