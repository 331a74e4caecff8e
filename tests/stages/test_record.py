"""Records of replies: there and back, and never anything but ValueError for what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.record import Record


@given(st.integers(100, 599), st.floats(0, 1e6), st.binary())
def test_decode__gives_back_what_was_encoded(status, latency, body):
    record = Record.decode(Record(status, latency, body).encode())

    assert (record.status, record.body) == (status, body)
    assert record.latency == pytest.approx(latency, abs=1e-6)


@pytest.mark.parametrize(
    "data",
    [
        b"",
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
