"""Read JSON in a model's text, of bounded size and depth."""

from __future__ import annotations

import json

TEXT_LIMIT = 2_000_000
"""Characters; a longer text is refused unread."""
DEPTH_LIMIT = 100
"""Lists and objects inside one another; whatever walks through a document recurses this deep at most."""
_DIGITS = 300
"""Digits of a whole number that stays one; a longer one becomes infinite, as it does in JavaScript."""


class DocumentError(ValueError):
    """The text is no JSON document, or too large a one."""


def parse_document(text: str) -> object:
    """The JSON document that `text` is.

    Examples
    --------
    >>> parse_document('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    if len(text) > TEXT_LIMIT:
        raise DocumentError(f"the text has {len(text)} characters, more than {TEXT_LIMIT}")
    try:
        document: object = json.loads(text, parse_int=_integer, parse_constant=_refuse)
    except RecursionError:
        raise DocumentError("the document is nested too deep") from None
    except ValueError as error:
        raise DocumentError("the text is not JSON") from error
    if _is_deep(document):
        raise DocumentError(f"the document is nested deeper than {DEPTH_LIMIT}")
    return document


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def _refuse(name: str) -> object:
    raise ValueError(name)


def _is_deep(document: object) -> bool:
    # Level by level and not by recursion, which a document made for it would exhaust.
    level = [document]
    for _ in range(DEPTH_LIMIT):
        level = [child for node in level for child in _inner(node)]
        if not level:
            return False
    return True


def _inner(node: object) -> list[object]:
    """The lists and objects directly inside another."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [child for child in children if isinstance(child, (dict, list))]
