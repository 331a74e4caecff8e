"""How a long command says how far it is."""

from __future__ import annotations

from collections.abc import Callable

Ticker = Callable[[str, int], None]
"""Hears what is done and how much of it, now and then."""


def silent(what: str, count: int) -> None:
    """Hear nothing.

    Parameters
    ----------
    what
        What is counted.
    count
        How much of it there is so far.
    """
