"""Fields of a streamed object: put together from their bits, and paid for byte by byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.fields import PART_COST, BadEventError, Fields, as_object, larger
from tests.cases import with_cases


@pytest.fixture
def spent():
    return []


@pytest.fixture
def fields(spent):
    return Fields(spent.append)


def test_add__joins_texts_and_lists_and_takes_the_last_of_others(fields, spent):
    says = [fields.add("text", bit, 99) for bit in ("He", "", "llo", None)]
    lists = [fields.add("list", part, size) for part, size in (([1], 10), ([], 3), ([2, 3], 20))]
    others = [fields.add("count", value, size) for value, size in ((5, 40), ({"a": 1}, 30))]

    assert fields.plain() == {"text": "Hello", "list": [1, 2, 3], "count": {"a": 1}}
    assert (says, lists, others) == ([True, False, True, False], [True, False, True], [False, False])
    assert sum(spent) == (4 + PART_COST + 5) + (4 + PART_COST + 33) + (5 + PART_COST + 30)
    assert (fields.get("count"), fields.get("text"), fields.get("none")) == ({"a": 1}, None, None)


def test_add__of_a_list_after_something_else_takes_the_list(fields):
    fields.add("a", 5, 1)
    fields.add("a", [1], 1)

    assert fields.plain() == {"a": [1]}


def test_plain__has_text_before_the_parts_that_came_beside_it(fields):
    fields.add("content", "so", 1)
    fields.add("content", [{"type": "image"}], 1)
    fields.add("empty", "", 1)
    fields.add("empty", [1], 1)
    fields.add("none", "so", 1)
    fields.add("none", 5, 1)

    assert fields.plain() == {
        "content": [{"type": "text", "text": "so"}, {"type": "image"}],
        "empty": [1],
        "none": 5,
    }


def test_set__counts_the_last_alone(fields, spent):
    fields.set("a", "one", 50)
    fields.set("a", None, 70)
    fields.set("a", "two", 20)

    assert fields.plain() == {"a": "two"}
    assert sum(spent) == 1 + PART_COST + 20


def test_grow__keeps_the_largest_counts_and_pays_for_what_is_kept(fields, spent):
    fields.grow("usage", {"in": 5, "out": 0}, 30)
    fields.grow("usage", {"in": 5, "out": 9}, 31)
    assert sum(spent) == 5 + PART_COST + 31
    fields.grow("usage", {"in": 0, "more": 1}, 20)
    assert fields.get("usage") == {"in": 5, "out": 9, "more": 1}
    assert sum(spent) == 5 + PART_COST + 51
    fields.grow("usage", {"in": 1}, 99)  # nothing new

    assert sum(spent) == 5 + PART_COST + 51
    assert fields.get("usage") == {"in": 5, "out": 9, "more": 1}


def test_complete__goes_on_where_the_bits_ended_and_refuses_another_text(fields):
    fields.add("a", "Hel", 1)
    fields.complete("a", "Hello", 1)
    fields.complete("b", "new", 1)
    fields.complete("c", [1], 1)

    assert fields.plain() == {"a": "Hello", "b": "new", "c": [1]}
    fields.complete("a", "Hello", 1)
    with pytest.raises(BadEventError):
        fields.complete("a", "Hell", 1)
    assert fields.plain()["a"] == "Hello"


def test_fields__stop_where_too_much_is_kept():
    def spend(size):
        raise MemoryError(size)

    for take in (
        lambda each: each.add("a", "b", 1),
        lambda each: each.set("a", 1, 1),
        lambda each: each.grow("a", 1, 1),
    ):
        each = Fields(spend)
        with pytest.raises(MemoryError):
            take(each)
        assert each.plain() == {}


@with_cases(
    ("count", "later", "most"),
    [
        (None, 5, 5),
        (5, None, 5),
        (5, 3, 5),
        (3.5, 5, 5),
        ({"a": 5}, None, {"a": 5}),
        ({"a": 5}, 7, {"a": 5}),
        ("a", "b", "b"),
        ("a", 5, 5),
        (5, "a", "a"),
    ],
)
def test_larger__is_the_larger_of_counts_and_the_later_of_others(count, later, most):
    assert larger(count, later) == most


def test_as_object__of_anything_else_is_empty():
    assert as_object({"a": 1}) == {"a": 1}
    assert as_object([1]) == as_object(None) == {}


@given(st.lists(st.text("abc", max_size=3)))
def test_add__joins_any_bits(bits):
    fields = Fields(lambda _: None)
    for bit in bits:
        fields.add("a", bit, 1)

    assert fields.plain().get("a", "") == "".join(bits)
