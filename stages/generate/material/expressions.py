"""Shapes of bracketed expressions for the tasks `arithmetic` and `boolean`, and the spaces in them."""

from __future__ import annotations

import re
from typing import TypeAlias

from evalcube.stages.generate.stream import Stream

Shape: TypeAlias = "list[Shape | None]"
"""Operands of one bracket level, left to right: None is a term, a list is a group of two or more."""

_SIDE_GROUP_CHANCE = 0.3
_SIDE_GROUP_TERMS = 5

ANY_SPACE = re.compile(" ")
SPACE_AT_BRACKET = re.compile(r" (?=\()|(?<=\)) ")


def draw_shape(stream: Stream, terms: int, depth: int) -> Shape:
    """A random shape with exactly `terms` terms, nested exactly ``min(depth, terms - 2)`` deep (at least 0).

    One group carries the depth; the terms beside it may form smaller groups. No group is the only operand of
    its level, so no bracket is redundant by position alone.
    """
    depth = min(depth, terms - 2)
    if depth <= 0:
        return [None] * terms
    inner = stream.between(depth + 1, terms - 1)
    level: Shape = [draw_shape(stream, inner, depth - 1)]
    remaining = terms - inner
    while remaining:
        if remaining > 1 and stream.chance(_SIDE_GROUP_CHANCE):
            size = stream.between(2, min(remaining, _SIDE_GROUP_TERMS))
            level.append(draw_shape(stream, size, stream.below(depth)))
            remaining -= size
        else:
            level.append(None)
            remaining -= 1
    stream.shuffle(level)
    return level


def drop_spaces(stream: Stream, text: str, spaces: re.Pattern[str], probability: float) -> str:
    """The text with each match of `spaces` left out with the given probability."""
    if probability <= 0:
        return text
    if probability >= 1:
        return spaces.sub("", text)
    chance = stream.chance
    first, *pieces = spaces.split(text)
    return first + "".join([piece if chance(probability) else f" {piece}" for piece in pieces])
