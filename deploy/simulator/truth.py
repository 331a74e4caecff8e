"""What the simulated model may know about a trial in, one request header out, and back.

The header is the simulated model's only source of knowledge. It is no part of the request body, hence of no
digest and no cache key, and it is only ever sent to simulated endpoints.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from deploy.errors import SimulatorError

HEADER = "x-evalcube-truth"
MAX_LENGTH = 32_768
MAX_DIFFICULTY = 2.0**30


@dataclass(frozen=True)
class Truth:
    """A trial as the simulated model sees it.

    Raises
    ------
    SimulatorError
        `difficulty` is not in [2^-30, 2^30], `guess` or `quality` not in [0, 1], or a type is wrong.
    """

    answer: str
    options: tuple[str, ...] = ()
    """The answers to choose from, if the trial has them."""
    difficulty: float = 1.0
    guess: float = 0.0
    """Probability of a right answer without any ability."""
    repeat: int = 0
    """Which repeat of the same request this is: repeats draw anew."""
    quality: float | None = None
    """Of the output that the request asks to be judged, from 0 to 1; None where there is nothing to judge."""

    def __post_init__(self) -> None:
        if not isinstance(self.answer, str):
            raise SimulatorError("answer", self.answer, "must be text")
        if not all(isinstance(option, str) for option in self.options):
            raise SimulatorError("options", self.options, "must be texts")
        if not _within(self.difficulty, 1 / MAX_DIFFICULTY, MAX_DIFFICULTY):
            raise SimulatorError("difficulty", self.difficulty, "must be a number from 2^-30 to 2^30")
        if not _within(self.guess, 0.0, 1.0):
            raise SimulatorError("guess", self.guess, "must be a probability")
        if self.quality is not None and not _within(self.quality, 0.0, 1.0):
            raise SimulatorError("quality", self.quality, "must be a share from 0 to 1")
        if not _within(self.repeat, 0, 2**63 - 1) or not isinstance(self.repeat, int):
            raise SimulatorError("repeat", self.repeat, "must be a whole number, 0 or more")


def encode(truth: Truth) -> str:
    """Write the header's value: compact JSON in ASCII, at most `MAX_LENGTH` characters.

    Raises
    ------
    SimulatorError
        The value would be longer.

    Examples
    --------
    >>> encode(Truth("7"))[:24]
    '{"answer":"7","options":'
    """
    told: dict[str, object] = {
        "answer": truth.answer,
        "options": truth.options,
        "difficulty": truth.difficulty,
        "guess": truth.guess,
        "repeat": truth.repeat,
    }
    if truth.quality is not None:
        told["quality"] = truth.quality
    value = json.dumps(told, separators=(",", ":")).replace("\x7f", "\\u007f")  # the one that headers refuse
    if len(value) > MAX_LENGTH:
        raise SimulatorError(
            "answer", truth.answer, f"answer and options must fit in a header of {MAX_LENGTH} characters"
        )
    return value


def decode(value: str | bytes) -> Truth | None:
    """Read a header's value; anything that is no truth is None, as if the header were absent.

    Examples
    --------
    >>> decode(encode(Truth("7", ("7", "9"), 2.5))) == Truth("7", ("7", "9"), 2.5)
    True
    >>> decode("garbage") is None
    True
    """
    if not value or len(value) > MAX_LENGTH:
        return None
    try:
        record = json.loads(value)
        if not isinstance(record, dict) or not isinstance(record.get("options", []), list):
            return None
        return Truth(**{**record, "options": tuple(record.get("options", ()))})
    except (ValueError, TypeError, RecursionError):
        return None


def _within(value: object, low: float, high: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return low <= value <= high
