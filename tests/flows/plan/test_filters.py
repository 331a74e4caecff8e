"""Conditions as users write them: what they stand for, and what is said of those that stand for nothing."""

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.filters import (
    alias,
    checked_names,
    checked_where,
    conditions_of,
    differing,
    matching_points,
    meets,
    read_condition,
    read_params,
    split_condition,
    telling,
    unknown_names,
    without,
)
from evalcube.stages.analyze.labelled.selection import keys
from tests.cases import with_cases
from tests.stages.analyze.synthetic import dataset

DATASET = dataset(("big", "small", "other"), tasks=2).assign_coords(
    param_length=(("task", "params"), np.arange(20.0).reshape(2, 10)),
    facet_size=("model", np.array([7.0, 1.0, 1.0])),
    facet_open=("model", np.array([True, False, True], dtype=object)),
    facet_family=("model", np.array(["a", "b", None], dtype=object)),
    model=("model", ["big · 1", "small", "other"]),
)
TABLE = keys(DATASET)


def where(*texts):
    return checked_where(texts, TABLE, DATASET)


def refused(check, *arguments):
    with pytest.raises(SweepError) as caught:
        check(*arguments)
    return caught.value


@with_cases(
    ("text", "key", "condition"),
    [
        ("task = arithmetic", "task", "arithmetic"),
        ("task=arithmetic, boolean", "task", ["arithmetic", "boolean"]),
        ("tier=easy", "tier", "easy"),
        ("length=3", "param_length", 3.0),
        ("param_length=3,5", "param_length", [3.0, 5.0]),
        ("length=3..5", "param_length", (3.0, 5.0)),
        ("length=..5", "param_length", (None, 5.0)),
        ("length=5..", "param_length", (5.0, None)),
        ("size=7", "facet_size", 7.0),
        ("open=TRUE", "facet_open", True),
        ("open=false", "facet_open", False),
        ("family=b", "facet_family", "b"),
        ("model=big", "model_name", "big"),
        ("model=big,small", "model_name", ["big", "small"]),
        ("model=big · 1", "model", "big · 1"),
        ("model=2", "model", "2"),
        ("model_name=big", "model_name", "big"),
    ],
)
def test_checked_where__reads_conditions_by_the_cubes_names(text, key, condition):
    if key == "model" and condition == "2":  # a number of the axis is no label
        assert "there is no model '2'" in refused(where, text).message
        return
    assert where(text) == {key: condition}
    assert conditions_of([text]).keys() == {text.partition("=")[0].strip()}


@with_cases(
    ("texts", "message", "remedy"),
    [
        (["task"], "'task' is no NAME=VALUE", "task=sort"),
        (["=a"], "is no NAME=VALUE", ""),
        (["task= "], "is no NAME=VALUE", ""),
        (["lenght=3"], "no coordinate 'lenght'", "Did you mean 'length'?"),
        (["colour=3"], "no coordinate 'colour'", "There are"),
        (["length=3", "param_length=4"], "'param_length' is given twice", "param_length=one,two"),
        (["task=arithmetik"], "no task 'arithmetik'", "Did you mean 'arithmetic'?"),
        (["task=arithmetic,zzz"], "no task 'zzz'", "There are: 'arithmetic', 'boolean'"),
        (["tier=none"], "no tier 'none'", "'easy', 'medium', 'hard'"),
        (["length=a"], "length is a number, but 'a' is none", ""),
        (["length=a..3"], "length is a number, but 'a' is none", ""),
        (["length=.."], "neither a lowest nor a highest", ""),
        (["size=3"], "no size '3'", "There are: 1, 7"),
        (["size=2..6"], "no size '2..6'", "There are: 1, 7"),
        (["size=..0.5"], "no size '..0.5'", ""),
        (["size=1,4"], "no size '4.0'", "There are: 1.0, 7.0"),
        (["open=5"], "", ""),
    ],
)
def test_checked_where__refuses_what_stands_for_nothing(texts, message, remedy):
    if not message:
        assert where(*texts) == {"facet_open": 5.0}
        return
    error = refused(where, *texts)

    assert message in error.message
    assert remedy in error.remedy


@with_cases("text", ["size=1..6", "size=7..", "size=..1", "size=1,7", "size=1"])
def test_checked_where__takes_a_range_that_holds_any_of_the_numbers(text):
    assert where(text)


def test_checked_where__shows_twelve_of_the_numbers_that_there_are():
    remedy = refused(where, "length=99").remedy

    assert remedy.endswith("9, 10, 11, ...")
    short = DATASET.assign_coords(facet_size=("model", np.array([3.0, 2.0, 1.0])))
    assert refused(checked_where, ["size=9"], keys(short), short).remedy == "There are: 1, 2, 3"


