"""The request header that gives the simulated model, and it alone, the truth about a trial.

The header is the simulated model's only source of knowledge. It is no part of the request body, hence of no
digest and no cache key, and must only ever be sent to simulated endpoints. Whoever asks one calls `trial_headers`,
or `judge_headers` where the model acts as a judge; the server reads the header with `decode`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from evalcube.deploy.errors import SimulatorError

HEADER = "x-evalcube-truth"
MAX_LENGTH = 32_768
MAX_DIFFICULTY = 2.0**30
_BOUNDS = {
    "difficulty": (1 / MAX_DIFFICULTY, MAX_DIFFICULTY),
    "guess": (0.0, 1.0),
    "quality": (0.0, 1.0),
    "repeat": (0, 2**63 - 1),
}


_compact = json.JSONEncoder(separators=(",", ":")).encode


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
    """How good the output is that the request asks to be judged, 0 to 1; None where there is nothing to judge."""

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) for text in (self.answer, *self.options)):
            raise SimulatorError("answer", self.answer, "answer and options must be text")
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            kinds = int if name == "repeat" else (int, float)
            fits = isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high
            if not fits and (name, value) != ("quality", None):
                raise SimulatorError(name, value, f"must be a number from {low:g} to {high:g}")


@lru_cache(maxsize=4096)  # the trials of a cell share all but their answers, which are few
def trial_headers(
    answer: str, options: tuple[str, ...], difficulty: float, guess: float, repeat: int
) -> Mapping[str, str]:
    """Headers for the request of one trial.

    Examples
    --------
    >>> decode(trial_headers("7", ("7", "9"), 2.5, 0.5, 0)[HEADER])
    Truth(answer='7', options=('7', '9'), difficulty=2.5, guess=0.5, repeat=0, quality=None)
    """
    return {HEADER: encode(Truth(answer, options, difficulty, guess, repeat))}


def judge_headers(quality: float, repeat: int) -> dict[str, str]:
    """Headers for a request that asks a judge to rate an output.

    Examples
    --------
    >>> decode(judge_headers(judged_quality(True, [4.0, None]), 1)[HEADER]).quality
    0.875
    """
    return {HEADER: encode(Truth("", quality=quality, repeat=repeat))}


def judged_quality(right: bool | None, scores: Iterable[float | None]) -> float:
    """How good a simulated judge finds an output, 0 to 1: the mean of what is known about it.

    Examples
    --------
    >>> judged_quality(False, [5.0, None])
    0.5
    >>> judged_quality(None, [])
    0.5
    """
    parts = [(score - 1) / 4 for score in scores if score is not None]
    if right is not None:
        parts.append(float(right))
    return sum(parts) / len(parts) if parts else 0.5


def encode(truth: Truth) -> str:
    """Header value of a truth: compact JSON in ASCII, at most `MAX_LENGTH` characters.

    Examples
    --------
    >>> encode(Truth("7"))[:24]
    '{"answer":"7","options":'
    """
    record = dict(vars(truth))
    if truth.quality is None:
        del record["quality"]
    # The one character of them that headers refuse.
    value = _compact(record).replace("\x7f", "\\u007f")
    if len(value) > MAX_LENGTH:
        raise SimulatorError(
            "answer", truth.answer, f"answer and options must fit in a header of {MAX_LENGTH} characters"
        )
    return value


def decode(value: str | bytes) -> Truth | None:
    """The truth in a header's value; None for anything else, as if the header were absent.

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
