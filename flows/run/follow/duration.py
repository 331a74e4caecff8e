"""Time spans as displays write them; alone, since commands that only read show them, too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_SHOWN_WAITS = 3


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


def waits(waiting: Mapping[str, Mapping[str, Any]]) -> str:
    """What a run waits for and how long, for people; empty where it does not.

    Parameters
    ----------
    waiting
        See `evalcube.flows.run.follow.events.Traffic.waiting`.

    Examples
    --------
    >>> waits({"gpt": {"seconds": 44.2, "reason": "429: requests, Retry-After"}})
    'waiting 45 s for gpt (429: requests, Retry-After)'
    """
    texts = [
        f"waiting {math.ceil(pause['seconds'])} s for {model} ({pause['reason']})"
        for model, pause in waiting.items()
    ]
    more = [f"and for {len(texts) - _SHOWN_WAITS} more"] if len(texts) > _SHOWN_WAITS else []
    return ", ".join(texts[:_SHOWN_WAITS] + more)
