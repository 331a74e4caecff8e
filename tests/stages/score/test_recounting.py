"""Counts of some of the trials, and counts as they would be under a lower limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.reply.status import COUNTERS, Status
from evalcube.stages.score import counters as counting
from evalcube.stages.score.counters import count_trials
from tests.stages.score.trials import draw_trials, plain_count

shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 4))
seeds = st.integers(0, 2**32)
PRICES = {"price_prompt": 0.15, "price_completion": 0.6}


def column(counted, name):
    return counted[..., COUNTERS.index(name)]


def with_duplicates(rng, arrays):
    """The arrays with marks of repeated prompts, unknown ones among them, equal for all repeats."""
    shape = (*arrays["status"].shape[:-1], 1)
    marks = rng.choice(np.array([0, 1, 255], np.uint8), size=shape)
    return {**arrays, "duplicate": np.broadcast_to(marks, arrays["status"].shape)}


@given(seeds, shapes)
def test_count_trials__equals_a_plain_count_to_the_last_bit(seed, shape):
    rng = np.random.default_rng(seed)
    arrays = with_duplicates(rng, draw_trials(rng, shape))

    np.testing.assert_array_equal(count_trials(arrays, **PRICES), plain_count(arrays, **PRICES))


@given(seeds)
def test_count_trials__blocks_of_cells_are_the_same_cells(seed):
    rng = np.random.default_rng(seed)
    arrays = draw_trials(rng, (3, 5, 7, 2))
    whole = count_trials(arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_BLOCK", int(rng.integers(1, 60)))
        np.testing.assert_array_equal(count_trials(arrays), whole)


@pytest.mark.parametrize("shape", [(6, 2), (2, 6, 2), (2, 2, 2, 6, 2)])
def test_count_trials__any_leading_axes(shape):
    arrays = draw_trials(np.random.default_rng(1), shape)

    np.testing.assert_array_equal(count_trials(arrays), plain_count(arrays))


def test_count_trials__arrays_need_not_be_contiguous():
    arrays = draw_trials(np.random.default_rng(1), (3, 4, 8, 2))
    turned = {name: np.asfortranarray(array)[::-1, :, ::2] for name, array in arrays.items()}

    np.testing.assert_array_equal(count_trials(turned), plain_count(turned))


def test_count_trials__large_values_are_summed_exactly():
    arrays = draw_trials(np.random.default_rng(1), (1, 1, 4000, 1))
    arrays["tokens"] = np.full(arrays["status"].shape, 2**31 - 1, np.int32)
    counted = count_trials(arrays)[0, 0]

    assert column(counted, "tokens_sum") == column(counted, "trials") * (2**31 - 1)


def test_count_trials__an_infinite_value_is_a_missing_one():
    arrays = draw_trials(np.random.default_rng(1), (1, 1, 50, 1))
    expected = count_trials({**arrays, "latency": np.where(arrays["latency"] > 3, np.nan, arrays["latency"])})
    arrays["latency"][arrays["latency"] > 3] = np.inf

    np.testing.assert_array_equal(count_trials(arrays), expected)


@given(seeds, shapes, st.integers(1, 12))
def test_count_trials__first_trials_only(seed, shape, trials):
    arrays = draw_trials(np.random.default_rng(seed), shape)
    first = {name: array[:, :, :trials] for name, array in arrays.items()}

    np.testing.assert_array_equal(count_trials(arrays, trials=trials), count_trials(first))


@given(seeds, shapes)
def test_count_trials__unique_only_leaves_repeated_prompts_out(seed, shape):
    rng = np.random.default_rng(seed)
    arrays = with_duplicates(rng, draw_trials(rng, shape))
    # 200 is no outcome, so that no counter counts it.
    left = {**arrays, "status": np.where(arrays["duplicate"] == 1, np.uint8(200), arrays["status"])}

    counted = count_trials(arrays, unique_only=True, **PRICES)

    np.testing.assert_array_equal(counted, plain_count(left, **PRICES))
    assert not column(counted, "duplicates").any()


def test_count_trials__unique_only_of_unknown_prompts_keeps_them():
    arrays = draw_trials(np.random.default_rng(1), (1, 2, 9, 1))
    arrays["duplicate"] = np.full_like(arrays["status"], 255)

    np.testing.assert_array_equal(count_trials(arrays, unique_only=True), count_trials(arrays))


@given(seeds, shapes, st.integers(1, 120_000))
def test_count_trials__clipped_tokens(seed, shape, limit):
    arrays = draw_trials(np.random.default_rng(seed), shape)
    finished = arrays["status"] <= Status.REFUSED
    longer = finished & (arrays["tokens"] > limit)
    other = {
        **arrays,
        "status": np.where(longer, np.uint8(Status.TRUNCATED), arrays["status"]),
        "tokens": np.minimum(arrays["tokens"], limit),
    }

    np.testing.assert_array_equal(count_trials(arrays, clip_tokens=limit), plain_count(other))


@given(seeds, shapes)
def test_count_trials__a_limit_nobody_reached_changes_nothing(seed, shape):
    arrays = draw_trials(np.random.default_rng(seed), shape)

    np.testing.assert_array_equal(count_trials(arrays, clip_tokens=100_000), count_trials(arrays))


def test_count_trials__a_trial_as_long_as_the_limit_is_completed():
    arrays = {
        name: array[:1, :1, :2, :1]
        for name, array in draw_trials(np.random.default_rng(2), (1, 1, 2, 1)).items()
    }
    arrays["status"][...] = Status.CORRECT
    arrays["tokens"][0, 0, :, 0] = [4096, 4097]
    counted = count_trials(arrays, clip_tokens=4096)[0, 0]

    assert [column(counted, name) for name in ("correct", "truncated", "tokens_sum")] == [1, 1, 8192]


@given(seeds, shapes)
def test_count_trials__what_is_not_planned_is_not_missing(seed, shape):
    rng = np.random.default_rng(seed)
    arrays = draw_trials(rng, shape)
    planned = rng.random(shape) < 0.5
    missing = (arrays["status"] == Status.MISSING) & planned

    counted = count_trials({**arrays, "planned": planned})

    np.testing.assert_array_equal(column(counted, "missing"), missing.sum(axis=(-2, -1)))
    others = [index for index, name in enumerate(COUNTERS) if name != "missing"]
    np.testing.assert_array_equal(counted[..., others], count_trials(arrays)[..., others])


def test_count_trials__options_together():
    arrays = draw_trials(np.random.default_rng(5), (1, 1, 8, 1))
    arrays["status"][0, 0, :, 0] = [1, 1, 1, 0, 255, 255, 1, 1]
    arrays["tokens"][0, 0, :, 0] = [10, 30, 10, 30, -1, -1, 10, 10]
    arrays["duplicate"] = np.array([0, 0, 1, 1, 0, 1, 0, 0]).reshape(1, 1, 8, 1)
    counted = count_trials(arrays, unique_only=True, trials=6, clip_tokens=20)[0, 0]

    assert {
        name: column(counted, name) for name in ("trials", "correct", "truncated", "missing", "tokens_sum")
    } == {
        "trials": 2,
        "correct": 1,
        "truncated": 1,
        "missing": 1,
        "tokens_sum": 30,
    }


@pytest.mark.parametrize("option", ["trials", "clip_tokens"])
def test_count_trials__refuses_options_below_one(option):
    with pytest.raises(ValueError, match=f"`{option}` must be at least 1, got 0"):
        count_trials(draw_trials(np.random.default_rng(1), (1, 1, 2, 1)), **{option: 0})


def test_count_trials__refuses_unique_only_without_marks():
    with pytest.raises(ValueError, match="needs the array `duplicate`"):
        count_trials(draw_trials(np.random.default_rng(1), (1, 1, 2, 1)), unique_only=True)
