"""What a simulated model can do: whether an answer is right, how many tokens it takes and how late it comes.

Everything is pure. Chance comes from the SHA-256 of the request, so a request always has the same reply,
on every machine and in every process, and two different requests have independent ones.
"""

from __future__ import annotations

import hashlib
import math
import struct
from statistics import NormalDist
from typing import NamedTuple

from evalcube.deploy.simulator.profile import Profile

CONTEXT = 131_072
"""Most tokens of one completion, whatever the request allows."""

_inverse_normal = NormalDist().inv_cdf
_four_words = struct.Struct(">4Q").unpack


class Draws(NamedTuple):
    """Independent uniform draws of one request, each inside (0, 1)."""

    correct: float
    """Decides whether the answer is right."""
    length: float
    """Decides on the number of tokens."""
    refusal: float
    """Decides whether the request is refused."""
    choice: float
    """Chooses the wrong answer, and where the filler text begins."""


def request_digest(body: bytes, repeat: int = 0) -> bytes:
    """Identity of a request, 32 bytes: SHA-256 of its body, a zero byte and the repeat index in decimal."""
    return hashlib.sha256(b"%b\0%d" % (body, repeat)).digest()


def draws(digest: bytes) -> Draws:
    """The draws that a request's 32-byte digest decides on.

    Examples
    --------
    >>> draws(bytes(32)).correct < 1e-15 and draws(bytes(32)).correct > 0
    True
    """
    a, b, c, d = _four_words(digest)
    return Draws(_unit(a), _unit(b), _unit(c), _unit(d))


def probability(profile: Profile, difficulty: float = 1.0, guess: float = 0.0) -> float:
    """Probability of a right answer: guess + (1 - guess) · sigmoid(slope · (ability - log2 difficulty)).

    The three-parameter logistic curve of item response theory [1]_, on the logarithm of the difficulty.

    Parameters
    ----------
    profile
        Has the ability (in doublings of the difficulty) and the slope (per doubling).
    difficulty
        Difficulty of the trial's cell, above 0.
    guess
        Probability of a right answer without any ability, 0 to 1.

    References
    ----------
    .. [1] Birnbaum, A. (1968). Some latent trait models and their use in inferring an examinee's ability. In Lord,
       F. M. and Novick, M. R., Statistical theories of mental test scores. Addison-Wesley.

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
    """Tokens that the model would write, 1 to `CONTEXT`: tokens · difficulty^growth · exp(spread · z).

    Parameters
    ----------
    profile
        Has the median tokens at difficulty 1, the growth and the spread.
    difficulty
        Difficulty of the trial's cell, above 0.
    draw
        Quantile of the standard normal z, inside (0, 1); 0.5 has the median.

    Examples
    --------
    >>> completion_tokens(Profile(tokens=60, growth=0.5), 4.0, 0.5)
    120
    """
    factor = math.exp(profile.spread * _inverse_normal(draw))
    wanted = profile.tokens * math.pow(difficulty, profile.growth) * factor
    return round(min(max(wanted, 1.0), CONTEXT))


def delay(profile: Profile, tokens: int) -> float:
    """Seconds from request to reply: latency + tokens / speed, or the latency alone at speed 0."""
    return profile.latency + (tokens / profile.speed if profile.speed > 0.0 else 0.0)


def _unit(word: int) -> float:
    return ((word >> 12) + 0.5) * 2.0**-52
