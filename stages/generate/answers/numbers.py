"""Read the integer that a model's text ends up with."""

from __future__ import annotations

import re
from collections import deque

from stages.generate.answers.explicit import CANDIDATES, bold_passages, explicit_lines, normalised

_NUMBER = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)(?:(?<![\w)\]}-])(?<![0-9)\]}] )(?P<sign>-|\A- |negative |minus ))?"
    r"(?P<digits>[0-9]++(?:[.,_\u00a0\u2009\u202f][0-9]++)*+)(?![\w^])",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[0-9]++(?:\.0++)?+")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:([,_\u00a0\u2009\u202f])[0-9]{3})(?:\1[0-9]{3})*+(?:\.0++)?+")
_OPERATOR_NEXT = re.compile(r"\s{0,3}(?:[-+*/×·÷^]|\\times|\\cdot|(?:times|plus|minus)\b)\s{0,3}[-(0-9]")
_ALTERNATIVES = re.compile(r"-?[0-9]++[\s$*]{0,4}or\b[\s$*]{0,4}-?[0-9]", re.IGNORECASE)


def last_integer(text: str) -> str | None:
    """The integer a text ends up with, in plain decimal digits; None if there is none.

    Thousands separators, Unicode minus signs, LaTeX and a decimal part of zeros are understood. The number is
    handled as text, so that one of any length is read without an error.

    Examples
    --------
    >>> last_integer("3 + 4 = 7, so the answer is **7**. (Checked twice.)")
    '7'
    >>> last_integer("Answer: −1,234.")
    '-1234'
    >>> last_integer("half of it") is None
    True
    """
    text = normalised(text)
    for segment in explicit_lines(text):
        if _ALTERNATIVES.match(segment):
            return None
        found = _leading_integer(segment) or _final_integer(segment)
        if found is not None:
            return found
    for passage in bold_passages(text):
        match = _NUMBER.match(passage)
        if match and match.end() >= len(passage.rstrip(" .!")):
            found = _integer(match)
            if found is not None:
                return found
    return _final_integer(text)


def _leading_integer(segment: str) -> str | None:
    """The integer a segment begins with, unless a calculation begins there."""
    match = _NUMBER.match(segment)
    if match is None or _OPERATOR_NEXT.match(_skip_decoration(segment, match.end())):
        return None
    return _integer(match)


def _skip_decoration(segment: str, start: int) -> str:
    return segment[start:].lstrip("$`\\)")


def _final_integer(text: str) -> str | None:
    for match in reversed(deque(_NUMBER.finditer(text), maxlen=CANDIDATES)):
        found = _integer(match)
        if found is not None:
            return found
    return None


def _integer(match: re.Match[str]) -> str | None:
    digits = match["digits"]
    if not (_PLAIN.fullmatch(digits) or _THOUSANDS.fullmatch(digits)):
        return None
    whole = re.sub("[^0-9]", "", digits.split(".", 1)[0]).lstrip("0")
    return ("-" if match["sign"] and whole else "") + (whole or "0")
