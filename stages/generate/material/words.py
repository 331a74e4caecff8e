"""What several tasks share: ordinary English words, first names, things to hold, and the ends of prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalcube.stages.generate.material import material

_LISTS = material("words")

WORDS = tuple(_LISTS["words"].split())
"""Lower-case words of 3 to 12 letters, by length; every letter of the alphabet occurs."""
NAMES = tuple(_LISTS["names"].split())
"""First names that are not also common words."""
ITEMS = tuple(_LISTS["items"].split())
"""Things that one person can hold; single words that ordinary prose seldom uses for anything else."""
ADJECTIVES = tuple(_LISTS["adjectives"].split())
"""Adjectives that suit any of the things in groups and name none of them."""
KEYS = tuple(_LISTS["keys"].split())
"""Names of members of JSON documents."""
EVENTS = tuple(_LISTS["events"].split())
"""What one may go to."""
CARS: Mapping[str, str] = _LISTS["cars"]
"""Colors and bodies of cars."""
COLUMNS: Mapping[str, Any] = _LISTS["columns"]
"""Names of columns of numbers, and of columns of texts with the texts."""
GROUPS = {group: tuple(text.split()) for group, text in _LISTS["groups"].items()}
"""Name of a group -> its things; no thing belongs to two groups."""
TOOLS: Mapping[str, Any] = _LISTS["tools"]
"""Words of the names of tools, and what may be given to one."""
SENTENCES = {part: text.split("|") for part, text in _LISTS["haystack"].items()}
"""Parts of sentences of a text that says nothing: who, did, what, where, when."""


def with_article(noun: str) -> str:
    """The noun with "a" or "an", by its first letter.

    Examples
    --------
    >>> with_article("apple"), with_article("drum")
    ('an apple', 'a drum')
    """
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def ordinal(number: int) -> str:
    """A number with the letters that make it an ordinal one, for numbers up to 20."""
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"


def join(items: Sequence[str]) -> str:
    """Texts with commas between them, and "and" before the last one."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
