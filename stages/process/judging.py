"""A judge's reply in, one reading out; readings of repeats and of several judges in, their consensus out.

A reading that failed is missing (None), never 0: it drops out of every mean and is counted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from stages.process.assertions.documents import DocumentError, parse_document
from stages.process.assertions.profile import Profile, presented, total

REPLY_LIMIT = 100_000
"""Characters of a judge's reply that are read."""
_NOTE_LIMIT = 4_000
"""Characters kept of what a judge writes."""
_NO_SCORE = "no JSON object with a score"
_CANDIDATES = 50
"""Opening braces at which an object is looked for."""
_JSON = json.JSONDecoder(strict=False)
_START = re.compile(r'\{\s{0,100}"')
_SCORE = re.compile(r'"score"\s{0,20}:\s{0,20}"?(-?\d{1,9}(?:\.\d{1,9})?)(?![\d.])')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_NAMED = re.compile(
    r'(?:(?P<quoted>"score"\s*+:)|\bscore\s*+[:=])\s*+(?P<number>[0-5](?:\.\d+)?)(?![\d.])',
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class JudgeReading:
    """What one reply of a judge says."""

    score: float | None
    """A whole number from 1 to 5; None if the reply has none. In ``omk054`` any number above 0."""
    reason: str = ""
    reasoning: str = ""
    failure: str = ""
    """Why there is no score."""


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """Several readings of one output by one judge."""

    score: float | None
    """Mean of the readings that succeeded; None if none did."""
    stddev: float | None
    """Sample standard deviation; None for fewer than two readings (0 in ``omk054``)."""
    readings: int
    """How many succeeded."""
    failures: int


@dataclass(frozen=True, slots=True)
class Consensus:
    """Several judges on one output."""

    score: float | None
    """Mean over the judges that have a score; None if none has."""
    judges: tuple[JudgeScore, ...]
    disagreement: float | None
    """Mean absolute difference over pairs of judges; None without a pair."""
    pairs: int


def read_judge(text: str, *, profile: Profile = "reference") -> JudgeReading:
    """The reading in a judge's reply, its reasoning trace already split off.

    The reply may have text around its JSON object. A judge quotes what it judges, and the quote may be made to look
    like a reading: two objects with different scores are no reading. Never raises.

    Parameters
    ----------
    text
        What the judge said.
    profile
        ``omk054`` takes the first object, and any number.

    Examples
    --------
    >>> read_judge('{"reasoning": "clear", "score": 4, "reason": "ok"}').score
    4.0
    >>> read_judge("I like it").failure
    'no JSON object with a score'
    """
    text = text[:REPLY_LIMIT]
    if profile == "omk054":
        return _read_first(text)
    documents, damaged = _objects(text)
    if damaged or not documents:
        return _read_damaged(text)
    found = [document for document in documents if "score" in document]
    if not found:
        return JudgeReading(None, failure=_NO_SCORE)
    scores = {_whole(document["score"]) for document in found}
    if len(scores) > 1:
        return JudgeReading(None, failure="objects with different scores")
    return _reading(found[-1], scores.pop())


def combine_repeats(scores: Sequence[float | None], *, profile: Profile = "reference") -> JudgeScore:
    """Several readings of one output by one judge, as one.

    Parameters
    ----------
    scores
        Of the readings; None, NaN and what is not above 0 are failures.
    profile
        ``omk054`` rounds the mean to 2 and the deviation to 3 decimals.

    Examples
    --------
    >>> combine_repeats([4, None, 5])
    JudgeScore(score=4.5, stddev=0.7071067811865476, readings=2, failures=1)
    """
    valid = [score for score in scores if score is not None and score > 0]
    failures = len(scores) - len(valid)
    least = 0.0 if profile == "omk054" else None
    if not valid:
        return JudgeScore(None, least, 0, failures)
    mean = total(valid, profile) / len(valid)
    if len(valid) == 1:
        return JudgeScore(_repeated(mean, len(scores), profile), least, 1, failures)
    variance = total([(score - mean) ** 2 for score in valid], profile) / (len(valid) - 1)
    spread = presented(math.sqrt(variance), profile, 3)
    return JudgeScore(presented(mean, profile), spread, len(valid), failures)


def _repeated(mean: float, asked: int, profile: Profile) -> float:
    """A single call is handed on by ``omk054`` as it is; only a mean over repeats is rounded."""
    return mean if asked == 1 else presented(mean, profile)


def combine_judges(
    readings: Sequence[Sequence[float | None]], *, profile: Profile = "reference"
) -> Consensus:
    """Readings of several judges of one output, as one.

    Every judge counts the same, however often it was asked.

    Parameters
    ----------
    readings
        One row for each judge.
    profile
        ``omk054`` rounds as it does, and compares a judge that failed as if it had said 0.

    Examples
    --------
    >>> combine_judges([[4, 5], [3, None]]).score
    3.75
    """
    judges = tuple(combine_repeats(row, profile=profile) for row in readings)
    scores = [judge.score for judge in judges]
    valid = [score for score in scores if score is not None]
    compared = [score or 0.0 for score in scores] if profile == "omk054" else valid
    gaps = [abs(first - second) for first, second in combinations(compared, 2)]
    return Consensus(
        presented(total(valid, profile) / len(valid), profile) if valid else None,
        judges,
        presented(total(gaps, profile) / len(gaps), profile, 3) if gaps else None,
        len(gaps),
    )


def _objects(text: str) -> tuple[list[dict[str, object]], bool]:
    """The JSON objects in a text that are not inside one another, and whether one of them is damaged.

    What stands inside a damaged object is not looked at: it may be a quote.
    """
    found: list[dict[str, object]] = []
    at = 0
    for _ in range(_CANDIDATES):
        at = text.find("{", at)
        if at < 0:
            return found, False
        try:
            document, at = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            if _START.match(text, at):
                return found, True
            at += 1
        else:
            found.append(document)
    return found, True


def _whole(value: object) -> int | None:
    """A score from 1 to 5 as a judge writes it, the digit in quotes too; None for anything else."""
    if isinstance(value, str):
        value = int(value) if value.strip() in {"1", "2", "3", "4", "5"} else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value in (1, 2, 3, 4, 5) else None


def _reading(document: dict[str, object], score: float | None) -> JudgeReading:
    failure = "" if score is not None else "the score is no whole number from 1 to 5"
    reason, reasoning = _said(document.get("reason")), _said(document.get("reasoning"))
    return JudgeReading(None if score is None else float(score), reason, reasoning, failure)


def _said(value: object) -> str:
    return value[:_NOTE_LIMIT] if isinstance(value, str) else ""


def _read_damaged(text: str) -> JudgeReading:
    """A reply with an object that is not quite JSON, such as one with bare quotes in its reason."""
    whole = "{" in text and text.rstrip("` \n").endswith("}")
    scores = {_whole(float(found)) for found in _SCORE.findall(text)} if whole else set()
    score = scores.pop() if len(scores) == 1 else None
    if score is None:
        return JudgeReading(None, failure=_NO_SCORE)
    return JudgeReading(float(score), reasoning=text.strip()[:_NOTE_LIMIT])


def _read_first(text: str) -> JudgeReading:
    """As oh-my-knowledge reads: the first object, its score as JavaScript makes a number of it."""
    source = _first_braces(text)
    if source is None:
        return JudgeReading(None, failure=_NO_SCORE)
    try:
        document = parse_document(source)
    except DocumentError:
        return _read_named(text)
    score = _number(document.get("score")) if isinstance(document, dict) else math.nan
    if not 0 < score < math.inf or not isinstance(document, dict):
        return JudgeReading(None, failure="no score above 0")
    return JudgeReading(score, _said(document.get("reason")), _said(document.get("reasoning")))


def _read_named(text: str) -> JudgeReading:
    """The first number up to 5 that is named a score, in quotes if one is."""
    found = sorted(_NAMED.finditer(text), key=lambda match: match["quoted"] is None)
    score = float(found[0]["number"]) if found else 0.0
    if not 0 < score <= 5:
        return JudgeReading(None, failure="no score above 0")
    return JudgeReading(score, reasoning=text.strip()[:_NOTE_LIMIT])


def _first_braces(text: str) -> str | None:
    """From the first opening brace to the one that closes it, braces in quotes left out."""
    start = text.find("{")
    depth, quoted, escaped = 0, False, False
    for index, letter in enumerate(text[start:] if start >= 0 else ""):
        if escaped or letter == "\\":
            escaped = not escaped
        elif letter == '"':
            quoted = not quoted
        elif not quoted and letter in "{}":
            depth += 1 if letter == "{" else -1
            if depth == 0:
                return text[start : start + index + 1]
    return None


def _number(value: object) -> float:
    """The number that JavaScript makes of a JSON value, NaN where it makes none."""
    if isinstance(value, list):
        value = _element(value)
    if isinstance(value, str):
        return float(value.strip()) if _NUMBER.fullmatch(value.strip()) else math.nan
    return float(value) if isinstance(value, (int, float)) else math.nan


def _element(values: list[object]) -> object:
    """A list with one number is that number."""
    return values[0] if len(values) == 1 and not isinstance(values[0], (bool, dict, list)) else None
