import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.errors import SimulatorError
from deploy.simulator.truth import MAX_LENGTH, Truth, decode, encode

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
