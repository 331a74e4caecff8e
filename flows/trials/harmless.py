"""Foreign text in a form in which it does nothing, to a terminal or in a spreadsheet."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
"""What a spreadsheet takes for the beginning of a formula, or skips before one."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_UNUSUAL = re.compile(r"[^\n\t -~]")


def visible(text: str) -> str:
    r"""The text with control characters other than line breaks and tabs written out, so that they do nothing.

    Examples
    --------
    >>> print(visible("a\x1b[31mb"))
    a\x1b[31mb
    """
    return _UNUSUAL.sub(lambda found: found[0] if found[0].isprintable() else repr(found[0])[1:-1], text)


def csv_text(text: str) -> str:
    """A text for a cell of a spreadsheet: an apostrophe before what would be a formula; plain numbers stay as they are.

    Examples
    --------
    >>> csv_text("=1+1"), csv_text("-12"), csv_text("-12+A1"), csv_text("x = 1")
    ("'=1+1", '-12', "'-12+A1", 'x = 1')
    """
    shown = f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
    return visible(shown)
