"""Thousands of garbled replies: parsers never raise, and what they read is an answer in its usual form."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from evalcube.stages.generate import Cell, Task
from tests.stages.generate.family import FAMILY
from tests.strategies import random_params

pytestmark = pytest.mark.long

TEXTS = 300
"""Replies for each task."""
FRAMES = ("{}", "Answer: {}", "**Answer:** {}.", "The answer is {}", "\\boxed{{{}}}", "x\nAnswer:\n{}\ny")
TOKENS = tuple(
    "answer|Answer:|is|not|or|and|**|\\boxed{|\\text{|}|{|(|)|[|]|<|>|$|`|```|\n|\n\n|\t| |,|.|:|;|-|\u2212|+|*|=|/|%"
    "|0|1|7|-3|1,000|2.50|1e9|2021-03-05|March|true|False|on|T|lamp|red|circle|third|null|K103|apple, bear|])|"
    "\x00|\u200b|\u0663|\u017f|\ud83d|\ufeff|\r|\x1b|<think>|</think>".split("|")
)
HARMLESS = "~^%@#;&?!|/\\$*_` \t\r\n\x00\x07\u200b\ud800\ufffd\u00a0.,:-+=(<"
"""Characters that are no part of any answer."""


def mutated(text: str, rng: random.Random) -> str:
    """The text with a few characters removed, repeated, replaced or swapped, or cut at random places."""
    characters = list(text)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(characters)) if characters else 0
        action = rng.randrange(5)
        if action == 0:
            del characters[place : place + 1 + rng.randrange(3)]
        elif action == 1:
            characters[place:place] = characters[place : place + 9] * rng.randrange(1, 5)
        elif action == 2:
            characters[place : place + 1] = rng.choice(TOKENS)
        elif action == 3:
            characters[place:place] = chr(rng.randrange(0x110000))
        else:
            characters = characters[place:] + characters[:place]
    return "".join(characters)


def as_bytes(text: str, rng: random.Random) -> str:
    """The text's bytes, some of them damaged, decoded as a client may do it."""
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.randrange(1, 6)):
        raw.insert(rng.randrange(len(raw) + 1), rng.randrange(256))
    return raw.decode(
        *rng.choice([("utf-8", "surrogateescape"), ("utf-8", "replace"), ("utf-16", "replace")])
    )


KINDS: tuple[Callable[[str, random.Random], str], ...] = (
    mutated,
    lambda text, rng: mutated(rng.choice(FRAMES).format(text), rng),
    lambda text, rng: as_bytes(rng.choice(FRAMES).format(text), rng),
    lambda _, rng: "".join(rng.choices(TOKENS, k=rng.randrange(40))),
    lambda _, rng: rng.randbytes(rng.randrange(60)).decode("utf-8", "surrogateescape"),
    lambda _, rng: rng.randbytes(rng.randrange(60)).decode("latin-1"),
)


def references(task: Task, rng: random.Random) -> list[str]:
    return [Cell(task, random_params(task, rng), i).trial(i).answer for i in range(60)]


@pytest.mark.parametrize("name", list(FAMILY))
def test_parse__survives_garbled_replies(name: str) -> None:
    task, rng = FAMILY[name], random.Random(name)
    answers = references(task, rng)
    for number in range(TEXTS):
        reference = rng.choice(answers)
        text = KINDS[number % len(KINDS)](reference[:200], rng)

        parsed = task.parse(text)

        if parsed is not None:
            assert parsed, ascii(text)
            assert parsed == parsed.strip(), ascii(text)
            task.grade(parsed, reference)
            assert task.parse(f"Answer: {parsed}") == parsed, (ascii(text), ascii(parsed))


@pytest.mark.parametrize("name", list(FAMILY))
def test_parse__refuses_garbage(name: str) -> None:
    rng = random.Random(name)
    for _ in range(200):
        text = "".join(rng.choices(HARMLESS, k=rng.randrange(80)))

        assert FAMILY[name].parse(text) is None, ascii(text)
        assert FAMILY[name].parse(f"Answer: {text}") is None, ascii(text)
