"""How long an endpoint asks to wait, from the headers of several kinds."""

import math
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.reply import (
    Reply,
    RetryClass,
    classify,
    exhausted_limit,
    retry_after,
    seconds_until,
)
from evalcube.stages.infer.retry import concerns_model, is_overload, longest_pause
from tests.cases import with_cases

NOW = 1_700_000_000.0

TIMES = {
    "7": 7.0,
    " 2.5 ": 2.5,
    "-3": 0.0,
    "1s": 1.0,
    "20ms": 0.02,
    "6m0s": 360.0,
    "1h30m": 5400.0,
    "1d": 86400.0,
    "1700000030": 30.0,
    "1700000030500": 30.5,
    "1600000000": 0.0,
    "2023-11-14T22:13:30Z": 10.0,
    "2023-11-14T23:13:30+01:00": 10.0,
    formatdate(NOW + 9, usegmt=True): 9.0,
    formatdate(NOW - 9, usegmt=True): 0.0,
    "": None,
    "soon": None,
    "nan": None,
    "inf": None,
    "1e999": None,
    "5 s": None,
    "0001-01-01T00:00:00+14:00": 0.0,
}


@with_cases("text", TIMES)
def test_seconds_until(text):
    expected = TIMES[text]

    assert seconds_until(text, NOW) == (None if expected is None else pytest.approx(expected))


@given(st.text(max_size=80) | st.from_regex(r"[0-9a-z:.TZ+-]{0,80}"))
def test_seconds_until__never_raises(text):
    seconds = seconds_until(text, NOW)

    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


def test_retry_after__takes_milliseconds_first():
    assert retry_after({"retry-after-ms": "1500", "retry-after": "2"}, NOW) == 1.5
    assert retry_after({"retry-after-ms": "x", "retry-after": "2"}, NOW) == 2.0
    assert retry_after({}, NOW) is None


EXHAUSTED = {
    "nothing": ({}, None),
    "some left": ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "9s"}, None),
    "openai": ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"}, 9.0),
    "openai tokens": ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
    "the longer": (
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "2s",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "5s",
        },
        5.0,
    ),
    "gateway": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000004"}, 4.0),
    "draft": ({"ratelimit-remaining": "0", "ratelimit-reset": "4"}, 4.0),
    "anthropic": (
        {
            "anthropic-ratelimit-input-tokens-remaining": "0",
            "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:30Z",
        },
        10.0,
    ),
    "no reset": ({"x-ratelimit-remaining-requests": "0"}, None),
    "no number": ({"x-ratelimit-remaining-requests": "none", "x-ratelimit-reset-requests": "9s"}, None),
}


@with_cases("case", EXHAUSTED)
def test_exhausted(case):
    headers, seconds = EXHAUSTED[case]

    refill = exhausted_limit(headers, NOW)

    assert (None if refill is None else refill.seconds) == seconds
    assert classify(500, headers, b"", NOW).exhausted == seconds
    assert classify(200, headers, b'{"choices": [{"message": {}}]}', NOW).exhausted == seconds


@pytest.mark.parametrize(
    ("case", "limit"),
    [("openai tokens", "tokens"), ("the longer", "tokens"), ("gateway", ""), ("anthropic", "input-tokens")],
)
def test_exhausted__names_the_limit(case, limit):
    assert classify(429, EXHAUSTED[case][0], b"", NOW).limit == limit


@with_cases(
    ("reply", "seconds"),
    [
        (Reply(RetryClass.FINAL), 0.0),
        (Reply(RetryClass.FINAL, exhausted=3.0), 3.0),
        (Reply(RetryClass.FINAL, exhausted=1e6), 60.0),
        (Reply(RetryClass.RETRY, "http 429", retry_after=5.0), 5.0),
        (Reply(RetryClass.RETRY, "http 503", retry_after=1e9), 600.0),
        (Reply(RetryClass.RETRY, "http 500", retry_after=5.0), 0.0),
        (Reply(RetryClass.RETRY, "http 429", retry_after=5.0, exhausted=9.0), 5.0),
        (Reply(RetryClass.RETRY, "http 429", retry_after=0.0, exhausted=9.0), 0.0),
        (Reply(RetryClass.RETRY, "http 500", retry_after=5.0, exhausted=9.0), 0.0),
        (Reply(RetryClass.RETRY, "http 429", exhausted=9.0), 9.0),
        (Reply(RetryClass.RETRY, "http 429"), 0.0),
    ],
)
def test_longest_pause(reply, seconds):
    assert longest_pause(reply) == seconds


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "soon"}, 60.0),
        ({}, 60.0),
    ],
)
def test_longest_pause__of_headers_counts_a_reset_only_without_retry_after(given, seconds):
    spent = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}

    assert longest_pause(classify(429, {**spent, **given}, b"", NOW)) == seconds


def test_is_overload__is_what_less_load_would_help_against():
    assert is_overload(Reply(RetryClass.RETRY, "timeout"))
    assert is_overload(Reply(RetryClass.RETRY, "http 429"))
    assert not is_overload(Reply(RetryClass.FATAL, "http 429"))
    assert not is_overload(Reply(RetryClass.RETRY, "http 500"))


def test_concerns_model__leaves_other_models_alone():
    assert concerns_model(Reply(RetryClass.FATAL, "http 404"))
    assert not concerns_model(Reply(RetryClass.FATAL, "http 401"))


def test_classify__an_account_without_money_is_no_overload():
    body = b'{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}'

    assert classify(429, {}, body, NOW) == Reply(
        RetryClass.FATAL, "http 429", "You exceeded your current quota"
    )


@with_cases("skew", [0.0, 0.7, 300.0, -300.0, 2 * 86400.0, -2 * 86400.0])
def test_retry_after__dates_are_by_the_clock_of_the_endpoint(skew):
    sent = 1_790_000_000
    headers = {
        "date": format_datetime(datetime.fromtimestamp(sent, UTC), usegmt=True),
        "retry-after": format_datetime(datetime.fromtimestamp(sent + 30, UTC), usegmt=True),
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(sent + 40),
    }

    assert retry_after(headers, sent + skew) == pytest.approx(30.0, abs=0.8)
    assert exhausted_limit(headers, sent + skew) == (pytest.approx(40.0, abs=0.8), "")
    assert retry_after(headers | {"retry-after": "7"}, sent + skew) == 7.0
    assert retry_after(headers | {"date": "no date"}, sent) == 30.0
