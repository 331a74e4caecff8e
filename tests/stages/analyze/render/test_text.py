"""Texts and numbers as tables show them: short, safe, and never saying more than there is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.render.text import (
    ABSENT,
    cell_markdown,
    code,
    markdown,
    number,
    percent,
    printable,
    sentence,
    shorten,
    significant,
)
from tests.cases import with_cases


@with_cases(
    ("text", "limit", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc… (1 more characters)"),
        ("a\r\nb\tc", 9, "a\nb\tc"),
        ("a\x07", 9, "a⟨U+0007⟩"),
        ("x" * 5000, 1, "x… (4,999 more characters)"),
    ],
)
def test_printable__says_how_much_it_leaves_out(text, limit, shown):
    assert printable(text, limit) == shown


@with_cases(
    ("text", "span"),
    [
        ("a b", "`a b`"),
        ("a`b", "`` a`b ``"),
        ("a``b`c", "``` a``b`c ```"),
        ("a|b", "`a\\|b`"),
        ("a\nb", "`a b`"),
        (" ", ABSENT),
        ("", ABSENT),
    ],
)
def test_code__is_one_span_that_its_text_cannot_end(text, span):
    assert code(text) == span
    assert code("a|b", cell=False) == "`a|b`"


def test_code__has_160_characters_at_most():
    assert code("x" * 160) == f"`{'x' * 160}`"
    assert "1 more characters" in code("x" * 161)


@with_cases(
    ("text", "live"),
    [
        ("plain text", False),
        ("@everyone", True),
        ("see http://x", True),
        ("www.x", True),
        ("#12", True),
        ("!5", True),
        ("~label", True),
        ("~5", False),
        (":smile:", True),
        ("GH-5", True),
        ("GH-x", False),
        ("1234567", False),
        ("12345a7", True),
        ("12345a", False),
        ("a" * 40, True),
        ("a1" * 21, False),
        ("a # b", False),
    ],
)
def test_cell_markdown__is_code_where_something_would_come_to_life(text, live):
    assert (cell_markdown(text)[0] == "`") == live
    assert ("`" in sentence(f"say {text}")) == live
    if not live:
        assert cell_markdown(text) == markdown(text)


def test_markdown__escapes_its_marks():
    assert markdown("a*b_c|d<e>&`[x]~#\\") == "a\\*b\\_c\\|d&lt;e&gt;&amp;\\`\\[x\\]\\~\\#\\\\"


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "ab…efg"), ("abcdefg", 5, "ab…fg"), ("a\nb", 9, "a b")],
)
def test_shorten__cuts_in_the_middle(text, limit, short):
    assert shorten(text, limit) == short


@given(st.text("abc-", max_size=30), st.integers(3, 20))
def test_shorten__is_never_longer_and_keeps_both_ends(text, limit):
    short = shorten(text, limit)

    assert len(short) <= limit
    assert short == text or (text.startswith(short.split("…")[0]) and text.endswith(short.split("…")[1]))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1234.5, 0, "1,234"), (1234.56, 1, "1,234.6"), (-0.4, 1, "-0.4"), (math.nan, 1, ABSENT)],
)
def test_number__has_so_many_decimals(value, digits, text):
    assert number(value, digits) == text


@with_cases(
    ("share", "digits", "text"),
    [
        (0.1234, 1, "12.3%"),
        (0.0, 1, "0.0%"),
        (0.00049, 1, "<0.1%"),
        (0.0006, 1, "0.1%"),
        (0.004, 0, "<1%"),
        (0.006, 0, "1%"),
        (1.0, 0, "100%"),
        (math.nan, 1, ABSENT),
    ],
)
def test_percent__shows_nothing_only_for_nothing(share, digits, text):
    assert percent(share, digits) == text


@with_cases(
    ("value", "digits", "text"),
    [
        (0.012345, 3, "0.0123"),
        (12345.0, 3, "12,345"),
        (123.0, 3, "123"),
        (12.3, 3, "12.3"),
        (-0.5, 2, "-0.50"),
        (1e-20, 3, "0.000000000000"),
        (0.0, 3, "0"),
        (math.inf, 3, "inf"),
        (math.nan, 3, ABSENT),
    ],
)
def test_significant__has_so_many_digits_and_no_exponent(value, digits, text):
    assert significant(value, digits) == text
