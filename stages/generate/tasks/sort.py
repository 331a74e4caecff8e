"""Task `sort`: words in alphabetical order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import factorial, log2, prod

from evalcube.stages.generate.answers.lists import word_list
from evalcube.stages.generate.base import Task, TaskParams, Trial, param, second_paragraph
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import WORDS
from evalcube.stages.generate.stream import Stream, distinct

DICTIONARY = tuple(sorted(WORDS))
"""All words in alphabetical order: neighbours share their first letters."""

_SAY = wordings("sort")


class SortParams(TaskParams):
    """Params of `Sort`."""

    length: int = param(8, 3, 60, "Different words to sort; more comparisons.")
    run_length: int = param(
        1,
        1,
        20,
        "Words are drawn in groups of this many neighbours in the dictionary (at most length), which begin alike.",
    )
    prob_mutation: float = param(
        0.0, 0, 1, "Chance that a word's case is changed; upper case tempts a model to put the word first."
    )
    prob_duplication: float = param(
        0.0, 0, 1, "Chance that a word occurs a second time; more words to place."
    )


class Sort(Task[SortParams]):
    """Sort words regardless of their case; repeated words stay."""

    name = "sort"
    version = 3
    summary = "words in alphabetical order, regardless of case"
    guess_rule = "1 / number of orders of the words"
    Params = SortParams

    def generate(self, params: SortParams, stream: Stream) -> Trial:
        """Draw runs of neighbouring words, repeat some, change the case of some, and mix them."""
        words = _draw(params.length, min(params.run_length, params.length), stream)
        if params.prob_duplication:
            words += [word for word in words if stream.chance(params.prob_duplication)]
        if params.prob_mutation:
            words = [_mutate(word, stream) if stream.chance(params.prob_mutation) else word for word in words]
        stream.shuffle(words)
        text = stream.choice(_SAY.layouts).join(words)
        prompt = (
            f"{stream.choice(_SAY.openings)}\n\n{text}\n\n"
            f"{stream.choice(_SAY.rules)} {stream.choice(_SAY.closings)}"
        )
        ordered = sorted(words, key=str.lower)
        return Trial(prompt, ", ".join(ordered), _chance([word.lower() for word in ordered]))

    parse = staticmethod(word_list)
    """Read the last list of words, an explicit answer first; joined with commas, case as given."""

    problem = staticmethod(second_paragraph)
    """What is given, however it is introduced."""

    def difficulty(self, params: SortParams) -> float:
        """Comparisons of a good sort, weighted by the letters they compare, and a tenth per changed case."""
        words = params.length * (1 + params.prob_duplication)
        letters = 1 + 0.25 * log2(min(params.run_length, params.length))
        return words * log2(words) * letters + 0.1 * params.prob_mutation * words

    def grade(self, answer: str, reference: str) -> bool:
        """Whether the sequence of words is the same; case does not matter."""
        return answer.lower() == reference.lower()


def _chance(words: Sequence[str]) -> float:
    """One over the number of different orders of some words; 0 where that is less than one in ten thousand."""
    if len(words) > 12:
        return 0.0
    orders = factorial(len(words)) // prod(map(factorial, Counter(words).values()))
    return 1 / orders if orders < 10_000 else 0.0


def _draw(count: int, run: int, stream: Stream) -> list[str]:
    """`count` different words in runs of `run` neighbours; the last run may be shorter."""
    offset = stream.below(run)
    runs = (len(DICTIONARY) - offset) // run
    begins = [offset + index * run for index in distinct(-(-count // run), lambda: stream.below(runs))]
    return [word for begin in begins for word in DICTIONARY[begin : begin + run]][:count]


def _mutate(word: str, stream: Stream) -> str:
    """The word in another case: capitalised, all upper, or upper from or up to some letter or at one letter."""
    style = stream.below(5)
    if style < 2:
        return word.upper() if style else word.capitalize()
    at = stream.between(1, len(word) - 1)
    head, tail = word[:at], word[at:]
    return (head + tail.upper(), head.upper() + tail, head + tail.capitalize())[style - 2]
