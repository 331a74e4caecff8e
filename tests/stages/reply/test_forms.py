"""Records of replies: there and back, and never anything but ValueError for what is none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.reply.forms import REPLY_FORMS, Record


@given(st.integers(100, 599), st.floats(0, 1e6), st.binary())
def test_decode__gives_back_what_was_encoded(status, latency, body):
    record = Record.decode(Record(status, latency, body).encode())

    assert (record.status, record.body) == (status, body)
    assert record.latency == pytest.approx(latency, abs=1e-6)


@given(st.floats(0, 1e6), st.sampled_from(sorted(REPLY_FORMS)), st.binary())
def test_decode__gives_back_the_api_and_the_time_to_the_first_token(first_token, api, body):
    record = Record.decode(Record(200, 1.0, body, first_token, api).encode())

    assert (record.api, record.body) == (api, body)
    assert record.first_token == pytest.approx(first_token, abs=1e-6)


def test_encode__of_a_whole_chat_reply_is_as_it_always_was():
    data = b'{"format":1,"status":200,"latency":0.250000}\n{}'

    assert Record(200, 0.25, b"{}").encode() == data
    assert Record.decode(data).api == "chat"
    assert math.isnan(Record.decode(data).first_token)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"format":1,"status":200,"latency":1,"api":"morse"}\n',
        b'{"format":1,"status":200,"latency":1,"api":[]}\n',
        b'{"format":1,"status":200,"latency":1,"first_token":"soon"}\n',
        b"\n",
        b"{}\n",
        b"[]\n",
        b"1\n{}",
        b"null\n",
        b'{"format":2,"status":200,"latency":1}\n',
        b'{"format":1}\n',
        b'{"format":1,"status":"x","latency":1}\n',
        b'{"format":1,"status":[1],"latency":1}\n',
        b'{"format":1,"status":1e999,"latency":1}\n',
        b'{"format":1,"status":200,"latency":1}',
        b"[" * 100_000 + b"\n",
        b"\xff\n",
    ],
)
def test_decode__refuses_what_is_no_record(data):
    with pytest.raises(ValueError, match="not a record"):
        Record.decode(data)


@given(st.binary())
def test_decode__raises_nothing_but_value_error(data):
    with pytest.raises(ValueError, match="not a record"):
        Record.decode(data)
