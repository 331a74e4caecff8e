"""Task `letters`: how often some letters occur in a list of words."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from evalcube.stages.generate.answers.numbers import last_integer
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import WORDS, join
from evalcube.stages.generate.stream import Stream, distinct, parts

LETTERS = {"common": "etaoinsr", "uncommon": "dlcumpgh", "rare": "wybvkxjqz"}
"""Letters by their frequency in English text."""

_FEWEST = 12
"""Words that a pool has at least, so that none is repeated often."""
_MOST_EACH = 3
"""Occurrences that one word adds at most to the fewest."""

_SAY = wordings("letters")


class LettersParams(TaskParams):
    """Params of `Letters`."""

    letters: Literal["common", "uncommon", "rare"] = Field(
        "common", description="Which letters are counted; there are more of the common ones."
    )
    target_letters: int = param(1, 1, 4, "Different letters to count; more to watch for.")
    min_word_length: int = param(4, 3, 12, "Letters in the shortest word; longer is harder.")
    max_word_length: int = param(
        8, 3, 12, "Letters in the longest word, not below min_word_length; longer is harder."
    )
    target_words: int = param(3, 1, 30, "Words that may have some of the letters; more to count.")
    confounder_words: int = param(0, 0, 30, "Additional words without the letters; more to read.")

    @field_validator("max_word_length")
    @classmethod
    def _not_below_min(cls, value: int, info: ValidationInfo) -> int:
        low = info.data.get("min_word_length")
        if low is not None and value < low:
            raise ValueError(f"must not be below min_word_length ({low})")
        return value


class Letters(Task[LettersParams]):
    """Count given letters over several words.

    The count is drawn first, each from 0 to some number for each target word as likely as any other, and then words
    that have it. So neither a constant nor the number of words says more than a guess. Where the word list has hardly
    a word without the letters in the range of lengths, words that have fewest of them take that place, and count too.
    """

    name = "letters"
    version = 3
    summary = "how often given letters occur in a list of words"
    guess_rule = "1 / number of possible counts, which are equally frequent"
    Params = LettersParams

    def generate(self, params: LettersParams, stream: Stream) -> Trial:
        """Draw letters, then words with and without them, in random order."""
        letters = stream.sample(LETTERS[params.letters], params.target_letters)
        pools = _pools("".join(sorted(letters)), params.min_word_length, params.max_word_length)
        counts = params.target_words * (len(pools) - 1) + 1
        wanted = [0] * params.confounder_words + parts(
            stream, stream.below(counts), params.target_words, 0, len(pools) - 1
        )
        words = [word for more, pool in enumerate(pools) for word in _draw(stream, pool, wanted.count(more))]
        stream.shuffle(words)
        text = ", ".join(words)
        question = stream.choice(_SAY.one if len(letters) == 1 else _SAY.several)
        question = question.format(letters=join([f'"{letter}"' for letter in letters]))
        prompt = f"{question}\n\n{text}\n\n{stream.choice(_SAY.closings)}"
        return Trial(prompt, str(sum(map(text.count, letters))), 1 / counts)

    parse = staticmethod(last_integer)
    """Read the last integer, an explicit answer first."""

    def difficulty(self, params: LettersParams) -> float:
        """Letters to read, weighted by the letters to watch for, and a step for each expected occurrence."""
        p = params
        characters = (p.target_words + p.confounder_words) * (p.min_word_length + p.max_word_length) / 2
        occurrences = {"common": 0.5, "uncommon": 0.25, "rare": 0.0}[p.letters] * p.target_words
        return characters * (0.75 + 0.25 * p.target_letters) + p.target_words + occurrences


@lru_cache(maxsize=4096)
def _pools(letters: str, shortest: int, longest: int) -> tuple[tuple[str, ...], ...]:
    """Words of the allowed lengths by how many of the letters they have beyond the fewest; always two pools or more."""
    counts = {w: sum(map(w.count, letters)) for w in WORDS if shortest <= len(w) <= longest}
    fewest = sorted(counts.values())[:_FEWEST][-1]
    pools = [tuple(word for word, count in counts.items() if count <= fewest)]
    for more in range(1, _MOST_EACH + 1):
        pool = tuple(word for word, count in counts.items() if count == fewest + more)
        if len(pool) < _FEWEST and more > 1:
            break
        if len(pool) < _FEWEST:  # too few with just one more: whichever have more
            pool = tuple(word for word, count in counts.items() if count > fewest) or tuple(counts)
        pools.append(pool)
    return tuple(pools)


def _draw(stream: Stream, pool: tuple[str, ...], count: int) -> list[str]:
    """`count` words, different ones while the pool lasts."""
    if not count:
        return []
    if 2 * count > len(pool):
        rounds, remainder = divmod(count, len(pool))
        return list(pool) * rounds + stream.sample(pool, remainder)
    return distinct(count, lambda: stream.choice(pool))
