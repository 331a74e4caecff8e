"""A text in; its length, its words, and the text without white space at its ends, out."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

from stages.process.assertions.profile import Profile

_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""White space and line ends of ECMAScript, byte order mark included."""
_WORD = re.compile(f"[^{_SPACE}]+")


def trimmed(text: str) -> str:
    """The text without white space at its ends."""
    return text.strip(_SPACE)


def word_count(text: str) -> int:
    """Runs of anything but white space."""
    return sum(1 for _ in _WORD.finditer(text))


def units(text: str, profile: Profile) -> Sequence[object]:
    """What a text's length counts: characters, or UTF-16 code units in ``omk054``."""
    return array("H", text.encode("utf-16-le", "surrogatepass")) if profile == "omk054" else text


def length(text: str, profile: Profile) -> int:
    """How many `units` a text has."""
    return len(units(text, profile))
