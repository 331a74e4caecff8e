"""Read the date that a model's text ends up with, as ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from evalcube.stages.generate.answers.values import Form, Mention, read_value

MONTHS = "January February March April May June July August September October November December".split()
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?>[a-z]{0,7})\.?"
_DAY = r"[0-3]?[0-9]"
_DATE = re.compile(
    rf"(?<![\w./-])(?:"
    rf"(?P<y1>[0-9]{{4}})[-/.](?P<m1>[01]?[0-9])[-/.](?P<d1>{_DAY})(?:T[0-9:.]{{1,16}}Z?)?"
    rf"|(?P<a2>{_DAY})[-/.](?P<b2>{_DAY})[-/.](?P<y2>[0-9]{{4}})"
    rf"|(?P<m3>{_MONTH})\s{{0,3}}(?:the\s)?(?P<d3>{_DAY})(?:st|nd|rd|th)?,?\s{{0,3}}(?P<y3>[0-9]{{4}})"
    rf"|(?P<d4>{_DAY})(?:st|nd|rd|th)?[\s-]{{0,3}}(?:of\s)?(?:day\sof\s)?(?P<m4>{_MONTH}),?[\s-]{{0,3}}(?P<y4>[0-9]{{4}})"
    rf"|(?P<y5>[0-9]{{4}}),?\s{{1,3}}(?P<m5>{_MONTH})\s{{1,3}}(?P<d5>{_DAY})"
    rf")(?![\w/]|[-.][0-9])",
    re.IGNORECASE,
)
_NUMBERS = {name[:3].lower(): n for n, name in enumerate(MONTHS, 1)}


class _Dates(Form):
    counts = True

    def mentions(self, line: str) -> Sequence[Mention]:
        return [Mention(match.start(), match.end(), _iso(match)) for match in _DATE.finditer(line)]


_DATES = _Dates()


def last_date(text: str) -> str | None:
    """The date a text ends up with, as YYYY-MM-DD; None if there is none, or if it may be either of two.

    Read are ISO dates, dates with the month's name in either order, and numeric dates with the year last where
    only one order of day and month is possible.

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
    if match["y2"]:
        return _numeric(int(match["a2"]), int(match["b2"]), int(match["y2"]))
    for n in "1345":
        if match[f"y{n}"]:
            month = match[f"m{n}"]
            number = int(month) if n == "1" else _month(month)
            return _valid(int(match[f"y{n}"]), number, int(match[f"d{n}"]))
    return None


def _month(word: str) -> int:
    """Number of a month by its name or an abbreviation of it; 0 if it is another word."""
    word = word.lower().rstrip(".")
    number = _NUMBERS.get(word[:3], 0)  # a pattern that ignores case takes the long s for s
    if not number:
        return 0
    return number if word == "sept" or MONTHS[number - 1].lower().startswith(word) else 0


def _numeric(first: int, second: int, year: int) -> str | None:
    both = {_valid(year, first, second), _valid(year, second, first)} - {None}
    return both.pop() if len(both) == 1 else None


def _valid(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None
