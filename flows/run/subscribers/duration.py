"""Time spans as displays write them; alone, since commands that only read show them, too."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A time span for people.

    Examples
    --------
    >>> duration(61.7), duration(7322)
    ('1:02', '2:02:02')
    """
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
