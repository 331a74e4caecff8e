"""Scores in words: the bands and profiles of the reference, for the report, the explorer and the docs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SOURCE = "ReasonScape"
"""Whose words these are."""


@dataclass(frozen=True)
class Band:
    """A range of a scale, and what a value in it says."""

    low: float
    high: float
    words: str

    @property
    def ends(self) -> str:
        """Both ends, such as ``700–900``."""
        return f"{self.low:g}–{self.high:g}"


SCORE_BANDS = (
    Band(900, 1000, "near-perfect on all tasks"),
    Band(700, 900, "strong, with minor weaknesses"),
    Band(500, 700, "good, with notable gaps or truncation"),
    Band(300, 500, "limited, or very uneven over the tasks"),
    Band(100, 300, "significant deficits in several tasks"),
    Band(10, 100, "catastrophic: some tasks fail, and the geometric mean falls with them"),
)
"""Of ReasonScore in a tier."""

TOKEN_BANDS = (
    Band(0.7, 1, "excellent quality and efficiency"),
    Band(0.5, 0.7, "good quality at reasonable efficiency"),
    Band(0.3, 0.5, "decent quality that costs much, or poor quality that costs little"),
    Band(0.1, 0.3, "poor quality, or very inefficient"),
    Band(0, 0.1, "hardly usable"),
)
"""Of score per token, where an answer takes about 1000 tokens."""

TOKENS_OF_SHORT_ANSWERS = (
    "The bands are those of models that reason for about 1000 tokens; short answers bring more, with no upper limit, "
    "so that a weak model that answers briefly has a high ratio. What is said of a model therefore goes by the lower "
    "of this ratio and a thousandth of its score."
)

WHY_1000 = (
    "Scores are multiplied by 1000 to be read without decimals, and so that score per token lies between 0 and 1 where "
    "an answer takes about 1000 tokens: both parts of the ratio are then of one size."
)


@dataclass(frozen=True)
class ScoreProfile:
    """How scores change from easy to hard questions."""

    name: str
    example: tuple[int, int, int]
    """Scores of three tiers, the easiest first."""
    words: str


PROFILES = (
    ScoreProfile(
        "balanced", (850, 720, 580), "degrades gracefully: each tier costs about as much as the one before"
    ),
    ScoreProfile(
        "catastrophic", (820, 650, 120), "holds out and then collapses: tasks fail in the hardest tier"
    ),
    ScoreProfile(
        "early breaker", (480, 460, 440), "struggles in the easiest tier already: it never had the ability"
    ),
)

LAYERS = (
    ("a point", "accuracy without guesses, how sure it is with so few trials, and truncation"),
    ("a task", "its points, weighted by the trials that the first run planned, even if more were added"),
    ("a tier", "balance: a geometric mean, which one failing task pulls down"),
    ("the score", "scaling: the plain mean of the tiers, so that no failure counts twice"),
    ("score per token", "efficiency: what the quality costs"),
)
"""What each step of the score catches, from the inside out."""


def band(value: float, bands: Sequence[Band]) -> Band | None:
    """The band that a value lies in; None outside of all, as for NaN.

    Examples
    --------
    >>> band(738, SCORE_BANDS).words, band(19.2, TOKEN_BANDS)
    ('strong, with minor weaknesses', None)
    """
    return next((choice for choice in bands if choice.low <= value <= choice.high), None)


def profile(scores: Sequence[float]) -> ScoreProfile | None:
    """The profile of the scores of a model's tiers, the easiest first; None of one tier, or if one has no score.

    Weak from the first tier on is an early breaker; losing more than half from one tier to the next is catastrophic.

    Examples
    --------
    >>> [profile(one.example).name for one in PROFILES], profile([850])
    (['balanced', 'catastrophic', 'early breaker'], None)
    """
    if len(scores) < 2 or any(map(math.isnan, scores)):
        return None
    balanced, catastrophic, early = PROFILES
    if scores[0] < SCORE_BANDS[2].low:
        return early
    return catastrophic if any(after < before / 2 for before, after in pairwise(scores)) else balanced


def in_words(value: float, bands: Sequence[Band]) -> str:
    """Return a value's band and its meaning; empty outside of all.

    Examples
    --------
    >>> in_words(738, SCORE_BANDS)
    '700–900: strong, with minor weaknesses'
    """
    match = band(value, bands)
    return "" if match is None else f"{match.ends}: {match.words}"


def token_words(per_token: float, score: float) -> str:
    """Return the meaning of a score per token, capped by the score itself, however short the answers.

    Examples
    --------
    >>> token_words(1.2, 240), token_words(1.2, 740)
    ('poor quality, or very inefficient', 'excellent quality and efficiency')
    """
    match = band(min(per_token, score / 1000), TOKEN_BANDS)
    return "" if match is None else match.words


def list_bands(bands: Sequence[Band]) -> str:
    """All bands as one sentence."""
    return "; ".join(f"{item.ends} {item.words}" for item in bands) + "."


def list_profiles() -> str:
    """The profiles as one sentence, each with its example."""
    texts = (f"{item.name} ({', '.join(map(str, item.example))}) {item.words}" for item in PROFILES)
    return "; ".join(texts) + "."
