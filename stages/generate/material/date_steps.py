"""Steps on the calendar for the task `dates`: days, months, weekdays and working days from a date."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta


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
