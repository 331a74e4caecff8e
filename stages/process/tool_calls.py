"""Reads the tools that a reply asks for; no reply makes it raise."""

from __future__ import annotations

import json

CALLS_LIMIT = 1_000
"""Calls of one reply that are read."""
TEXT_LIMIT = 100_000
"""Characters of a tool's name and of its arguments that are read."""

Call = tuple[str, str]
"""Name of a tool and its arguments, as the model wrote them."""


def read_tool_calls(value: object) -> tuple[Call, ...]:
    """The calls in the field ``tool_calls`` of a chat message, in the order in which they came.

    A streamed reply holds a call in pieces, which share an ``index``: the first one has its name, the others what is
    to be added to its arguments. A piece with an ``id`` of its own begins another call, whatever its index.

    Parameters
    ----------
    value
        Whatever the endpoint sent.

    Examples
    --------
    >>> read_tool_calls([{"id": "a", "function": {"name": "add", "arguments": "{}"}}])
    (('add', '{}'),)
    >>> pieces = [("a", "add", "{"), (None, None, '"x": 1}')]
    >>> read_tool_calls([{"index": 0, "id": i, "function": {"name": n, "arguments": a}} for i, n, a in pieces])
    (('add', '{"x": 1}'),)
    """
    if not isinstance(value, list):
        return ()
    calls: list[tuple[object, list[str], list[str]]] = []
    open_calls: dict[int, int] = {}
    for piece in value:
        if not isinstance(piece, dict):
            continue
        function = piece.get("function")
        fields = function if isinstance(function, dict) else {}
        index, own = piece.get("index"), piece.get("id")
        place = open_calls.get(index) if isinstance(index, int) else None
        if place is None or (own and own != calls[place][0]):
            if len(calls) == CALLS_LIMIT:
                break
            place = len(calls)
            calls.append((own, [], []))
            if isinstance(index, int):
                open_calls[index] = place
        calls[place][1].append(_text(fields.get("name")))
        calls[place][2].append(_text(fields.get("arguments")))
    return tuple(("".join(name)[:TEXT_LIMIT], "".join(said)[:TEXT_LIMIT]) for _, name, said in calls)


def _text(value: object) -> str:
    """Text as it is; some servers send the arguments as an object."""
    if isinstance(value, str):
        return value
    if not isinstance(value, (dict, list)):
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""
