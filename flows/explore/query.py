"""What a page asks for: names with texts, as they stand in an address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from evalcube.flows.config.near_names import checked_option
from evalcube.flows.errors import SweepError

if TYPE_CHECKING:
    from evalcube.flows.explore.explored import Explored

_PLAIN = "!'()*"
"""What JavaScript's encodeURIComponent leaves as it is beyond what `quote` does, so that both make the same keys."""

MOST_ITEMS, LONGEST = 200, 4000
"""Bounds of a query: how many texts it may have, and how long each may be."""


@dataclass(frozen=True)
class Query:
    """Names with texts; a name may come several times."""

    items: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, items: Iterable[tuple[str, str]]) -> Query:
        """A query out of an address."""
        pairs = tuple(items)
        if len(pairs) > MOST_ITEMS:
            raise SweepError(f"an address has {len(pairs)} settings", f"Give at most {MOST_ITEMS}")
        for name, value in pairs:
            if len(name) + len(value) > LONGEST:
                raise SweepError(f"`{name[:40]}`: its text is too long", f"Give at most {LONGEST} characters")
        return cls(pairs)

    @classmethod
    def make(cls, **values: str | Sequence[str]) -> Query:
        """A query of names with one text or several.

        Examples
        --------
        >>> Query.make(task=["sort", "cars"], tier="easy").key
        'task=cars&task=sort&tier=easy'
        """
        texts = {name: [value] if isinstance(value, str) else value for name, value in values.items()}
        return cls(tuple((name, text) for name, own in texts.items() for text in own))

    @property
    def key(self) -> str:
        """The same text for the same query, in whatever order it came; the page makes the same one."""
        parts = (f"{quote(name, safe=_PLAIN)}={quote(value, safe=_PLAIN)}" for name, value in self.items)
        return "&".join(sorted(parts))

    def all(self, name: str) -> tuple[str, ...]:
        """All texts of a name, in order; empty ones are none."""
        return tuple(dict.fromkeys(value for key, value in self.items if key == name and value))

    def one(self, name: str, default: str = "") -> str:
        """The text of a name."""
        texts = self.all(name)
        if len(texts) > 1:
            raise SweepError(f"`{name}`: {len(texts)} values are given", "Give one")
        return texts[0] if texts else default

    def choice(self, name: str, known: Sequence[str], default: str) -> str:
        """The text of a name, which must be one of the known ones."""
        value = self.one(name, default)
        checked_option(name, value, known)
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """The whole number of a name."""
        text = self.one(name, str(default))
        short = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
        if not short or not least <= int(text) <= most:
            raise SweepError(
                f"`{name}`: '{text}' is no whole number from {least} to {most}",
                "Give one within these bounds",
            )
        return int(text)


Json = dict[str, Any]
"""An object of JSON values; numbers may be numpy's, and NaN becomes null."""


def nothing(_: Explored) -> Iterable[Query]:
    """No query at all."""
    return ()


def once(_: Explored) -> Iterable[Query]:
    """The one query that says nothing."""
    return (Query(),)


def each_model(explored: Explored) -> Iterable[Query]:
    """A query for each model."""
    return (Query.make(model=label) for label in explored.labels())


@dataclass(frozen=True)
class Answerer:
    """One thing that a page can ask for, at ``/api/NAME``."""

    name: str
    answer: Callable[[Explored, Query], Json]
    """Reads cubes and changes nothing; raises `EvalcubeError` for what is asked wrongly."""
    bundled: Callable[[Explored], Iterable[Query]] = nothing
    """The queries whose answers a bundle holds."""
    kept: bool = True
    """Whether an answer stays right until something new is recorded in a cube."""
