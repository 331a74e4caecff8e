"""Task `haystack`: one fact to find in a long text, at a stated depth, among facts that are almost the asked one."""

from __future__ import annotations

from evalcube.stages.generate.answers.numbers import last_integer
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import ADJECTIVES, ITEMS, NAMES, SENTENCES
from evalcube.stages.generate.stream import Stream, distinct

BYTES_PER_TOKEN = 4
"""By which lengths in tokens become bytes of text; no tokenizer is asked, so that a prompt is one on every machine."""
TOGETHER = 10
"""Facts that stand at the asked depth in random order, so that to know the depth says which one it is in 1 of 10."""

_SENTENCE_BYTES = 71
_SAY = wordings("haystack")


class HaystackParams(TaskParams):
    """Params of `Haystack`."""

    length: int = param(1000, 300, 1_000_000, "Tokens of the text, four bytes each; more to read.")
    depth: int = param(50, 0, 100, "Where in the text the fact stands, in percent; 0 is its beginning.")
    distractors: int = param(
        0, 0, 50, "Additional facts, which differ from the asked one in one word; more to tell apart."
    )


class Haystack(Task[HaystackParams]):
    """Find the box of one thing of one person in a text that speaks of much else.

    The fact stands at its depth together with others of the same form, in random order. Distractors share two of its
    three words (adjective, thing, owner) and stand anywhere.
    """

    name = "haystack"
    version = 1
    summary = "one fact that is stated in a long text"
    guess_rule = "1/10, as nine other facts stand beside the asked one"
    Params = HaystackParams

    def generate(self, params: HaystackParams, stream: Stream) -> Trial:
        """Draw the asked thing, facts that share no word with it, those that share two, and the text around them."""
        adjectives, items, owners = (stream.sample(words, TOGETHER) for words in (ADJECTIVES, ITEMS, NAMES))
        together = list(zip(adjectives, items, owners, strict=True))
        asked = together[0]
        near = _near(stream, asked, params.distractors)
        boxes = distinct(TOGETHER + len(near), lambda: str(stream.between(1000, 9999)))
        facts = [
            f"The {adjective} {item} of {owner} is kept in box {box}."
            for (adjective, item, owner), box in zip([*together, *near], boxes, strict=True)
        ]
        stream.shuffle(close := facts[:TOGETHER])
        left = params.length * BYTES_PER_TOKEN - sum(map(len, facts))
        text = [_filler(stream) for _ in range(max(0, left // _SENTENCE_BYTES))]
        position = len(text) * params.depth // 100
        for fact in facts[TOGETHER:]:
            at = stream.below(len(text) + 1)
            text.insert(at, fact)
            position += at <= position
        text[position:position] = close
        adjective, item, owner = asked
        question = stream.choice(_SAY.questions).format(thing=f"{adjective} {item} of {owner}")
        prompt = (
            f"{stream.choice(_SAY.openings)}\n\n{' '.join(text)}\n\n{question} {stream.choice(_SAY.closings)}"
        )
        return Trial(prompt, boxes[0], 1 / TOGETHER)

    parse = staticmethod(last_integer)
    """Read the last integer, an explicit answer first."""

    def difficulty(self, params: HaystackParams) -> float:
        """Sentences to read, and ten more for each fact that is almost the asked one."""
        return params.length * BYTES_PER_TOKEN / _SENTENCE_BYTES + 10 * params.distractors


def _near(stream: Stream, asked: tuple[str, str, str], count: int) -> list[tuple[str, str, str]]:
    """Different keys that share two words with the asked one."""
    keys: dict[tuple[str, str, str], None] = {}
    while len(keys) < count:
        changed = list(asked)
        part = stream.below(3)
        changed[part] = stream.choice((ADJECTIVES, ITEMS, NAMES)[part])
        key = (changed[0], changed[1], changed[2])
        if key != asked:
            keys[key] = None
    return list(keys)


def _filler(stream: Stream) -> str:
    who, did, item, where, when = map(stream.choice, SENTENCES.values())
    return f"{when.capitalize()} {who} {did} {item} {where}."
