"""Task `objects`: how many things of some groups there are in an inventory given in words."""

from __future__ import annotations

from itertools import pairwise

from evalcube.stages.generate.answers.numbers import TENS, UNITS, last_integer
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings, words
from evalcube.stages.generate.material.words import ADJECTIVES, join, with_article
from evalcube.stages.generate.stream import Stream, distinct, parts

_IN_OES = frozenset({"mango", "mosquito", "potato"})
_IN_VES = frozenset({"scarf"})


def plural(noun: str) -> str:
    """The regular English plural of a noun of the lists.

    Examples
    --------
    >>> plural("cherry"), plural("peach"), plural("potato"), plural("piano"), plural("donkey")
    ('cherries', 'peaches', 'potatoes', 'pianos', 'donkeys')
    """
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    if noun in _IN_VES:
        return f"{noun[:-1]}ves"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) or noun in _IN_OES else f"{noun}s"


GROUPS = {group: tuple((noun, plural(noun)) for noun in nouns) for group, nouns in words.GROUPS.items()}
"""Name of a group -> its things, singular and plural."""

NUMBERS = (*UNITS, *(ten if not n else f"{ten}-{UNITS[n]}" for ten in TENS for n in range(10)))
"""Number words, from zero to ninety-nine."""


_NAMES = tuple(GROUPS)
_SENTENCE_ITEMS = 6

_SAY = wordings("objects")


class ObjectsParams(TaskParams):
    """Params of `Objects`."""

    target_items: int = param(3, 1, 14, "Kinds of things from each target group; more numbers to add.")
    target_groups: int = param(1, 1, 4, "Groups to count together; more to watch for.")
    max_count: int = param(5, 1, 99, "Largest number of things of one kind; larger numbers to add.")
    distractor_count: int = param(4, 0, 40, "Kinds of things from other groups, to be left out.")
    prob_adjective: float = param(0.0, 0, 1, "Chance of an adjective before a thing; more to read.")


class Objects(Task[ObjectsParams]):
    """Count the things of some groups in an inventory that is given in words.

    The total is drawn first, each as likely as any other, and then numbers that make it.
    """

    name = "objects"
    version = 3
    summary = "how many things of given groups an inventory has"
    guess_rule = "1 / number of possible totals, which are equally frequent"
    Params = ObjectsParams

    def generate(self, params: ObjectsParams, stream: Stream) -> Trial:
        """Draw things of the target groups and of others, count them and name them in random order."""
        groups = stream.sample(_NAMES, len(_NAMES))
        targets, remaining = groups[: params.target_groups], groups[params.target_groups :]
        chosen = [thing for group in targets for thing in stream.sample(GROUPS[group], params.target_items)]
        chosen += _distractors(params.distractor_count, remaining, stream)
        kinds = params.target_groups * params.target_items
        totals = kinds * (params.max_count - 1) + 1
        total = kinds + stream.below(totals)
        counts = [
            *parts(stream, total, kinds, 1, params.max_count),
            *[stream.between(1, params.max_count) for _ in range(params.distractor_count)],
        ]
        items = [
            _describe(thing, n, params.prob_adjective, stream)
            for thing, n in zip(chosen, counts, strict=True)
        ]
        stream.shuffle(items)
        question = stream.choice(_SAY.questions).format(groups=join(targets))
        prompt = f"{_story(items, stream)}\n\n{question} {stream.choice(_SAY.closings)}"
        return Trial(prompt, str(total), 1 / totals)

    parse = staticmethod(last_integer)
    """Read the last integer, an explicit answer first."""

    def difficulty(self, params: ObjectsParams) -> float:
        """A step per number to add, weighted by its size, half a step per distractor, a tenth per adjective."""
        numbers = params.target_items * params.target_groups
        watched = 0.5 * params.distractor_count * (0.75 + 0.25 * params.target_groups)
        adjectives = 0.1 * params.prob_adjective * (numbers + params.distractor_count)
        return numbers * (1 + 0.05 * params.max_count) + watched + adjectives


def _distractors(count: int, groups: list[str], stream: Stream) -> list[tuple[str, str]]:
    size = len(GROUPS[groups[0]])
    chosen = distinct(count, lambda: stream.below(len(groups) * size))  # at most 40 of the 98 of seven groups
    return [GROUPS[groups[index // size]][index % size] for index in chosen]


def _describe(thing: tuple[str, str], count: int, prob_adjective: float, stream: Stream) -> str:
    noun = thing[count > 1]
    if prob_adjective and stream.chance(prob_adjective):
        noun = f"{stream.choice(ADJECTIVES)} {noun}"
    return f"{NUMBERS[count]} {noun}" if count > 1 else with_article(noun)


def _story(items: list[str], stream: Stream) -> str:
    """The items in sentences of about equal length."""
    sentences = -(-len(items) // _SENTENCE_ITEMS)
    return " ".join(
        stream.choice(_SAY.next if start else _SAY.first).format(items=join(items[start:end]))
        for start, end in pairwise([len(items) * i // sentences for i in range(sentences + 1)])
    )
