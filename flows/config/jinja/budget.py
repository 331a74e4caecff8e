"""How much work one rendering may do, counted and never timed: a template is refused everywhere or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from jinja2 import Undefined

from evalcube.flows.errors import TemplateError

LARGEST_OUTPUT = 4_000_000
"""Bytes of UTF-8 in all contents together."""
MOST_STEPS = 200_000
"""Turns of loops and calls in one rendering."""
MOST_OPERATIONS = 3_000_000
"""Nodes of the template's tree that loops, macros and blocks may go through."""
MOST_WORK = 32_000_000
"""Bytes of texts and values that one rendering may read and make: a second at most, and well under 200 MB."""
CALL = 64
"""Bytes that a filter or test counts as, besides what it reads and makes."""
SCALAR = 16
"""Bytes that a value counts besides what is in it."""
_HEADER = sys.getsizeof("") - SCALAR
SHORTEN = f"Keep the messages under {LARGEST_OUTPUT:,} bytes"
_SIMPLIFY = "Take shorter texts, smaller numbers or fewer loops"


class Budget:
    """What is left to one rendering."""

    __slots__ = ("_operations", "_steps", "_work")

    def __init__(self) -> None:
        self._steps = MOST_STEPS
        self._operations = MOST_OPERATIONS
        self._work = MOST_WORK

    def step(self) -> None:
        """Take one turn of a loop, or one call."""
        self._steps -= 1
        if self._steps < 0:
            raise TemplateError(
                f"loops and calls in the template take more than {MOST_STEPS:,} steps",
                "Make the loops shorter",
            )

    def run(self, nodes: int) -> None:
        """Go through the body of a loop, a macro or a block."""
        self._operations -= nodes
        if self._operations < 0:
            raise TemplateError(
                f"loops and calls in the template take more than {MOST_STEPS:,} steps of "
                f"{MOST_OPERATIONS // MOST_STEPS} operations",
                "Make the loops shorter",
            )

    def spend(self, work: float) -> None:
        """Take bytes that are read or made."""
        self.require(work)
        self._work -= int(work)

    def require(self, work: float) -> None:
        """Refuse what would make more than is left, before it is made."""
        if work > self._work:
            raise TemplateError(
                f"takes more than {MOST_WORK:,} bytes of work: a text, number or list in the template is too large",
                _SIMPLIFY,
            )

    def size(self, value: object) -> int:
        """Bytes of a value with all that is in it; a part that occurs twice counts twice, as it would be printed.

        Raises
        ------
        TemplateError
            If that is more than is left: nested lists can stand for more values than there are atoms.
        """
        if isinstance(value, str):
            return sys.getsizeof(value) - _HEADER
        if isinstance(value, int):
            return SCALAR + value.bit_length() // 8
        total, parts = 0, [value]
        while parts:
            part = parts.pop()
            if isinstance(part, (str, bytes)):
                total += sys.getsizeof(part) - _HEADER
            elif isinstance(part, int):
                total += SCALAR + part.bit_length() // 8
            elif part is None or isinstance(part, float):
                total += SCALAR
            elif isinstance(part, range):
                total += SCALAR + 8 * len(part)
            elif (inner := _parts(part)) is not None:
                # each place is counted here, before a copy of a long list is made
                total += SCALAR + 8 * len(inner)
                self.require(total + SCALAR * len(inner))
                parts.extend(inner)
            else:
                total += SCALAR
            self.require(total)
        return total

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """Items that are made only when they are asked for, each one a step."""
        for item in items:
            self.step()
            self.spend(self.size(item))
            yield item


def _parts(value: Any) -> Any:  # noqa: ANN401 - a collection
    """What a collection holds; None for a single value."""
    if isinstance(value, Undefined):
        return None
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, _VIEWS):
        return list(value)
    return None


_VIEWS: tuple[type[Collection[Any]], ...] = (type({}.keys()), type({}.values()), type({}.items()))
BUDGET: ContextVar[Budget] = ContextVar("template budget")
"""Of the rendering under way: also functions that Jinja gives no context find it."""
