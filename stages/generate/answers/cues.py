"""The words around answers, from one file: what announces, denies, explains or takes one back."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"\{([a-z_]+)\}")


@cache
def _entries() -> dict[str, list[str]]:
    text = files(__package__).joinpath("cues.toml").read_text("utf-8")
    return {name: list(entries) for name, entries in tomllib.loads(text).items()}


@cache
def phrases(name: str) -> str:
    """A pattern of the phrases of a name, in the file's order; `{name}` in one stands for those of another name."""
    return _NAME.sub(lambda called: phrases(called[1]), f"(?:{'|'.join(_entries()[name])})")
