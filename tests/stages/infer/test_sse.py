"""Streams of events come apart in the same way, however they were cut on their way."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.sse import Events, TooLargeError


def parse(pieces, limit=10**6):
    events = Events(limit)
    found = [data for piece in pieces for data in events.feed(piece)]
    return [*found, *events.finish()]


lines = st.sampled_from(
    [
        b"",
        b"data: a",
        b"data:b",
        b"data",
        b": talk",
        b"event: x",
        b"id",
        "data: Grüße 😀".encode(),
        b"\xff",
        b"data: ",
    ]
)
ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
texts = st.lists(st.tuples(lines, ends), max_size=30).map(
    lambda parts: b"".join(line + end for line, end in parts)
)


@st.composite
def cut(draw):
    """A stream, and the same in pieces."""
    whole = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + draw(texts | st.binary(max_size=60))
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=20)))
    bounds = [0, *places, len(whole)]
    return whole, [whole[a:b] for a, b in pairwise(bounds)]


@given(cut())
def test_feed__any_cut_gives_the_same_events(stream):
    whole, pieces = stream

    assert parse(pieces) == parse([whole]) == parse([bytes([byte]) for byte in whole])


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff"), min_size=1), max_size=10),
    ends,
)
def test_feed__gives_what_was_written(texts, end):
    stream = b"".join(b": hello%b%bdata: %b%b%b" % (end, end, text.encode(), end, end) for text in texts)

    assert parse([stream]) == [text.encode() for text in texts]


def test_feed__joins_the_lines_of_an_event_and_skips_what_is_no_data():
    stream = b"\xef\xbb\xbfdata: 1\r\nevent: e\r\ndata:2\rid: 7\ndata\n: comment\nretry: 3\n\n\n\ndata: end\n"

    assert parse([stream]) == [b"1\n2\n", b"end"]


@pytest.mark.parametrize(
    "piece", [b"data: " + b"x" * 500, b"data: " + b"x\ndata: " * 100, b"data\n" * 100, b": " + b"x" * 500]
)
def test_feed__bounds_an_event(piece):
    with pytest.raises(TooLargeError):
        parse([piece] * 100, limit=300)


def test_feed__lines_of_data_cost_something_though_they_are_empty():
    with pytest.raises(TooLargeError):
        parse([b"data\n" * 10], limit=300)


def test_feed__comments_and_many_small_events_are_no_large_one():
    events = Events(300)

    found = [data for _ in range(1000) for data in events.feed(b": keep alive\n\ndata: 1\n\n")]

    assert found == [b"1"] * 1000
    assert parse([b": keep alive\n" * 1000], limit=300) == []


def test_feed__of_a_long_event_in_single_bytes_takes_linear_time():
    text = json.dumps("x" * 200_000).encode()
    events = Events(10**6)

    found = [data for byte in b"data: " + text + b"\n\n" for data in events.feed(bytes([byte]))]

    assert found == [text]
