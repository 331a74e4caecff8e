"""Scores of other tools become right and wrong, and nothing is rounded unasked."""

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.samples import Answer, Run, Scale, canonical, clean
from evalcube.stages.reply.status import Status
from tests.cases import with_cases

RUN = Run("tool", "task", "match", "model")


ONE = Scale()


def grade(score, scale=ONE, **fields):
    return scale.grade(RUN, Answer(score=score, **fields), "log, line 1")


@with_cases(
    ("score", "status", "share"),
    [
        ("C", Status.CORRECT, 1),
        ("I", Status.INCORRECT, 0),
        ("N", Status.INVALID, 0),
        (True, Status.CORRECT, 1),
        (False, Status.INCORRECT, 0),
        (1, Status.CORRECT, 1),
        (0.0, Status.INCORRECT, 0),
        ("1.0", Status.CORRECT, 1),
        ("yes", Status.CORRECT, 1),
    ],
)
def test_grade__takes_right_and_wrong_as_the_tool_says(score, status, share):
    assert grade(score) == (status, share)


@pytest.mark.parametrize("score", [None, float("nan")])
def test_grade__gives_nothing_where_nothing_was_scored(score):
    assert grade(score) is None


@with_cases(
    ("score", "message"),
    [
        (0.5, r"log, line 1, score 'match': 0\.5 is neither right nor wrong"),
        ("P", "0.5 is neither right nor wrong"),
        (7, "7 is neither right nor wrong"),
        (-1, "-1 is neither"),
        ([1], r"\[1\] is no number"),
        ({"a": 1}, "is no number"),
        ("perfect", '"perfect" is no number'),
        (float("inf"), "is no number"),
        (10**400, "is no number"),
    ],
)
def test_grade__refuses_what_is_neither(score, message):
    with pytest.raises(SweepError, match=message):
        grade(score)


def test_grade__goes_by_the_threshold_and_keeps_the_share():
    scale = Scale(0.5)

    assert grade(0.5, scale) == (Status.CORRECT, 0.5)
    assert grade(0.49, scale) == (Status.INCORRECT, 0.49)


def test_grade__believes_the_tool_how_an_answer_ended_only_if_it_is_wrong():
    assert grade(1, finish="length") == (Status.CORRECT, 1)
    assert grade(0, finish="length") == (Status.TRUNCATED, 0)
    assert grade(0, finish="refused") == (Status.REFUSED, 0)
    assert grade(0, unread=True) == (Status.INVALID, 0)


def test_scale__refuses_what_is_none():
    with pytest.raises(SweepError, match="2 is not above 0"):
        Scale(2)


def test_name__differs_where_grades_do():
    assert Scale().name("match") == "match"
    assert Scale(0.5).name("match") == "match>=0.5"


def test_canonical__has_one_form_for_equal_values():
    assert (
        canonical({"b": 1, "a": None, "c": [], "d": {"y": float("nan"), "x": (1,)}})
        == '{"b":1,"d":{"x":[1],"y":"nan"}}'
    )


def test_named__cuts_and_refuses():
    assert clean(" a\n b ", "model", "log", "x") == "a b"
    assert len(clean("x" * 9999, "model", "log", "x")) == 500
    with pytest.raises(SweepError, match=r"^log: .* model"):
        clean(None, "model", "log", "x")
