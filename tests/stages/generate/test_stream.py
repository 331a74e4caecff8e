"""Seeds and draws of the trial streams."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.stream import Stream, canonical_json, cell_id, coordinate_seed, distinct, parts

VECTORS: list[tuple[dict[str, Any], int]] = [
    ({"depth": 3, "length": 16}, 2094783288),
    ({"length": 16, "max_depth": 2}, 3012220968),
    ({"length": 16, "max_depth": 2, "prob_dewhitespace": 0.5}, 186458133),
    ({"choice_count": 12, "reference_count": 3}, 2535680858),
]
"""Published examples of coordinate seeds, for seed 42."""


@pytest.mark.parametrize(("params", "expected"), VECTORS)
def test_coordinate_seed__equals_published_values(params: dict[str, Any], expected: int) -> None:
    assert coordinate_seed(params, 42) == expected
    assert coordinate_seed(dict(reversed(params.items())), 42) == expected
    assert coordinate_seed(params | {"count": 128}, 42) == expected
    assert coordinate_seed(params, 0) == expected - 42


def test_canonical_json__whole_floats_are_integers() -> None:
    assert canonical_json({"a": 16.0, "b": [1.0, 0.5], "c": -0.0}) == canonical_json(
        {"c": 0, "b": [1, 0.5], "a": 16}
    )


def test_cell__whole_floats_are_the_same_cell() -> None:
    task = TASKS["arithmetic"]
    cells = [Cell(task, task.Params(length=length), 42) for length in (16, 16.0)]

    assert cells[0].id == cells[1].id
    assert cells[0].trial(3) == cells[1].trial(3)


def test_cell_id__depends_on_each_part() -> None:
    base = ("a", 1, {"x": 1}, 42)
    whole = ("a", 1, {"x": 1.0}, 42)
    others = [("b", 1, {"x": 1}, 42), ("a", 2, {"x": 1}, 42), ("a", 1, {"x": 2}, 42), ("a", 1, {"x": 1}, 43)]

    assert len({cell_id(*parts) for parts in (base, *others)}) == 5
    assert len(cell_id(*base)) == 32
    assert cell_id(*whole) == cell_id(*base)


GOLDEN_DRAWS = [2, 2, -3, -3, -3, 2, 0, 0, 3, 2, -4, 4]
"""What this seed must give on every Python version."""


def test_stream__equals_golden_draws() -> None:
    stream = Stream(2**200 + 7)

    assert [stream.between(-5, 5) for _ in range(12)] == GOLDEN_DRAWS


def test_stream__draws_are_uniform_and_in_range() -> None:
    stream = Stream(5)
    draws = [stream.between(3, 6) for _ in range(8000)]

    assert set(draws) == {3, 4, 5, 6}
    for value in (3, 4, 5, 6):
        assert draws.count(value) / 8000 == pytest.approx(0.25, abs=0.025)


def test_chance__zero_is_never_and_one_always() -> None:
    stream = Stream(5)

    assert not any(stream.chance(0.0) for _ in range(1000))
    assert all(stream.chance(1.0) for _ in range(1000))


def test_sample__draws_different_items_and_leaves_the_pool() -> None:
    pool = list("abcdef")
    drawn = Stream(5).sample(pool, 6)

    assert sorted(drawn) == pool == list("abcdef")
    with pytest.raises(ValueError, match=r"7 .* 6\b"):
        Stream(5).sample(pool, 7)


@given(st.integers(0, 2**32), st.permutations(range(7)), st.integers(0, 7))
def test_stream__shuffles_and_samples_like_chance(seed: int, items: list[int], count: int) -> None:
    shuffled = list(items)
    Stream(seed).shuffle(shuffled)

    assert sorted(shuffled) == sorted(items)
    drawn = Stream(seed).sample(items, count)
    assert len(set(drawn)) == count
    assert Stream(seed).choice(items) in items


def test_shuffle__gives_each_item_each_place() -> None:
    stream, places = Stream(3), [[0] * 3 for _ in range(3)]
    for _ in range(3000):
        items = [0, 1, 2]
        stream.shuffle(items)
        for place, item in enumerate(items):
            places[item][place] += 1

    assert [number for row in places for number in row] == pytest.approx([1000] * 9, rel=0.1)


def test_sample__each_item_is_as_likely_in_each_place() -> None:
    stream = Stream(4)
    drawn = [tuple(stream.sample("abc", 2)) for _ in range(6000)]

    assert [drawn.count(pair) for pair in sorted(set(drawn))] == pytest.approx([1000] * 6, rel=0.1)


def test_distinct__draws_until_there_are_so_many_in_the_order_in_which_they_come() -> None:
    draws = iter([3, 1, 3, 2, 5])

    assert distinct(3, lambda: next(draws)) == [3, 1, 2]
    assert list(draws) == [5]
    assert distinct(0, lambda: next(draws)) == []


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 4), st.integers(0, 4), st.data())
def test_parts__are_so_many_within_their_bounds_with_the_sum(
    seed: int, count: int, least: int, more: int, data: st.DataObject
) -> None:
    total = data.draw(st.integers(count * least, count * (least + more)))

    numbers = parts(Stream(seed), total, count, least, least + more)

    assert (len(numbers), sum(numbers)) == (count, total)
    assert all(least <= number <= least + more for number in numbers)


def test_parts__take_all_their_values() -> None:
    stream = Stream(6)

    drawn = {tuple(parts(stream, 5, 2, 1, 3)) for _ in range(100)}

    assert drawn == {(2, 3), (3, 2)}
    assert {tuple(parts(stream, 4, 2, 1, 3)) for _ in range(100)} == {(1, 3), (2, 2), (3, 1)}
