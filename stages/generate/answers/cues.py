"""The words around answers, from one file: what announces, denies, explains or takes one back."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files


@cache
def entries() -> dict[str, list[str]]:
    """The file's lists by name."""
    return tomllib.loads(files(__package__).joinpath("cues.toml").read_text("utf-8"))


@cache
def phrases(name: str) -> str:
    """A pattern of the phrases of a name, in the file's order.

    Examples
    --------
    >>> phrases("switch")
    '(?:wait|actually|correction|scratch that|i mean|make that|sorry)'
    """
    plain = "|".join(map(re.escape, entries()[name])).replace(r"\ ", " ").replace(r"\-", "-")
    plain = plain.replace(r"\*", r"\w*").replace(r"\(", "(?:").replace(r"\)", ")?")
    return f"(?:{plain})".replace("'", "['’]")
