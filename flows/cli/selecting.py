"""What commands are asked for, as the library takes it: a part of a cube, and names in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flows.cubes.selection import Part


def part_of(
    where: Sequence[str] | None = None,
    view: str | None = None,
    trials: int | None = None,
    *,
    unique_only: bool = False,
    clip_tokens: int | None = None,
    tier: str | None = None,
) -> Part:
    """The part of a cube that the options mean."""
    from flows.cubes.selection import Part

    conditions = (*(where or ()), *([f"tier={tier}"] if tier else ()))
    return Part(conditions, view, trials, unique_only, clip_tokens)


def names_of(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
