"""Recognises secrets among a config's values, and shows any value in a short and safe way."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "<hidden>"
LONGEST_SHOWN = 60

_KEY = re.compile(
    r"(?<![A-Za-z0-9])(sk|pk|rk)[-_][A-Za-z0-9]"
    r"|(?<![A-Za-z0-9])(ghp|gho|ghs|hf|gsk|r8|pplx|xai|nvapi|glpat|xox[abp]|github_pat)[-_][A-Za-z0-9]{4}"
    r"|(?<![A-Za-z0-9])(AIza|AKIA|ASIA|eyJ)[A-Za-z0-9_-]{8}"
    r"|\b(bearer|basic)\s+\S"
    r"|://[^/@]*@"
    r"|(api[-_]?key|token|password|secret)\s*[=:]\s*\S",
    re.IGNORECASE,
)
_LONG_RUN = re.compile(r"[A-Za-z0-9_+-]{20,}")
_SECRET_NAME = re.compile(
    r"authori[sz]ation|api[-_]?key|cookie|secret|passw(or)?d|credential|bearer"
    r"|(?:^|[-_])(auth|token|key|access[-_]token)$",
    re.IGNORECASE,
)


def looks_secret(text: str) -> bool:
    """Tell whether a text has the form of a key, a token or a URL with a password."""
    return bool(_KEY.search(text)) or any(_is_random(run) for run in _LONG_RUN.findall(text))


def _is_random(run: str) -> bool:
    """Tell a random token from a long word: letters and digits change places often."""
    changes = len(re.findall(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])", run))
    return changes >= 4


def secret_word(name: str) -> str | None:
    """Find the part of a header's or parameter's name that says it carries a secret."""
    found = _SECRET_NAME.search(name)
    return found.group(0).lower().strip("-_") if found else None


def mask(text: str) -> str:
    """Return the text, or a stand-in if it looks like a secret."""
    return HIDDEN if looks_secret(text) else text


def show(value: object) -> str:
    """Give a value in at most about 60 characters of one line; contents of lists and mappings stay out.

    Examples
    --------
    >>> show("abc"), show(None), show([1, 2]), show("sk-12345")
    ("'abc'", 'null', 'a list', '<hidden>')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return HIDDEN if looks_secret(value) else _shorten(ascii(value) if _odd(value) else repr(value))
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "a list"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**LONGEST_SHOWN else "a huge number"
    if isinstance(value, float):
        return repr(value)
    return f"a {type(value).__name__}"


def _odd(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 4]}...{text[-1]}"
