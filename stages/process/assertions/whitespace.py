"""White space as ECMAScript has it, at the ends of a text and between its words."""

from __future__ import annotations

import re

# What `str.strip` and ``\s`` take for white space differs from it in the byte order mark and some control characters.
_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_WORD = re.compile(f"[^{_SPACE}]+")


def trimmed(text: str) -> str:
    """The text without white space at its ends."""
    return text.strip(_SPACE)


def word_count(text: str) -> int:
    """How many words a text has: runs of anything but white space."""
    return sum(1 for _ in _WORD.finditer(text))
