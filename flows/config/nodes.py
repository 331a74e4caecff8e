"""All parts of a value as YAML or JSON has it, which anyone may have written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def nodes(value: object) -> Iterator[object]:
    """The value itself and all that it has in it, in order; a list or mapping that stands in many places once."""
    waiting, seen = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, (Mapping, list, tuple)):
            if id(one) in seen:
                continue
            seen.add(id(one))
            waiting += reversed(list(one.values()) if isinstance(one, Mapping) else one)
        yield one


def mappings(value: object) -> Iterator[Mapping[str, object]]:
    """The mappings among them."""
    return (one for one in nodes(value) if isinstance(one, Mapping))
