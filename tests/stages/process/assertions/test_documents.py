"""Documents that outputs hold: what is read, and what is refused."""

from __future__ import annotations

import pytest

from evalcube.stages.process.assertions.documents import DocumentError, parse_document
from tests.cases import with_cases

"""Seconds of CPU time that nothing here takes a hundredth of unless it goes on for ever."""


@with_cases(
    "text", ["NaN", "[Infinity]", "", "{'a': 1}", "\ufeff1", "1 2", "[" * 101 + "]" * 101, " " * 2_000_001]
)
def test_parse_document__refuses(text: str) -> None:
    with pytest.raises(DocumentError):
        parse_document(text)


def test_parse_document__takes_what_json_allows() -> None:
    assert parse_document("[" * 100 + "]" * 100)
    assert parse_document("9" * 5_000) == float("inf")
    assert parse_document(' {"a": 1, "a": 2}\n') == {"a": 2}
    assert parse_document(r'"\ud800"') == "\ud800"
