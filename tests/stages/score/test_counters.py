"""Counters count what they say, and add up in whatever way the trials are cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.reply.status import COMPLETED, COUNTERS, Status
from evalcube.stages.score.counters import add_counters, count_trials
from tests.cases import with_cases

NAMES = ("status", "tokens", "prompt_tokens", "compressed_bytes", "latency", "guess_chance")
INTEGERS = [name for name in COUNTERS if name not in {"guess_sum", "latency_sum", "cost_sum"}]


def draw_arrays(rng, shape):
    """Trial arrays as a sweep may leave them: any status anywhere, values missing here and there."""
    status = rng.choice([int(s) for s in Status], size=shape).astype(np.uint8)

    def integers(high):
        values = rng.integers(0, high, size=shape)
        return np.where(rng.random(shape) < 0.1, -1, values).astype(np.int32)

    def floats(values):
        return np.where(rng.random(shape) < 0.1, np.nan, values).astype(np.float32)

    return {
        "status": status,
        "tokens": integers(100_000),
        "prompt_tokens": integers(10_000),
        "compressed_bytes": integers(10_000),
        "latency": floats(rng.exponential(3.0, size=shape)),
        "guess_chance": floats(rng.choice([0.0, 1 / 2, 1 / 3, 1 / 5, 1 / 7], size=shape)),
    }


def filled(status, **values):
    """Arrays of one cell with one trial for each status."""
    status = np.array(status, dtype=np.uint8).reshape(1, 1, -1, 1)
    base = {
        "tokens": 10,
        "prompt_tokens": 5,
        "compressed_bytes": 3,
        "latency": 0.5,
        "guess_chance": 0.25,
        **values,
    }
    kinds = {name: np.float32 if name in {"latency", "guess_chance"} else np.int32 for name in base}
    return {
        "status": status,
        **{name: np.full(status.shape, value, kinds[name]) for name, value in base.items()},
    }


def counters(arrays, **prices):
    """Counters of the first cell by name."""
    return dict(zip(COUNTERS, count_trials(arrays, **prices)[0, 0].tolist(), strict=True))


shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 4))
seeds = st.integers(0, 2**32)


def test_count_trials__one_of_each():
    assert counters(filled(list(Status)), price_prompt=2.0, price_completion=8.0) == {
        "trials": 5,
        "completed": 4,
        "correct": 1,
        "invalid": 1,
        "refused": 1,
        "truncated": 1,
        "guess_sum": 1.0,
        "tokens_sum": 50,
        "tokens_sumsq": 500,
        "prompt_tokens_sum": 25,
        "compressed_sum": 15,
        "latency_sum": 2.5,
        "cost_sum": pytest.approx((25 * 2 + 50 * 8) / 1e6, rel=1e-15),
        "duplicates": 0,
        "transport": 1,
        "missing": 1,
    }


@pytest.mark.parametrize("status", [Status.TRANSPORT, Status.MISSING])
def test_count_trials__what_is_no_trial_counts_for_nothing_else(status):
    counted = counters(filled([status] * 3), price_prompt=1.0, price_completion=1.0)

    assert counted == {**dict.fromkeys(COUNTERS, 0), status.name.lower(): 3}


def test_count_trials__the_fill_values_add_nothing():
    counted = counters(
        filled(
            [255] * 4, tokens=-1, prompt_tokens=-1, compressed_bytes=-1, latency=np.nan, guess_chance=np.nan
        )
    )

    assert counted == {**dict.fromkeys(COUNTERS, 0), "missing": 4}


def test_count_trials__values_that_are_missing_add_nothing():
    counted = counters(
        filled([1, 0], tokens=-1, prompt_tokens=-1, compressed_bytes=-1, latency=np.nan, guess_chance=np.nan)
    )

    assert counted == {**dict.fromkeys(COUNTERS, 0), "trials": 2, "completed": 2, "correct": 1}


def test_count_trials__truncated_trials_have_tokens_but_no_guess():
    counted = counters(filled([Status.TRUNCATED]))

    assert (counted["tokens_sum"], counted["guess_sum"], counted["completed"], counted["trials"]) == (
        10,
        0,
        0,
        1,
    )


def test_count_trials__large_sums_are_exact():
    counted = counters(filled([1] * 4096, tokens=1_000_001))

    assert counted["tokens_sum"] == 4096 * 1_000_001
    assert counted["tokens_sumsq"] == 4096 * 1_000_001**2


@given(seeds, shapes)
def test_count_trials__equals_a_count_one_by_one(seed, shape):
    arrays = draw_arrays(np.random.default_rng(seed), shape)
    price = {"price_prompt": 0.15, "price_completion": 0.6}

    counted = count_trials(arrays, **price)

    assert counted.shape == (*shape[:2], len(COUNTERS))
    for cell in np.ndindex(shape[:2]):
        rows = zip(*(arrays[name][cell].reshape(-1).tolist() for name in NAMES), strict=True)
        expected = dict.fromkeys(COUNTERS, 0.0)
        for row in rows:
            one_by_one(expected, dict(zip(NAMES, row, strict=True)), **price)
        assert dict(zip(COUNTERS, counted[cell].tolist(), strict=True)) == pytest.approx(expected, rel=1e-12)


def one_by_one(sums, row, price_prompt, price_completion):
    status = Status(row["status"])
    if status is Status.TRANSPORT:
        sums["transport"] += 1
    elif status is Status.MISSING:
        sums["missing"] += 1
    else:
        known = {name: value if value >= 0 else 0 for name, value in row.items() if name != "status"}
        sums["trials"] += 1
        sums["tokens_sum"] += known["tokens"]
        sums["tokens_sumsq"] += known["tokens"] ** 2
        sums["prompt_tokens_sum"] += known["prompt_tokens"]
        sums["compressed_sum"] += known["compressed_bytes"]
        sums["latency_sum"] += known["latency"]
        sums["cost_sum"] += (known["prompt_tokens"] * price_prompt + known["tokens"] * price_completion) / 1e6
        if status in COMPLETED:
            sums["completed"] += 1
            sums["guess_sum"] += known["guess_chance"]
        if status.name.lower() in sums:
            sums[status.name.lower()] += 1


@given(seeds, shapes)
def test_count_trials__parts_of_the_whole_are_consistent(seed, shape):
    arrays = draw_arrays(np.random.default_rng(seed), shape)
    counted = dict(zip(COUNTERS, np.moveaxis(count_trials(arrays), -1, 0), strict=True))

    assert (counted["completed"] + counted["truncated"] == counted["trials"]).all()
    assert (counted["trials"] + counted["transport"] + counted["missing"] == shape[2] * shape[3]).all()
    assert (counted["correct"] + counted["invalid"] + counted["refused"] <= counted["completed"]).all()
    assert (counted["guess_sum"] <= counted["completed"] / 2).all()


@given(seeds, shapes, st.data())
def test_count_trials__do_not_depend_on_how_trials_are_cut(seed, shape, data):
    arrays = draw_arrays(np.random.default_rng(seed), shape)
    whole = count_trials(arrays, price_prompt=0.15, price_completion=0.6)
    cuts = {axis: sorted(data.draw(st.sets(st.integers(0, shape[axis])))) for axis in (2, 3)}

    parts = [
        count_trials(
            {name: array[:, :, trials, repeats] for name, array in arrays.items()},
            price_prompt=0.15,
            price_completion=0.6,
        )
        for trials in slices(cuts[2], shape[2])
        for repeats in slices(cuts[3], shape[3])
    ]
    order = data.draw(st.permutations(range(len(parts))))
    total = add_counters([parts[index] for index in order])

    for name in COUNTERS:
        got, expected = (values[..., COUNTERS.index(name)] for values in (total, whole))
        if name in INTEGERS:
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=0)


def slices(cuts, size):
    edges = [0, *cuts, size]
    return [slice(low, high) for low, high in pairwise(edges)]


def test_count_trials__guess_sums_of_float32_are_the_same_in_any_order():
    rng = np.random.default_rng(3)
    arrays = filled([0] * 5000)
    arrays["guess_chance"] = (1 / rng.integers(2, 99, size=(1, 1, 5000, 1))).astype(np.float32)
    turned = {name: array[:, :, ::-1] for name, array in arrays.items()}

    assert counters(arrays)["guess_sum"] == counters(turned)["guess_sum"]


@given(seeds, shapes)
def test_count_trials__padding_adds_missing_trials_only(seed, shape):
    rng = np.random.default_rng(seed)
    arrays = draw_arrays(rng, shape)
    fill = {
        "status": 255,
        "tokens": -1,
        "prompt_tokens": -1,
        "compressed_bytes": -1,
        "latency": np.nan,
        "guess_chance": np.nan,
    }
    padded = {
        name: np.concatenate([array, np.full((*shape[:2], 3, shape[3]), fill[name], array.dtype)], axis=2)
        for name, array in arrays.items()
    }

    added = count_trials(padded) - count_trials(arrays)

    np.testing.assert_array_equal(added[..., COUNTERS.index("missing")], 3 * shape[3])
    np.testing.assert_allclose(np.delete(added, COUNTERS.index("missing"), axis=-1), 0, atol=1e-9)


@given(seeds, shapes, st.data())
def test_count_trials__a_right_answer_instead_of_a_wrong_one_changes_one_counter(seed, shape, data):
    arrays = draw_arrays(np.random.default_rng(seed), shape)
    where = tuple(data.draw(st.integers(0, size - 1)) for size in shape)
    before, after = arrays["status"].copy(), arrays["status"].copy()
    before[where], after[where] = Status.INCORRECT, Status.CORRECT

    change = count_trials({**arrays, "status": after}) - count_trials({**arrays, "status": before})

    expected = np.zeros_like(change)
    expected[(*where[:2], COUNTERS.index("correct"))] = 1
    np.testing.assert_array_equal(change, expected)


prices = st.just(0.0) | st.floats(1e-6, 1000)


@given(seeds, prices, prices)
def test_count_trials__cost_follows_from_the_token_sums(seed, price_prompt, price_completion):
    arrays = draw_arrays(np.random.default_rng(seed), (2, 2, 5, 2))
    counted = count_trials(arrays, price_prompt=price_prompt, price_completion=price_completion)
    sums = dict(zip(COUNTERS, np.moveaxis(counted, -1, 0), strict=True))

    expected = sums["prompt_tokens_sum"] * price_prompt / 1e6 + sums["tokens_sum"] * price_completion / 1e6

    np.testing.assert_allclose(sums["cost_sum"], expected, rtol=1e-12)


def test_count_trials__costs_nothing_without_prices():
    assert counters(filled([1]))["cost_sum"] == 0


def test_count_trials__leaves_the_arrays_as_they_are():
    arrays = filled(list(Status))
    before = {name: array.copy() for name, array in arrays.items()}

    count_trials(arrays, price_prompt=1.0)

    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name])


@with_cases("name", NAMES[1:])
def test_count_trials__refuses_arrays_of_another_shape(name):
    arrays = filled([1, 0])
    arrays[name] = arrays[name][:, :, :1]

    with pytest.raises(ValueError, match=rf"`{name}` has shape \(1, 1, 1, 1\), `status` has \(1, 1, 2, 1\)"):
        count_trials(arrays)


def test_count_trials__refuses_arrays_without_trials_and_repeats():
    arrays = {name: np.zeros(3) for name in NAMES}

    with pytest.raises(ValueError, match=r"\(trial, repeat\)"):
        count_trials(arrays)


def test_count_trials__of_no_trials_are_zero():
    arrays = {name: array[:, :, :0] for name, array in filled([1]).items()}

    assert not count_trials(arrays).any()


def test_add_counters__adds_and_leaves_the_parts_alone():
    parts = [np.arange(4.0), np.ones(4)]

    assert add_counters(parts).tolist() == [1, 2, 3, 4]
    assert parts[0].tolist() == [0, 1, 2, 3]


def test_add_counters__of_one_part_is_a_copy():
    part = np.ones(3)
    total = add_counters([part])
    total += 1

    assert part.tolist() == [1, 1, 1]


def test_add_counters__refuses_nothing():
    with pytest.raises(ValueError, match="empty"):
        add_counters([])


def test_add_counters__refuses_parts_of_another_shape():
    with pytest.raises(ValueError, match=r"`parts\[1\]` has shape \(1, 15\), `parts\[0\]` has \(4, 15\)"):
        add_counters([np.zeros((4, 15)), np.zeros((1, 15))])
