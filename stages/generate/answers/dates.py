"""Read the date that a model's text ends up with, as ISO 8601."""

from __future__ import annotations

from datetime import date

import regex

from evalcube.stages.generate.answers.cues import entries, phrases
from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.values import PatternForm, read_value

_NAMES = entries()["month_names"]
"""Of twelve months each, in seven languages."""
MONTHS = _NAMES[:12]
_MONTH = r"[^\W\d_]{3,10}\.?"
_DAY = r"[0-3]?[0-9]"
_DATE = regex.compile(
    rf"(?<![A-Za-z0-9_./-])(?<!after |(?<![0-9/.-])[0-9]{{1,2}} (?:or|to|and|-|bis|al?|au|à) )"
    rf"(?<![0-9]\.? {_MONTH} {phrases('either_or')} )"
    rf"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,?\s{{1,3}})?(?:"
    rf"(?P<y>[0-9]{{4}})[-/.](?P<m>[01]?[0-9])[-/.](?P<d>{_DAY})(?:T[0-9:.]{{1,16}}Z?)?"
    rf"|(?P<y>[12][0-9]{{3}})(?P<m>[01][0-9])(?P<d>[0-3][0-9])"
    rf"|(?P<y>[0-9]{{4}})\s?[年년]\s?(?P<m>[01]?[0-9])\s?[月월]\s?(?P<d>{_DAY})\s?[日일号]?"
    rf"|(?P<a>{_DAY})(?P<sign>[-/.])\s?(?P<d>{_DAY})[-/.]\s?(?P<y>[0-9]{{4}})"
    rf"|(?P<m>{_MONTH})\s{{0,3}}(?:the\s)?(?P<d>{_DAY})(?:st|nd|rd|th)?,?\s{{0,3}}(?P<y>[0-9]{{4}})"
    rf"|(?P<d>{_DAY})(?:st|nd|rd|th|er|\.|º)?[\s-]{{0,3}}(?:(?:day\s)?of\s|de\s)?(?P<m>{_MONTH}),?[\s-]{{0,3}}(?:de\s|of\s)?(?P<y>[0-9]{{4}})"
    rf"|(?P<y>[0-9]{{4}}),?\s{{1,3}}(?P<m>{_MONTH})\s{{1,3}}(?P<d>{_DAY})"
    rf")(?![\w/]|[-.][0-9]|\.[a-z])",
    regex.IGNORECASE,
)
_NUMBERS: dict[str, int] = {}
for _place, _name in enumerate(_NAMES):
    for _length in range(3, len(_name) + 1):
        # "jui" begins two months
        _short, _number = _name[:_length].lower(), _place % 12 + 1
        _NUMBERS[_short] = _number if _NUMBERS.get(_short, _number) == _number else 0
_NUMBERS["sept"] = 9


def _date(match: regex.Match[str]) -> Mention | None:
    """A date; without a value if the calendar has no such day, or the order of day and month is unclear."""
    year, day, name = int(match["y"]), int(match["d"]), match["m"]
    if name is None:
        first, in_order = int(match["a"]), _valid(year, day, int(match["a"]))
        either = {in_order, _valid(year, first, day)} - {None}
        value = in_order if match["sign"] == "." and in_order else either.pop() if len(either) == 1 else None
        return Mention(match.start(), match.end(), value)
    month = int(name) if name.isdecimal() else _NUMBERS.get(name.lower().rstrip("."), 0)
    return (
        Mention(match.start(), match.end(), _valid(year, month, day)) if month or name.isdecimal() else None
    )


_DATES = PatternForm(_DATE, _date, counts=True)


def last_date(text: str) -> str | None:
    """The date a text ends up with, as YYYY-MM-DD; None if there is none, or if it may be either of two.

    Read are ISO dates, with or without separators, dates with the month's name in either order and in seven languages,
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


def _valid(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None
