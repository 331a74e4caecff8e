"""Reads what was said before a question: the turns of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST_TURNS = 200
MOST_TEXT = 1_000_000
"""Characters of all turns."""
ROLES = ("system", "user", "assistant")


def turns_of(values: Sequence[object] | None) -> tuple[Mapping[str, str], ...]:
    """The turns in a value of a file, the last of which is the question."""
    if not values or len(values) > MOST_TURNS:
        raise ValueError(f"must hold a list of 1 to {MOST_TURNS} turns")
    turns = tuple(map(_turn, values))
    if turns[-1]["role"] != "user":
        raise ValueError("must end with the user's turn, which is the question")
    if sum(len(turn["content"]) for turn in turns) > MOST_TEXT:
        raise ValueError(f"has more than {MOST_TEXT:,} characters")
    return turns


def _turn(value: object) -> Mapping[str, str]:
    role, content = (value.get("role"), value.get("content")) if isinstance(value, Mapping) else (None, None)
    if not isinstance(role, str) or role not in ROLES or not isinstance(content, str):
        raise ValueError(f"must hold turns with a role ({', '.join(ROLES)}) and a text as content")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is no character; correct the text") from None
    return {"role": role, "content": content}
