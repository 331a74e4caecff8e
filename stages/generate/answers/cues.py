"""The words around answers, from one file: what announces, denies, explains or takes one back."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def _entries() -> dict[str, list[str]]:
    text = files(__package__).joinpath("cues.toml").read_text("utf-8")
    return {name: list(entries) for name, entries in tomllib.loads(text).items()}


def phrases(name: str) -> str:
    """A pattern of the phrases of a name, in the file's order."""
    return f"(?:{'|'.join(_entries()[name])})"
