"""Foreign values in a form in which they do nothing, to a terminal, in a spreadsheet or in JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

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
    return visible(f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text)


def jsonable(value: Any) -> Any:  # noqa: ANN401 - any JSON value, or numpy's
    """A document that JSON can hold: NaN and infinities become null, arrays lists."""
    kind = type(value)
    if value is None or kind in (str, int, bool):  # most of what there is
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return jsonable(value.tolist()) if hasattr(value, "tolist") else value
