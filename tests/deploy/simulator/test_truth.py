import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.deploy.errors import SimulatorError
from evalcube.deploy.simulator.truth import (
    HEADER,
    MAX_LENGTH,
    Truth,
    decode,
    encode,
    judge_headers,
    judged_quality,
    trial_headers,
)
from tests.cases import with_cases

truths = st.builds(
    Truth,
    answer=st.text(max_size=80),
    options=st.lists(st.text(max_size=20), max_size=5).map(tuple),
    difficulty=st.floats(2.0**-30, 2.0**30),
    guess=st.floats(0, 1),
    repeat=st.integers(0, 2**63 - 1),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(truths)
def test_decode__reads_back_what_encode_wrote(truth):
    value = encode(truth)

    assert decode(value) == truth
    assert decode(value.encode("ascii")) == truth


@given(truths)
def test_encode__fits_in_a_header(truth):
    value = encode(truth)

    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_decode__takes_garbage_for_absent(value):
    assert decode(value) is None


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("answer", "options", "difficulty", "guess", "repeat", "other"), json_values),
    )
)
def test_decode__never_raises_on_a_wrong_record(record):
    truth = decode(json.dumps(record))

    assert truth is None or isinstance(truth.answer, str)


@pytest.mark.parametrize(
    "change",
    [
        {"difficulty": 0},
        {"difficulty": 10**400},
        {"guess": 1.5},
        {"options": "ab"},
        {"answer": 7},
        {"more": 1},
    ],
    ids=str,
)
def test_decode__takes_a_value_out_of_range_for_absent(change):
    good = {"answer": "7", "options": [], "difficulty": 1.0, "guess": 0.0, "repeat": 0}

    assert decode(json.dumps(good)) == Truth("7")
    assert decode(json.dumps(good | change)) is None


def test_decode__takes_deep_nesting_for_absent():
    assert decode("[" * 20_000) is None


def test_encode__refuses_what_is_too_long():
    with pytest.raises(SimulatorError, match=str(MAX_LENGTH)):
        encode(Truth("x" * MAX_LENGTH))

    assert decode(json.dumps({"answer": "x" * MAX_LENGTH})) is None


def test_trial_headers__bring_the_truth_and_nothing_else():
    headers = trial_headers("41", ("41", "7"), 4.0, 0.5, 2)

    assert headers == {
        HEADER: '{"answer":"41","options":["41","7"],"difficulty":4.0,"guess":0.5,"repeat":2}',
    }


@pytest.mark.parametrize(
    "wrong",
    [
        ("7", (), 0.0, 0.0, 0),
        ("7", (), 1.0, 1.5, 0),
        ("7", (), 1.0, 0.0, -1),
        ("x" * MAX_LENGTH, (), 1.0, 0.0, 0),
    ],
    ids=["difficulty", "guess", "repeat", "length"],
)
def test_trial_headers__refuse_what_the_server_would_ignore(wrong):
    with pytest.raises(SimulatorError):
        trial_headers(*wrong)


def test_judge_headers__tell_the_quality_and_no_answer():
    headers = judge_headers(0.75, 3)

    assert headers == {
        HEADER: '{"answer":"","options":[],"difficulty":1.0,"guess":0.0,"repeat":3,"quality":0.75}',
    }


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_judge_headers__refuse_a_quality_out_of_range(wrong):
    with pytest.raises(SimulatorError, match="quality"):
        judge_headers(wrong, 0)


@with_cases(
    ("right", "scores", "expected"),
    [
        (True, [], 1.0),
        (False, [], 0.0),
        (None, [], 0.5),
        (None, [None, None], 0.5),
        (None, [1.0, 5.0], 0.5),
        (None, [4.0, None], 0.75),
        (True, [1.0, None], 0.5),
        (False, [5.0, 5.0], 2 / 3),
        (True, [3.0, 2.0], 1.75 / 3),
    ],
)
def test_judged_quality__is_the_mean_of_what_is_known(right, scores, expected):
    assert judged_quality(right, scores) == expected


@given(st.none() | st.booleans(), st.lists(st.none() | st.floats(1, 5), max_size=2))
def test_judged_quality__is_a_share_that_a_judge_may_be_given(right, scores):
    assert 0.0 <= judged_quality(right, scores) <= 1.0
    assert decode(judge_headers(judged_quality(right, scores), 0)[HEADER]).quality == judged_quality(
        right, scores
    )