def test_checked_where__takes_a_mapping_as_it_is_and_checks_it():
    given = {"length": (3, None), "task": ["arithmetic"], "model": lambda name: name > "b"}

    found = checked_where(given, TABLE, DATASET)

    assert list(found.values()) == list(given.values())
    assert list(found) == ["param_length", "task", "model_name"]
    assert "no length '50..60'" in refused(checked_where, {"length": (50, 60)}, TABLE, DATASET).message
    assert conditions_of(given) is given


def test_alias__prefers_the_name_as_it_is():
    both = {**TABLE, "param_size": TABLE["facet_size"], "size": TABLE["facet_size"]}

    assert [alias("size", table, "by") for table in (both, {**TABLE, "param_size": None}, {"param_size": None})] == [
        "size", "facet_size", "param_size"
    ]  # fmt: skip
    assert alias("tier", {}, "by") == "tier"
    assert "`by`" in refused(alias, "x", {}, "by").message


def test_checked_names__are_each_named_once():
    assert checked_names([" size", "task", " "], TABLE, "by") == ["facet_size", "task"]
    assert "nothing is named" in refused(checked_names, [" "], TABLE, "by").message
    assert "twice" in refused(checked_names, ["size", "facet_size"], TABLE, "by").message
    assert "`by`" in refused(checked_names, "size", TABLE, "by").message


def test_unknown_names__are_those_of_no_coordinate():
    assert unknown_names(["size", "facet_size", "length", "tier", "task", "x", "param_size"], TABLE) == [
        "x",
        "param_size",
    ]


def test_without__leaves_out_conditions_on_names():
    assert without(["a=1", "b = 2", "a=3"], ["a"]) == ["b = 2"]
    assert without({"a": 1, "b": 2}, ["a"]) == {"b": 2}


@with_cases(
    ("condition", "fulfilling"),
    [
        ("a", [True, False, False, False]),
        ("a,b", [True, True, True, False]),
        (["a"], [True, False, False, False]),
        (["a,b", 5], [False, False, True, False]),
        (lambda text: text < "b", [True, False, True, False]),
        ("", [False] * 4),
        (["a", ""], [True, False, False, False]),
    ],
)
def test_meets__empty_texts_fulfil_nothing(condition, fulfilling):
    assert meets(np.array([["a", "b", "a,b", ""]], dtype=object), condition).tolist() == [fulfilling]


def test_split_condition__is_at_the_first_sign():
    assert split_condition(" a = b=c ") == ("a", "b=c")
    assert "`x`" in refused(split_condition, 5, "x").message


@with_cases(
    ("text", "values", "read"),
    [
        ("a,b", ["a,b", "a"], "a,b"),
        ("a..b", ["a..b"], "a..b"),
        ("a..b", ["a"], "a..b"),
        ("a, b", ["a", None], ["a", "b"]),
        ("1,2", [1.0, None], [1.0, 2.0]),
        ("true", [True, None], True),
        ("true,false", [True], [True, False]),
    ],
)
def test_read_condition__has_the_type_of_the_coordinate(text, values, read):
    assert read_condition("x", text, values) == read


POINTS = [{"length": 4, "depth": 0.5}, {"length": 4}, {"length": 5, "depth": 0.5, "name": "a b"}]


@with_cases(
    ("params", "points"),
    [
        (None, [0, 1, 2]),
        (" ", [0, 1, 2]),
        ("1", [1]),
        ("01", []),
        ("3", []),
        ("length=4", [0, 1]),
        ("length=4.0, depth=0.5", [0]),
        ("name=a b", [2]),
        ('{"length": 5.0}', [2]),
        ("colour=1", []),
    ],
)
def test_matching_points__by_number_or_params(params, points):
    assert matching_points(POINTS, params) == points


def test_read_params__refuses_what_is_no_json():
    assert read_params("a=[1],b=true,c=x") == {"a": [1], "b": True, "c": "x"}
    for text in ("{", '{"a": }', "{" + '"a":[' * 100_000):
        assert "is no JSON object" in refused(read_params, text).message


def test_differing__are_the_params_that_tell_points_apart():
    assert differing(POINTS) == {"length", "depth", "name"}
    assert differing(POINTS[:1]) == differing([]) == set()


@with_cases(
    ("params", "names", "shown"),
    [
        ({"a": 1, "b": 2}, {"b"}, {"b": 2}),
        ({"a": 1, "b": 2}, set(), {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, None, {"a": 1, "b": 2}),
        ({"file": "d/a.jsonl", "kind": "x"}, set(), {"file": "d/a.jsonl", "kind": "x"}),
        (
            {"file": "d/a.jsonl", "sha256": "0123456789"},
            {"sha256", "file"},
            {"file": "d/a.jsonl", "file_version": "01234567"},
        ),
        ({"file": "hf://o/n@abc?split=test", "sha256": "0"}, set(), {"file": "hf://o/n"}),
    ],
)
def test_telling__are_the_params_that_differ_or_all(params, names, shown):
    found = telling(params, names)

    if str(params.get("file", "")).startswith("hf:"):
        assert found["file"].startswith("hf://o/n")
        assert found.keys() == {"file"}
    else:
        assert found == shown
