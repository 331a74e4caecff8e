"""What errors show of what they refuse, and which arguments are refused."""

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.errors import (
    ConfigError,
    Problem,
    SweepError,
    TemplateError,
    WrongTypeError,
    as_list,
    need_name,
    need_number,
    need_path,
    need_text,
    no_bare_text,
    told,
)
from tests.cases import with_cases


def problem(**parts):
    return replace(Problem("a.yaml", 3, "b", "1", "must be c", "Do"), **parts)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "a.yaml:3: b: must be c, got 1. Do"),
        ({"line": None}, "a.yaml: b: must be c, got 1. Do"),
        ({"field": ""}, "a.yaml:3: must be c, got 1. Do"),
        ({"value": "", "remedy": ""}, "a.yaml:3: b: must be c"),
    ],
)
def test_problem__says_what_it_has(parts, text):
    assert str(problem(**parts)) == text


@pytest.mark.parametrize(("count", "lines", "last"), [(50, 50, "l50"), (51, 51, "and 1 more problems")])
def test_config_error__shows_fifty_problems_and_keeps_all(count, lines, last):
    error = ConfigError([problem(rule=f"l{number + 1}") for number in range(count)])

    shown = error.message.splitlines()
    assert (len(shown), len(error.problems), last in shown[-1]) == (lines, count, True)
    assert copy(error).problems == error.problems


def test_template_error__keeps_its_place_on_its_way_between_processes():
    error = copy(TemplateError("bad", "Mend it", where=(1, "content"), line=2))

    assert (error.message, error.remedy, error.where, error.line) == ("bad", "Mend it", (1, "content"), 2)


@with_cases(
    ("value", "shown"),
    [
        (None, "None"),
        (1.5, "1.5"),
        ("x" * 58, repr("x" * 58)),
        ("x" * 59, "a str"),
        ((1, 2), "(1, 2)"),
        ({"a": 1}, "{'a': 1}"),
        ({}.keys(), "a dict_keys"),
        (object(), "an object"),
        (range(2), "a range"),
    ],
)
def test_told__shows_short_plain_values_and_kinds_of_others(value, shown):
    assert told(value) == shown


@with_cases("value", [None, ["a"], ("a", 1), [Path("a")], {"a"}, iter([1]), np.array([1])])
def test_no_bare_text__takes_lists(value):
    no_bare_text(models=value)


@with_cases("value", ["a", b"a", 3, [object()], [b"a"]])
def test_no_bare_text__refuses_what_is_no_list_of_texts(value):
    with pytest.raises(WrongTypeError, match="`models`"):
        no_bare_text(tasks=["b"], models=value)


def test_as_list__takes_a_text_for_a_list_of_one():
    assert as_list("where", "a") == ("a",)
    assert as_list("where", ["a", "b"]) == ["a", "b"]
    with pytest.raises(WrongTypeError, match="`where`: 3"):
        as_list("where", 3)


def test_need__takes_what_is_asked_for():
    assert need_text("a", "b") == need_path("a", Path("b")) == need_path("a", "b") == "b"
    assert need_name("a", 3) == need_name("a", np.int64(3)) == need_name("a", "3") == "3"


@with_cases(
    ("need", "value"),
    [
        (need_text, 1),
        (need_text, b"a"),
        (need_path, 1),
        (need_path, b"a"),
        (need_name, True),
        (need_name, 1.5),
    ],
)
def test_need__refuses_others_by_name(need, value):
    with pytest.raises(SweepError, match="`a`"):
        need("a", value)


@with_cases("value", [3, 10**400, np.int8(3), True, 2.5, "3", b"3", None, float("nan"), float("inf")])
def test_need_number__refuses_what_is_none(value):
    kinds = [whole for whole in (False, True) if not refuses(need_number, value, whole=whole)]

    known = {3: [False, True], 10**400: [False, True], 2.5: [False], float("inf"): [False]}
    assert kinds == ([] if isinstance(value, bool) else known.get(value, []))


def refuses(check, value, **options):
    try:
        check("a", value, **options)
    except WrongTypeError:
        return True
    return False
