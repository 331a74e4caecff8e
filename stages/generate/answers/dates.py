"""Read the date that a model's text ends up with, as ISO 8601."""

from __future__ import annotations

import re
from datetime import date

from evalcube.stages.generate.answers.cues import entries
from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.values import PatternForm, read_value

_NAMES = entries()["month_names"]
"""Of twelve months each, in six languages."""
MONTHS = _NAMES[:12]
_MONTH = r"[^\W\d_]{3,10}\.?"
_DAY = r"[0-3]?[0-9]"
_DATE = re.compile(
    rf"(?<![\w./-])(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,?\s{{1,3}})?(?:"
    rf"(?P<y1>[0-9]{{4}})[-/.](?P<m1>[01]?[0-9])[-/.](?P<d1>{_DAY})(?:T[0-9:.]{{1,16}}Z?)?"
    rf"|(?P<y6>[12][0-9]{{3}})(?P<m6>[01][0-9])(?P<d6>[0-3][0-9])"
    rf"|(?P<y7>[0-9]{{4}})\s?[年년]\s?(?P<m7>[01]?[0-9])\s?[月월]\s?(?P<d7>{_DAY})\s?[日일号]?"
    rf"|(?P<a2>{_DAY})(?P<sign>[-/.])\s?(?P<b2>{_DAY})[-/.]\s?(?P<y2>[0-9]{{4}})"
    rf"|(?P<m3>{_MONTH})\s{{0,3}}(?:the\s)?(?P<d3>{_DAY})(?:st|nd|rd|th)?,?\s{{0,3}}(?P<y3>[0-9]{{4}})"
    rf"|(?P<d4>{_DAY})(?:st|nd|rd|th|er|\.|º)?[\s-]{{0,3}}(?:(?:day\s)?of\s|de\s)?(?P<m4>{_MONTH}),?[\s-]{{0,3}}(?:de\s|of\s)?(?P<y4>[0-9]{{4}})"
    rf"|(?P<y5>[0-9]{{4}}),?\s{{1,3}}(?P<m5>{_MONTH})\s{{1,3}}(?P<d5>{_DAY})"
    rf")(?![\w/]|[-.][0-9])",
    re.IGNORECASE,
)
_NUMBERS: dict[str, int] = {}
for _place, _name in enumerate(_NAMES):
    for _length in range(3, len(_name) + 1):
        # "jui" begins two months
        _short, _number = _name[:_length].lower(), _place % 12 + 1
        _NUMBERS[_short] = _number if _NUMBERS.get(_short, _number) == _number else 0
_NUMBERS["sept"] = 9


def _date(match: re.Match[str]) -> Mention | None:
    named = all(_month(word) for n in "345" if (word := match[f"m{n}"]))
    return Mention(*match.span(), _iso(match)) if named else None


_DATES = PatternForm(_DATE, _date, counts=True)


def last_date(text: str) -> str | None:
    """The date a text ends up with, as YYYY-MM-DD; None if there is none, or if it may be either of two.

    Read are ISO dates, with or without separators, dates with the month's name in either order and in six languages,
    Chinese, Japanese and Korean ones, and numeric dates with the year last: with dots the day comes first, else they
    are read where only one order of day and month is possible.

    Examples
    --------
    >>> last_date("Today is 2021-03-01, so the answer is Friday, March 5th, 2021.")
    '2021-03-05'
    >>> last_date("Answer: 25/12/2020")
    '2020-12-25'
    >>> last_date("Answer: 03/05/2021") is None
    True
    """
    return read_value(text, _DATES)


def _iso(match: re.Match[str]) -> str | None:
    """The date of a match in ISO form; None if the calendar has no such day or the order is unclear."""
    parts = {group[0]: text for group, text in match.groupdict().items() if text}
    year = int(parts["y"])
    if "a" in parts:
        first, second = int(parts["a"]), int(parts["b"])
        return (match["sign"] == "." and _valid(year, second, first)) or _numeric(first, second, year)
    month = parts["m"]
    return _valid(year, int(month) if month.isdecimal() else _month(month), int(parts["d"]))


def _month(word: str) -> int:
    """Number of a month by its name or an abbreviation of it; 0 if it is another word."""
    return _NUMBERS.get(word.lower().rstrip("."), 0)


def _numeric(first: int, second: int, year: int) -> str | None:
    both = {_valid(year, first, second), _valid(year, second, first)} - {None}
    return both.pop() if len(both) == 1 else None


def _valid(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None
