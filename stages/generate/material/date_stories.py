"""The kinds of question of the task `dates`: wordings, each with the rule that gives the date asked for."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from evalcube.stages.generate.material import material


def days(day: date, count: int) -> date:
    """The date `count` days later; earlier if negative."""
    return day + timedelta(days=count)


def months(day: date, count: int) -> date:
    """The same day of the month `count` months later, or that month's last day if it has no such day.

    Examples
    --------
    >>> months(date(2023, 11, 30), 3).isoformat()
    '2024-02-29'
    """
    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def workdays(day: date, count: int) -> date:
    """The date `count` working days (Monday to Friday) later; earlier if negative; `day` does not count.

    Examples
    --------
    >>> workdays(date(2021, 3, 5), 1).isoformat()
    '2021-03-08'
    """
    step = 1 if count > 0 else -1
    weeks, remaining = divmod(abs(count), 5)
    if (
        remaining == 0
    ):  # the last working day of a whole week is found by walking, as weekends are skipped there
        weeks, remaining = weeks - 1, 5
    day += timedelta(days=7 * weeks * step)
    while remaining:
        day += timedelta(days=step)
        remaining -= day.weekday() < 5
    return day


def weekday_after(day: date, weekday: int, count: int) -> date:
    """The `count`-th such weekday after `day`, which itself does not count."""
    return days(day, (weekday - day.weekday() - 1) % 7 + 1 + 7 * (count - 1))


def weekday_before(day: date, weekday: int, count: int) -> date:
    """The `count`-th such weekday before `day`, which itself does not count."""
    return days(day, -((day.weekday() - weekday - 1) % 7) - 1 - 7 * (count - 1))


def month_end(day: date, count: int) -> date:
    """The last day of the month `count` months later."""
    return months(day.replace(day=1), count + 1) - timedelta(days=1)


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ORDINALS = ("first", "second", "third", "fourth")

_NOTES = material("wordings")["dates"]["notes"]


@dataclass(frozen=True, slots=True)
class Draw:
    """The random part of one question."""

    day: date
    """The date that the story states."""
    n: int
    """The offset, 1 to 60 steps."""
    m: int
    """A smaller number, 2 to 9."""
    k: int
    """A number from 1 to 4."""
    weekday: int
    """A day of the week, 0 = Monday."""


@dataclass(frozen=True)
class Story:
    """One kind of question, as ``stories.toml`` has it."""

    solve: Callable[[Draw], date]
    """The date asked for."""
    level: int
    wordings: Sequence[str]
    """With placeholders; see `evalcube.stages.generate.tasks.dates`."""
    note: str = ""
    """The convention that holds, if one is needed."""
    years: bool = False


_RULES: Mapping[str, Callable[[Draw], date]] = {
    "days_ahead": lambda d: days(d.day, d.n),
    "days_ago": lambda d: days(d.day, -d.n),
    "weeks_ahead": lambda d: days(d.day, 7 * d.n),
    "weeks_ago": lambda d: days(d.day, -7 * d.n),
    "days_after_event": lambda d: days(d.day, d.n),
    "days_before_event": lambda d: days(d.day, -d.n),
    "yesterday_known": lambda d: days(d.day, 1 + d.n),
    "tomorrow_known": lambda d: days(d.day, -1 - d.n),
    "inclusive_days": lambda d: days(d.day, d.n),
    "months_ahead": lambda d: months(d.day, d.n),
    "months_ago": lambda d: months(d.day, -d.n),
    "years_ahead": lambda d: months(d.day, 12 * d.n),
    "years_ago": lambda d: months(d.day, -12 * d.n),
    "weekday_ahead": lambda d: weekday_after(d.day, d.weekday, d.n),
    "weekday_ago": lambda d: weekday_before(d.day, d.weekday, d.n),
    "workdays_ahead": lambda d: workdays(d.day, d.n),
    "workdays_ago": lambda d: workdays(d.day, -d.n),
    "weeks_and_days": lambda d: days(d.day, 7 * d.n + d.m),
    "months_then_days": lambda d: days(months(d.day, d.n), d.m),
    "month_end": lambda d: month_end(d.day, d.n),
    "weekday_after_next": lambda d: days(weekday_after(d.day, d.weekday, 2), d.n),
    "chain": lambda d: days(d.day, d.n - 7 * d.m + d.k),
    "hidden_today": lambda d: days(d.day, d.m + 7 * d.n),
    "nth_weekday": lambda d: weekday_after(month_end(d.day, d.n - 1), d.weekday, d.k),
    "last_weekday": lambda d: weekday_before(days(month_end(d.day, d.n), 1), d.weekday, 1),
    "recurring": lambda d: days(d.day, d.n * (d.m - 1)),
    "workdays_hidden": lambda d: workdays(days(d.day, d.m), d.n),
}

STORIES = {
    name: Story(_RULES[name], **{**story, "note": _NOTES.get(story.get("note"), "")})
    for name, story in material("stories").items()
}
"""All kinds by name."""
