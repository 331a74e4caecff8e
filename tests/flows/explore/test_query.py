import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.query import LONGEST, MOST_ITEMS, Query
from evalcube.flows.read.trials.escaping import jsonable
from tests.cases import with_cases


def test_key__does_not_depend_on_order_and_escapes_as_a_browser_does():
    one = Query.of([("where", "a=1..2"), ("task", "b&c"), ("task", "ä (x)")])
    other = Query.of([("task", "ä (x)"), ("where", "a=1..2"), ("task", "b&c")])

    assert one.key == other.key == "task=%C3%A4%20(x)&task=b%26c&where=a%3D1..2"


@pytest.mark.parametrize(
    ("items", "fragment"),
    [
        ([("task", "a")] * (MOST_ITEMS + 1), "settings"),
        ([("grep", "x" * LONGEST)], "too long"),
    ],
)
def test_of__bounds_what_is_asked(items, fragment):
    with pytest.raises(SweepError, match=fragment):
        Query.of(items)


@with_cases("text", ["-1", "1.5", "x", "²", "9" * 400])
def test_number__refuses_what_is_none(text):
    with pytest.raises(SweepError, match="limit"):
        Query.make(limit=text).number("limit", 5, 0, 100)


@pytest.mark.parametrize("most", [100, 10**9, 10**12, 10**15])
def test_number__is_within_its_bounds(most):
    assert Query.make(limit=str(most)).number("limit", 5, 0, most) == most
    with pytest.raises(SweepError, match="limit"):
        Query.make(limit=str(most + 1)).number("limit", 5, 0, most)


def test_one__refuses_several_values_and_takes_none_for_the_default():
    query = Query.make(sort=["a", "b"], mode="")

    assert query.one("mode", "C_P") == "C_P"
    with pytest.raises(SweepError, match="2 values"):
        query.one("sort")


def test_jsonable__has_no_number_that_json_lacks_and_nothing_of_numpy():
    document = {
        "a": np.array([1.5, np.nan]),
        "b": (np.float32(0.5), np.int64(3), np.inf),
        1: {"c": None, "d": True},
    }

    assert jsonable(document) == {"a": [1.5, None], "b": [0.5, 3, None], "1": {"c": None, "d": True}}
