"""Task `shuffle`: who holds what after a story of swaps."""

from __future__ import annotations

from functools import lru_cache
from string import ascii_lowercase
from typing import Literal

from pydantic import Field

from evalcube.stages.generate.answers.choices import ChoiceReader
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import ITEMS, NAMES, with_article
from evalcube.stages.generate.stream import Stream

_READER = ChoiceReader(ITEMS)

_SAY = wordings("shuffle")


_MARKS = {
    "none": "",
    "numbers": "{n}. ",
    "roman": "{roman}. ",
    "letters": "{letters}) ",
    "hex": "0x{n:02x}: ",
}


class ShuffleParams(TaskParams):
    """Params of `Shuffle`."""

    length: int = param(4, 3, 12, "People, each with one item; more to keep in mind.")
    swaps: int = param(4, 1, 30, "Pairwise swaps; each is a step to follow.")
    confounders: int = param(0, 0, 10, "Events that change nothing; each must be ignored.")
    anchors: Literal["none", "numbers", "roman", "letters", "hex"] = Field(
        "none", description="How the events are numbered; unusual marks distract."
    )


class Shuffle(Task[ShuffleParams]):
    """Who holds what after pairwise swaps."""

    name = "shuffle"
    version = 1
    summary = "what a person holds after pairwise swaps"
    guess_rule = "1/length"
    Params = ShuffleParams

    def generate(self, params: ShuffleParams, stream: Stream) -> Trial:
        """Deal items, swap them, and ask about someone who took part in a swap."""
        names = stream.sample(NAMES, params.length)
        items = stream.sample(ITEMS, params.length)
        start = ", ".join(f"{n} has {with_article(i)}" for n, i in zip(names, items, strict=True))
        holding = dict(zip(names, items, strict=True))
        events = _swap_all(params.swaps, names, holding, stream)
        asked = stream.choice(events)[1]
        lines = [text for text, _ in events]
        for _ in range(params.confounders):
            lines.insert(stream.below(len(lines) + 1), _confounder(names, items, stream))
        marks = _marks(params.anchors, len(lines))
        story = "\n".join(f"{mark}{line}" for mark, line in zip(marks, lines, strict=True))
        question = stream.choice(_SAY.questions).format(a=asked)
        prompt = (
            f"{stream.choice(_SAY.openings)} {start}.\n{stream.choice(_SAY.then)}\n{story}\n"
            f"{question} {stream.choice(_SAY.closings)}"
        )
        return Trial(prompt, holding[asked], 1 / params.length, tuple(items))

    parse = staticmethod(_READER.read_option)
    """Read the last known item, an explicit answer first."""

    def difficulty(self, params: ShuffleParams) -> float:
        """One step per swap, half a step per confounder and person, up to a quarter per mark."""
        p = params
        strange = {"none": 0.0, "numbers": 0.0, "letters": 0.1, "roman": 0.2, "hex": 0.25}[p.anchors]
        return p.swaps + 0.5 * p.confounders + 0.5 * p.length + strange * (p.swaps + p.confounders)


def _swap_all(count: int, names: list[str], holding: dict[str, str], stream: Stream) -> list[tuple[str, str]]:
    """Sentences about `count` swaps, each with its first person; `holding` is brought to the state after them."""
    events: list[tuple[str, str]] = []
    for _ in range(count):
        first, second = _pair(names, stream)
        holding[first], holding[second] = holding[second], holding[first]
        events.append((stream.choice(_SAY.swaps).format(a=first, b=second), first))
    return events


def _confounder(names: list[str], items: list[str], stream: Stream) -> str:
    (first, second), (item, second_item) = _pair(names, stream), _pair(items, stream)
    return str(stream.choice(_SAY.confounders).format(a=first, b=second, item=item, other=second_item))


def _pair(pool: list[str], stream: Stream) -> tuple[str, str]:
    """Two different members of the pool."""
    i, j = stream.below(len(pool)), stream.below(len(pool) - 1)
    return pool[i], pool[j + (j >= i)]


@lru_cache(maxsize=256)
def _marks(style: str, count: int) -> tuple[str, ...]:
    """What stands before each of `count` events."""
    return tuple(_MARKS[style].format(n=n, letters=_letters(n), roman=_roman(n)) for n in range(1, count + 1))


def _letters(n: int) -> str:
    """1 -> a, 26 -> z, 27 -> aa, 28 -> ab."""
    first, second = divmod(n - 1, 26)
    return (ascii_lowercase[first - 1] if first else "") + ascii_lowercase[second]


def _roman(n: int) -> str:
    """Roman numeral of 1 to 49."""
    tens, units = divmod(n, 10)
    return ("", "X", "XX", "XXX", "XL")[tens] + " I II III IV V VI VII VIII IX".split(" ")[units]
