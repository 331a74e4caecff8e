"""Part of a raw config -> the same if it has the expected form, else nothing: the models tell what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def items(value: object) -> Sequence[object]:
    """The value if it is a list."""
    return value if isinstance(value, (list, tuple)) else ()


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is a mapping."""
    return value if isinstance(value, Mapping) else {}
