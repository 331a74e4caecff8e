"""From a reading to a row: every way a reply can end, and sizes that never change."""

import gzip
import math
import random
import subprocess
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.process.grading import (
    GZIP_LEVEL,
    Outcome,
    compressed_size,
    grade_trial,
    is_looping,
    second_status,
)
from evalcube.stages.process.reading import Reading
from evalcube.stages.reply.status import COMPLETED, Status
from tests.cases import with_cases


def graded(
    answer="4",
    finish="stop",
    reasoning="",
    parse=lambda text: text or None,
    grade=lambda answer: answer == "4",
):
    reading = Reading(answer, reasoning, finish, 7, 9, 0.5)
    return grade_trial(reading, 0.25, parse, grade)


TABLE = [
    # finish, answer, status, parsed
    ("stop", "4", Status.CORRECT, "4"),
    ("stop", "5", Status.INCORRECT, "5"),
    ("stop", "", Status.INVALID, None),
    ("length", "4", Status.TRUNCATED, None),
    ("length", "5", Status.TRUNCATED, None),
    ("length", "", Status.TRUNCATED, None),
    ("context", "", Status.TRUNCATED, None),
    ("refused", "4", Status.REFUSED, None),
    ("refused", "5", Status.REFUSED, None),
    ("refused", "", Status.REFUSED, None),
]


@with_cases(("finish", "answer", "status", "parsed"), TABLE)
def test_grade_trial__status(finish, answer, status, parsed):
    outcome = graded(answer, finish)

    assert (outcome.status, outcome.parsed) == (status, parsed)
    assert (status in COMPLETED) == (finish in {"stop", "refused"})


@pytest.mark.parametrize("finish", ["length", "context", "refused"])
def test_grade_trial__what_did_not_end_well_is_neither_parsed_nor_graded(finish):
    def never(*_):
        raise AssertionError

    graded("4", finish, parse=never, grade=never)


def test_grade_trial__an_empty_answer_can_be_one():
    assert graded("x", parse=lambda _: "", grade=lambda answer: answer == "").status is Status.CORRECT


def test_grade_trial__grade_gets_what_was_parsed():
    seen = []

    graded(" 4 ", parse=str.strip, grade=lambda answer: bool(seen.append(answer)))

    assert seen == ["4"]


def test_grade_trial__passes_on_sizes():
    outcome = graded(reasoning="ü" * 500)

    assert (outcome.status, outcome.parsed, outcome.guess_chance) == (Status.CORRECT, "4", 0.25)
    assert (outcome.tokens, outcome.prompt_tokens, outcome.latency) == (9, 7, 0.5)
    assert outcome.reasoning_bytes == 1000
    assert outcome.compressed_bytes == compressed_size(("ü" * 500).encode())


def test_grade_trial__no_trace_has_no_size():
    outcome = graded()

    assert (outcome.reasoning_bytes, outcome.compressed_bytes) == (0, 0)


def test_grade_trial__a_trace_with_half_a_character_has_a_size():
    outcome = graded(reasoning="a\ud800b")

    assert outcome.reasoning_bytes == 5
    assert outcome.compressed_bytes > 20


def test_outcome__of_a_trial_that_is_none_is_all_missing():
    outcome = Outcome(Status.MISSING)

    assert (outcome.tokens, outcome.prompt_tokens, outcome.reasoning_bytes, outcome.compressed_bytes) == (
        -1,
    ) * 4
    assert math.isnan(outcome.latency)
    assert math.isnan(outcome.guess_chance)


# as of `gzip -6 -n`
VECTORS = {b"": 0, b"a": 21, b"a" * 1000: 29, b"the sum is 41, wait, 42. " * 40: 54, bytes(range(256)): 279}


@pytest.mark.parametrize("data", VECTORS, ids=[f"{len(data)} bytes" for data in VECTORS])
def test_compressed_size__vectors(data):
    assert compressed_size(data) == VECTORS[data]


@given(st.binary(min_size=1, max_size=3000))
def test_compressed_size__is_that_of_a_gzip_file(data):
    packed = gzip.compress(data, GZIP_LEVEL, mtime=0)

    assert compressed_size(data) == len(packed)
    assert gzip.decompress(packed) == data
    assert packed[4:8] == b"\0\0\0\0"


@pytest.mark.cluster
def test_compressed_size__is_the_same_in_another_process_and_at_another_time():
    data = b"so the first part holds because the rule applies " * 99
    code = f"from evalcube.stages.process.grading import compressed_size; print(compressed_size({data!r}))"

    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert int(other.stdout) == compressed_size(data)


@with_cases(
    ("finish", "status", "score", "expected"),
    [
        ("stop", Status.INVALID, 1, Status.CORRECT),
        ("stop", Status.CORRECT, 0.5, Status.INCORRECT),
        ("stop", Status.CORRECT, None, Status.INVALID),
        ("length", Status.TRUNCATED, 1, Status.CORRECT),
        ("length", Status.TRUNCATED, 0, Status.TRUNCATED),
        ("refused", Status.REFUSED, None, Status.REFUSED),
        ("context", Status.TRUNCATED, 1, Status.TRUNCATED),
    ],
)
def test_second_status__of_a_cut_or_refused_reply_is_what_it_was_unless_right(
    finish, status, score, expected
):
    reading = Reading("text", "", finish, 1, 1, 0.1)

    assert second_status(reading, status, lambda _: score) == expected


@with_cases(
    ("text", "loops"),
    [
        ("Let me think. " + "Wait, is that right? " * 200, True),
        ("\ud83d" * 2000, True),
        ("".join(f"Wait, let me check that again, attempt {i}.\n" for i in range(600)), False),
        ("".join(f"Step {i}: {i} * 3 = {3 * i}, so far {i * i}.\n" for i in range(600)), False),
        ("Wait, is that right? " * 9, False),
        ("", False),
    ],
)
def test_is_looping__where_the_end_repeats_itself(text, loops):
    assert is_looping(text) is loops


@given(st.integers(0, 2**32), st.integers(150, 2000))
def test_is_looping__of_moves_in_any_order_is_none(seed, moves):
    rng = random.Random(seed)

    assert not is_looping("".join(f"Move a disk to {rng.choice('ABC')}\n" for _ in range(moves)))


@given(st.text(min_size=1, max_size=100), st.integers(0, 5000))
def test_is_looping__of_what_is_said_again_and_again(said, before):
    assert is_looping("x" * before + said * (20_000 // len(said)))


@given(
    st.lists(st.text("ab 1\n語", min_size=1, max_size=80), min_size=1, max_size=30),
    st.integers(0, 2**32),
    st.floats(0, 0.05),
)
def test_is_looping__is_what_gzip_says_of_the_whole_and_of_its_first_half(phrases, seed, slips):
    rng = random.Random(seed)
    said = "".join(rng.choices(phrases, k=20_000))[: rng.randrange(3_000, 20_000)]
    text = "".join(chr(rng.randrange(33, 99)) if rng.random() < slips else c for c in said)
    tail = text[-16_384:].encode()
    half = len(tail) // 2
    whole, first = (len(zlib.compress(part, 6)) for part in (tail, tail[:half]))

    assert is_looping(text) is (whole - first <= 10 + 0.006 * half)
