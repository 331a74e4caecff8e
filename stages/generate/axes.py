"""One axis of a grid, and which of its values are measured at a degree and a density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Density = Literal["normal", "lowdef", "corner"]
"""All values of an axis; first, middle and last; first and last."""


@dataclass(frozen=True)
class Window:
    """A stretch of a range that slides up with the degree."""

    body: int
    """Values in the window, at least 1."""
    skip: int = 0
    """Values before it at degree 0."""
    step: int = 1
    """Further values before it per degree."""

    def first(self, degree: int) -> int:
        """Index of the window's first value."""
        return self.skip + self.step * degree

    def largest_degree(self, length: int) -> int | None:
        """The largest degree at which the window fits into `length` values; None if it never does or always.

        Examples
        --------
        >>> Window(body=4).largest_degree(6)
        2
        """
        room = length - self.body - self.skip
        return room // self.step if room >= 0 and self.step else None


@dataclass(frozen=True)
class Axis:
    """Values of a param in rising difficulty, of which a window may be used."""

    values: Sequence[object]
    window: Window | None = None

    def chosen(self, degree: int, density: Density) -> list[int]:
        """Indices of the values that are measured, ascending.

        Raises
        ------
        IndexError
            If the window reaches past the end; the message says how far the degree may go.

        Examples
        --------
        >>> Axis([8, 16, 24, 32, 40, 48], Window(body=4)).chosen(1, "lowdef")
        [1, 2, 4]
        """
        if self.window is None:
            return thinned(range(len(self.values)), density)
        first = self.window.first(degree)
        end = first + self.window.body
        if end > len(self.values):
            raise IndexError(self._past_the_end(self.window, degree))
        return thinned(range(first, end), density)

    def _past_the_end(self, window: Window, degree: int) -> str:
        length = len(self.values)
        largest = window.largest_degree(length)
        text = (
            f"a window of {window.body} after the first {window.first(degree)} values (degree {degree}) "
            f"reaches past the end of a range of {length}"
        )
        remedy = "make body or skip smaller" if largest is None else f"the largest degree is {largest}"
        return f"{text}; {remedy}, or give the range more values"


def thinned(indices: Sequence[int], density: Density) -> list[int]:
    """Resample an axis; one that has no more values than the density keeps stays whole.

    The middle of an even number of values is the lower one, which is the cheaper one.

    Examples
    --------
    >>> thinned(range(6), "normal"), thinned(range(6), "lowdef"), thinned(range(6), "corner")
    ([0, 1, 2, 3, 4, 5], [0, 2, 5], [0, 5])
    """
    if density == "lowdef" and len(indices) > 3:
        return [indices[0], indices[(len(indices) - 1) // 2], indices[-1]]
    if density == "corner" and len(indices) > 2:
        return [indices[0], indices[-1]]
    return list(indices)
