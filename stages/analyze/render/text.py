"""Text and numbers in the short and safe form in which tables, charts and pages show them."""

from __future__ import annotations

import math
import re

from evalcube.stages.analyze.labelled.axes import plain, reveal_unseen

ABSENT = "–"
"""Shown for a value that is undefined or was not measured."""

CODE_MOST = 160
"""Characters of a code span."""
_TICKS = re.compile("`+")
_LIVE = re.compile(
    r"@|://|www\.|[#!$%&]\w|~[^\W\d]|:\w+:|\bGH-\d|\b(?=\d*[a-f])[0-9a-f]{7,40}\b", re.IGNORECASE
)
"""Where GitHub and GitLab see mentions, links, issues, labels, emoji and commits, however they are escaped."""
_MARKDOWN = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_[]|~#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


def printable(text: str, limit: int) -> str:
    r"""At most `limit` characters of a text, unseen ones other than line ends and tabs by their numbers.

    Examples
    --------
    >>> printable("one\ntwo\x07three", 8)
    'one\ntwo⟨U+0007⟩… (5 more characters)'
    """
    shown = reveal_unseen(text[:limit].replace("\r\n", "\n"), "\n\t")
    hidden = len(text) - limit
    return f"{shown}… ({hidden:,} more characters)" if hidden > 0 else shown


def markdown(text: str) -> str:
    r"""`plain` text with Markdown's and HTML's marks escaped, fit for a table's cell.

    Examples
    --------
    >>> print(markdown("a|b <i>"))
    a\|b &lt;i&gt;
    """
    return plain(text).translate(_MARKDOWN)


def code(text: str, *, cell: bool = True) -> str:
    r"""A text as a code span: in one line, at most 160 characters, its end fence too long for it.

    Examples
    --------
    >>> print(code("a|b `c` @all"), code("a|b", cell=False))
    `` a\|b `c` @all `` `a|b`
    """
    cut = plain(printable(text, CODE_MOST)).strip()
    longest = max((len(run) for run in _TICKS.findall(cut)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    shown = cut.replace("|", "\\|") if cell else cut
    return f"{fence}{space}{shown}{space}{fence}" if cut else ABSENT


def cell_markdown(text: str) -> str:
    r"""A text for a cell of a table in Markdown: code if a mention, a link or a reference would come to life in it.

    Examples
    --------
    >>> print(cell_markdown("a*b"), cell_markdown("@everyone *"))
    a\*b `@everyone *`
    """
    return code(text) if _LIVE.search(text) else markdown(text)


def sentence(text: str) -> str:
    r"""A sentence of ours in Markdown, words as code in which a mention, link or reference would come to life.

    Examples
    --------
    >>> print(sentence("see www.example.com, a_b"))
    see `www.example.com,` a\_b
    """
    words = plain(text).split(" ")
    return " ".join(code(word, cell=False) if _LIVE.search(word) else markdown(word) for word in words)


def shorten(text: str, limit: int) -> str:
    """`plain` text of at most `limit` characters, cut in the middle, where names differ least.

    Examples
    --------
    >>> shorten("a-rather-long-model-name-v2", 16)
    'a-rathe…-name-v2'
    """
    whole = plain(text)
    if len(whole) <= limit:
        return whole
    head = (limit - 1) // 2
    return f"{whole[:head]}…{whole[len(whole) - (limit - 1 - head) :]}"


def number(value: float, digits: int = 0) -> str:
    """Fixed number of decimals with thousands separated; `ABSENT` for NaN.

    Examples
    --------
    >>> number(1234.5, 1), number(float("nan"))
    ('1,234.5', '–')
    """
    return ABSENT if math.isnan(value) else f"{value:,.{digits}f}"


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage; one too small for its digits is not shown as nothing; `ABSENT` for NaN.

    Examples
    --------
    >>> percent(0.1234), percent(1.0, 0), percent(0.0001)
    ('12.3%', '100%', '<0.1%')
    """
    if math.isnan(share):
        return ABSENT
    least = 10.0**-digits
    return f"<{least:.{digits}f}%" if 0 < 100 * share < least / 2 else f"{100 * share:.{digits}f}%"


def significant(value: float, digits: int = 3) -> str:
    """About `digits` significant digits without an exponent; `ABSENT` for NaN.

    Examples
    --------
    >>> significant(0.012345), significant(12345.0), significant(0.0), significant(math.inf)
    ('0.0123', '12,345', '0', 'inf')
    """
    if math.isnan(value):
        return ABSENT
    if value == 0:
        return "0"
    if math.isinf(value):  # as of a stranger's prices
        return str(value)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 12)}f}"
