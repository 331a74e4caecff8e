"""Finds the name that somebody meant among those that are known."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from evalcube.flows.config.secrecy import mask, show
from evalcube.flows.errors import SweepError, WrongTypeError, told

_OTHERS = {
    "key_env": "api_key apikey key token",
    "endpoint": "url base_url api_base",
    "connections": "concurrency max_connections",
    "samplers": "sampling",
    "tasks": "task",
    "repeats": "repetitions",
    "trials": "samples",
    "cube": "output",
    "prompt": "input",
    "judges": "judge",
    "assertions": "asserts",
    "task": "base_task",
}
"""What names of ours are called elsewhere."""
_OTHER_NAMES = {other: name for name, others in _OTHERS.items() for other in others.split()}


def close_name(name: str, known: list[str]) -> str | None:
    """Find the known name that `name` was meant to be; None if none is near."""
    from evalcube.stages.generate.errors import PARAMS_ELSEWHERE  # here, as it loads all tasks

    synonym = (_OTHER_NAMES | PARAMS_ELSEWHERE).get(name.lower())
    if synonym in known:
        return synonym
    lower = {candidate.lower(): candidate for candidate in reversed(known)}
    close = difflib.get_close_matches(name.lower()[:200], list(lower), n=1, cutoff=0.6)
    return lower[close[0]] if close else None


def did_you_mean(name: str, known: list[str], what: str) -> str:
    """Write the remedy of an unknown name."""
    return suggestion(close_name(name, known), known, what)


def suggestion(close: str | None, known: list[str], what: str) -> str:
    """Write the remedy of an unknown name, with the known one that is near, if any."""
    if close is not None:
        return f"Did you mean {show(close)}?"
    return f"{what}: {listed(known, 20) or 'none'}"


def listed(names: Sequence[str], most: int) -> str:
    """The first of some names, for a sentence."""
    return ", ".join(map(mask, names[:most])) + (", ..." if len(names) > most else "")


def checked_option(parameter: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value of a parameter that is none of the known ones."""
    if not isinstance(value, str):
        raise WrongTypeError(f"`{parameter}`: {told(value)} is no text", f"Give one of: {', '.join(known)}")
    if value not in known:
        remedy = did_you_mean(value, list(known), "Give one of")
        raise SweepError(f"`{parameter}`: there is no '{value}'", remedy)
