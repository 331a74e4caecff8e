"""How an answer was read, as one code: the place that was found, and what it gave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PLACES = (
    "no place",
    "answer line",
    "box, tag or field",
    "statement",
    "reply's end",
    "correction",
    "whole reply",
    "pattern",
)
"""Where an answer was found; a code has them in its upper half, so they keep their order."""
GIVEN = ("nothing", "no single value", "value", "number", "text", "choice", "JSON", "formula")
"""What a place gave: no single value is one of two, one that is taken back, or one that is not understood."""
_HALF = 16

_NOTED: ContextVar[list[int] | None] = ContextVar("noted", default=None)


def note(place: str, kind: str, *, read: bool = True) -> None:
    """Say how the answer that is being read was found; `read` is whether its place gave a value."""
    codes = _NOTED.get()
    if codes is not None:
        outcome = kind if read else "nothing" if place == "no place" else "no single value"
        codes.append(_HALF * PLACES.index(place) + GIVEN.index(outcome) + 1)


@contextmanager
def collect_codes() -> Iterator[list[int]]:
    """The codes of what is read meanwhile, the first one being the answer's: to grade it may read more."""
    codes: list[int] = []
    token = _NOTED.set(codes)
    try:
        yield codes
    finally:
        _NOTED.reset(token)


def way_of(code: int) -> str | None:
    """What a code says; None for 0, which is nobody's, and for codes of later versions.

    Examples
    --------
    >>> way_of(20), way_of(18), way_of(0)
    ('answer line → number', 'answer line → no single value', None)
    """
    row, column = divmod(code - 1, _HALF)
    if code < 1 or row >= len(PLACES) or column >= len(GIVEN):
        return None
    return f"{PLACES[row]} → {GIVEN[column]}"
