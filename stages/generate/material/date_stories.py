"""The kinds of question of the task `dates`: wordings, each with the rule that gives the date asked for."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType


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
    weeks, rest = divmod(abs(count), 5)
    if rest == 0:  # the last working day of a whole week is found by walking, as weekends are skipped there
        weeks, rest = weeks - 1, 5
    day += timedelta(days=7 * weeks * step)
    while rest:
        day += timedelta(days=step)
        rest -= day.weekday() < 5
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

MONTH_END = (
    "(Months and years are counted to the same day of the month; if that month has no such day, its last day "
    "is meant.)"
)
WORKDAYS = (
    "(Working days are Monday to Friday; there are no holidays, and the day you count from does not count.)"
)
NOT_TODAY = "(Today itself does not count.)"


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
    """One kind of question."""

    level: int
    """1 = one step of days or weeks, 2 = inclusive counts, months and years, 3 = weekdays and working days,
    4 = several steps."""
    wordings: tuple[str, ...]
    """With placeholders; see `evalcube.stages.generate.tasks.dates`."""
    solve: Callable[[Draw], date]
    """The date asked for."""
    note: str = ""
    """The convention that holds, if one is needed."""
    years: bool = False
    """Whether the offset counts years, so that the stated date has to leave room for it."""


def _nth_weekday(d: Draw) -> date:
    return weekday_after(days(months(d.day.replace(day=1), d.n), -1), d.weekday, d.k)


def _last_weekday(d: Draw) -> date:
    return weekday_before(days(month_end(d.day, d.n), 1), d.weekday, 1)


def _ahead(offset: str, today: str = "day") -> tuple[str, ...]:
    day, after = f"{{{today}}}", f"{{{offset}}}"
    return (
        f"Today is {day}. {{who}}'s {{what}} is in {after}.",
        f"It is {day} today. In {after}, {{who}} has a {{what}}.",
    )


def _ago(offset: str, today: str = "day") -> tuple[str, ...]:
    day, before = f"{{{today}}}", f"{{{offset}}}"
    return (
        f"Today is {day}. {{who}}'s {{what}} was {before} ago.",
        f"It is {day} today. {before} ago, {{who}} had a {{what}}.",
    )


_ONE_STEP = {
    "days_ahead": Story(1, _ahead("days"), lambda d: days(d.day, d.n)),
    "days_ago": Story(1, _ago("days"), lambda d: days(d.day, -d.n)),
    "weeks_ahead": Story(1, _ahead("weeks"), lambda d: days(d.day, 7 * d.n)),
    "weeks_ago": Story(1, _ago("weeks"), lambda d: days(d.day, -7 * d.n)),
    "days_after_event": Story(
        1,
        (
            "Tickets go on sale today, {day}. {who}'s {what} takes place {days} later.",
            "{who} books a room today, {day}, for a {what} that takes place {days} later.",
        ),
        lambda d: days(d.day, d.n),
    ),
    "days_before_event": Story(
        1,
        (
            "Today, {day}, a letter reaches {who}. It was sent {days} earlier, on the day of a {what}.",
            "Today, {day}, {who} remembers a {what}. It was held {days} earlier.",
        ),
        lambda d: days(d.day, -d.n),
    ),
}

_CALENDAR = {
    "yesterday_known": Story(
        2,
        (
            "Yesterday was {day}. {who}'s {what} is {days} from today.",
            "The date of yesterday was {day}. From today it is {days} until {who}'s {what}.",
        ),
        lambda d: days(d.day, 1 + d.n),
    ),
    "tomorrow_known": Story(
        2,
        (
            "Tomorrow will be {day}. {who}'s {what} was {days} before today.",
            "The date of tomorrow is {day}. Counted back from today, {who}'s {what} was {days} ago.",
        ),
        lambda d: days(d.day, -1 - d.n),
    ),
    "inclusive_days": Story(
        2,
        (
            (
                "Today, {day}, is day 1 of {who}'s journey, tomorrow is day 2, and so on. There is a "
                "{what} on day {count}."
            ),
            (
                "{who} starts a course. Today, {day}, counts as day 1 and tomorrow as day 2. The {what} "
                "is on day {count}."
            ),
        ),
        lambda d: days(d.day, d.n),
    ),
    "months_ahead": Story(2, _ahead("months"), lambda d: months(d.day, d.n), MONTH_END),
    "months_ago": Story(2, _ago("months"), lambda d: months(d.day, -d.n), MONTH_END),
    "years_ahead": Story(
        2,
        (
            "Today is {day}. {who} plans a {what} in {years}.",
            "It is {day} today. In {years}, {who} has a {what}.",
        ),
        lambda d: months(d.day, 12 * d.n),
        MONTH_END,
        years=True,
    ),
    "years_ago": Story(2, _ago("years"), lambda d: months(d.day, -12 * d.n), MONTH_END, years=True),
}

_WEEKDAY_KINDS = {
    "weekday_ahead": Story(
        3,
        (
            (
                "Today is {named}. Counting {weekday}s from tomorrow on, {who}'s {what} is on {weekday} "
                "number {n}."
            ),
            (
                "It is {named} today. {who} counts the {weekday}s to come; the {what} is on {weekday} "
                "number {n}."
            ),
        ),
        lambda d: weekday_after(d.day, d.weekday, d.n),
        NOT_TODAY,
    ),
    "weekday_ago": Story(
        3,
        (
            (
                "Today is {named}. Counting {weekday}s backwards from yesterday, {who}'s {what} was on "
                "{weekday} number {n}."
            ),
            (
                "It is {named} today. {who} counts past {weekday}s, the latest first; the {what} was on "
                "{weekday} number {n}."
            ),
        ),
        lambda d: weekday_before(d.day, d.weekday, d.n),
        NOT_TODAY,
    ),
    "workdays_ahead": Story(3, _ahead("workdays", today="named"), lambda d: workdays(d.day, d.n), WORKDAYS),
    "workdays_ago": Story(3, _ago("workdays", today="named"), lambda d: workdays(d.day, -d.n), WORKDAYS),
    "weeks_and_days": Story(
        3,
        (
            "Today is {day}. {who}'s {what} is in {weeks} and {m} days.",
            "It is {day} today. {weeks} and {m} days from now, {who} has a {what}.",
        ),
        lambda d: days(d.day, 7 * d.n + d.m),
    ),
    "months_then_days": Story(
        3,
        (
            "Today is {day}. {who} moves away in {months}, and the {what} is {m} days after that.",
            "It is {day} today. In {months}, {who} comes home; another {m} days later there is a {what}.",
        ),
        lambda d: days(months(d.day, d.n), d.m),
        MONTH_END,
    ),
    "month_end": Story(
        3,
        (
            (
                "Today is {day}. {who}'s {what} is on the last day of the month that comes {months} "
                "after this month."
            ),
            (
                "It is {day} today. {months} after the current month comes the month of {who}'s {what}, "
                "held on its last day."
            ),
        ),
        lambda d: month_end(d.day, d.n),
    ),
}

_SEVERAL_STEPS = {
    "weekday_after_next": Story(
        4,
        (
            (
                "Today is {day}. {who} arrives on the second {weekday} after today, and the {what} is "
                "{days} after the arrival."
            ),
            (
                "It is {day} today. {who} starts work on the second {weekday} after today; {days} after "
                "that start is the {what}."
            ),
        ),
        lambda d: days(weekday_after(d.day, d.weekday, 2), d.n),
        NOT_TODAY,
    ),
    "chain": Story(
        4,
        (
            (
                "Today is {day}. Otto leaves in {days}. Ella leaves {m} weeks before Otto. {who}'s "
                "{what} is {k_days} after Ella leaves."
            ),
            (
                "It is {day} today. A fair opens in {days}. A market closes {m} weeks before the fair "
                "opens. {who}'s {what} is {k_days} after the market closes."
            ),
        ),
        lambda d: days(d.day, d.n - 7 * d.m + d.k),
    ),
    "hidden_today": Story(
        4,
        (
            "{m} days ago it was {day}. {who}'s {what} is {weeks} from today.",
            "Exactly {m} days ago, the date was {day}. From today it is {weeks} until {who}'s {what}.",
        ),
        lambda d: days(d.day, d.m + 7 * d.n),
    ),
    "nth_weekday": Story(
        4,
        (
            (
                "Today is {day}. {who}'s {what} is on the {kth} {weekday} of the month that comes "
                "{months} after this month."
            ),
            (
                "It is {day} today. {months} after the current month comes the month of {who}'s {what}, "
                "held on its {kth} {weekday}."
            ),
        ),
        _nth_weekday,
    ),
    "last_weekday": Story(
        4,
        (
            (
                "Today is {day}. {who}'s {what} is on the last {weekday} of the month that comes "
                "{months} after this month."
            ),
            (
                "It is {day} today. {months} after the current month comes the month of {who}'s {what}, "
                "held on its last {weekday}."
            ),
        ),
        _last_weekday,
    ),
    "recurring": Story(
        4,
        (
            (
                "Today, {day}, {who} goes to a {what} for the first time, and then again {every}. "
                "The question is about visit number {m}."
            ),
            "{who} has a {what} {every}. Today, {day}, is number 1. The question is about number {m}.",
        ),
        lambda d: days(d.day, d.n * (d.m - 1)),
    ),
    "workdays_hidden": Story(
        4,
        (
            "{m} days ago it was {day}. {who}'s {what} is {workdays} from today.",
            "Exactly {m} days ago, the date was {day}. From today it is {workdays} until {who}'s {what}.",
        ),
        lambda d: workdays(days(d.day, d.m), d.n),
        WORKDAYS,
    ),
}

STORIES: Mapping[str, Story] = MappingProxyType(_ONE_STEP | _CALENDAR | _WEEKDAY_KINDS | _SEVERAL_STEPS)
"""All kinds by name."""
