"""A profile, a trial's difficulty and a request in; whether the reply is right, how long and how late, out.

Everything is pure. Chance comes from the SHA-256 of the request, so a request always has the same reply,
on every machine and in every process, and two different requests have independent ones.
"""

from __future__ import annotations

import hashlib
import math
import struct
from statistics import NormalDist
from typing import NamedTuple

from deploy.simulator.profile import Profile

CONTEXT = 131_072
"""Most tokens of one completion, whatever the request allows."""

_inverse_normal = NormalDist().inv_cdf
_four_words = struct.Struct(">4Q").unpack


class Draws(NamedTuple):
    """Independent uniform draws of one request, each inside (0, 1)."""

    correct: float
    length: float
    refusal: float
    choice: float


def request_digest(body: bytes, repeat: int = 0) -> bytes:
    """Identity of a request, 32 bytes: SHA-256 of its body, then of the repeat index."""
    return hashlib.sha256(b"%b\0%d" % (body, repeat)).digest()


def draws(digest: bytes) -> Draws:
    """Turn a request's 32-byte digest into its draws.

    Examples
    --------
    >>> draws(bytes(32)).correct < 1e-15 and draws(bytes(32)).correct > 0
    True
    """
    a, b, c, d = _four_words(digest)
    return Draws(_unit(a), _unit(b), _unit(c), _unit(d))


def probability(profile: Profile, difficulty: float = 1.0, guess: float = 0.0) -> float:
    """Probability of a right answer: guess + (1 - guess) · sigmoid(slope · (ability - log2 difficulty)).

    The three-parameter logistic curve of item response theory, on the logarithm of the difficulty.

    Examples
    --------
    >>> probability(Profile(ability=5), difficulty=32)
    0.5
    >>> probability(Profile(ability=5), difficulty=32, guess=0.5)
    0.75
    """
    lead = profile.slope * (profile.ability - math.log2(difficulty))
    return guess + (1.0 - guess) * 0.5 * (1.0 + math.tanh(0.5 * lead))


def completion_tokens(profile: Profile, difficulty: float, draw: float) -> int:
    """Tokens that the model would write: tokens · difficulty^growth · exp(spread · z), z standard normal.

    `draw` in (0, 1) is turned into z; at 0.5 the result is the median. From 1 to `CONTEXT`.

    Examples
    --------
    >>> completion_tokens(Profile(tokens=60, growth=0.5), 4.0, 0.5)
    120
    """
    factor = math.exp(profile.spread * _inverse_normal(draw))
    wanted = profile.tokens * math.pow(difficulty, profile.growth) * factor
    return round(min(max(wanted, 1.0), CONTEXT))


def delay(profile: Profile, tokens: int) -> float:
    """Seconds from request to reply: latency + tokens / speed, without the second part at speed 0."""
    return profile.latency + (tokens / profile.speed if profile.speed > 0.0 else 0.0)


def _unit(word: int) -> float:
    return ((word >> 12) + 0.5) * 2.0**-52
