r"""Find the explicit answers in a model's text, in whatever way they are marked.

These are the parts that all readers of answers share. A reader never raises and takes linear time on any text, since
models write anything: so every repetition in a pattern is bounded or possessive, and only a bounded number of places
is tried. It looks at explicit answers first (``Answer: 7``, ``the answer is 7``, ``\boxed{7}``), the last one that
can be read, then at bold text, then at the rest. An answer that hedges between two values is no answer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

SEGMENT = 300
"""Characters of an explicit answer of one line that are read."""
CANDIDATES = 20
"""Places of one kind that are tried, from the last one backwards."""
TAIL = 6000
"""Characters after the mark of an explicit answer of several lines that are read."""
DECORATION = " \t\n*_`$#>\"'([{\\<~:=“”‘’"
"""Characters around an answer that are no part of it."""

_MINUS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-") | {"\r": "\n"})
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|operatorname)\s{0,3}\{([^{}\\]*+)\}")
_LATEX_COMMA = re.compile(r"\{,\}|\\[,!;:]")
_ANSWER = (
    r"|^[#*_> \t]{0,12}(?:final[ \t]{1,3})?answer[*_ \t]{0,8}$"
    r"|\banswer\b[^\n:=]{0,60}?(?:[:=]|\bis\b:?)"
)
_EXPLICIT = re.compile(
    rf"\\boxed\s{{0,3}}\{{(?P<boxed>[^{{}}]{{0,300}})\}}{_ANSWER}", re.IGNORECASE | re.MULTILINE
)
_BEFORE_TAIL = re.compile(rf"(?P<boxed>\\boxed\s{{0,3}}\{{){_ANSWER}", re.IGNORECASE | re.MULTILINE)
# Where one may be: a pattern that begins with a set of letters is searched for ten times as fast as that one.
_MARK = re.compile(r"[aA\\](?i:nswer|boxed)")
_LINE_START = 21
"""Characters before the word "answer" in which its line begins, where the line holds nothing else."""
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*")
_CUT_WORD = re.compile(r"(?<!\w)[\w.,]++$")


def normalised(text: str) -> str:
    """The text with plain minus signs and line ends, and without LaTeX around words and in numbers."""
    text = text.translate(_MINUS)
    if "\\" in text or "{,}" in text:
        text = _LATEX_COMMA.sub(",", _LATEX_TEXT.sub(r"\1", text))
    return text


def explicit_answers(text: str) -> Iterator[str]:
    """The explicit answers in a text, one line each, the last one first.

    Examples
    --------
    >>> list(explicit_answers("The answer is 7. Wait! Answer: 8"))
    ['8', '7. Wait! Answer: 8']
    """
    return explicit_lines(normalised(text))


def explicit_lines(text: str) -> Iterator[str]:
    """What stands in the explicit answers of a normalised text, one line each, the last answer first."""
    for match in reversed(deque(_explicit_matches(text), maxlen=CANDIDATES)):
        boxed = match["boxed"]
        if boxed is not None:
            yield boxed.strip(DECORATION)
            continue
        rest = text[match.end() : match.end() + SEGMENT]
        if len(rest) == SEGMENT and rest[-1].isalnum():
            rest = _CUT_WORD.sub("", rest)
        yield rest.lstrip(DECORATION).split("\n", 1)[0].rstrip()


def _explicit_matches(text: str) -> Iterator[re.Match[str]]:
    """The same as ``_EXPLICIT.finditer(text)``."""
    begin = 0
    while (mark := _MARK.search(text, begin)) is not None:
        at = mark.start()
        line = text.rfind("\n", max(begin, at - _LINE_START), at) + 1
        match = _EXPLICIT.match(text, max(line, begin)) or _EXPLICIT.match(text, at)
        if match is not None:
            yield match
        begin = at + 1 if match is None else match.end()


def bold_passages(text: str) -> Iterator[str]:
    """Bold passages of a line at most, the last one first."""
    for match in reversed(deque(_BOLD.finditer(text), maxlen=CANDIDATES)):
        yield match[1].strip(DECORATION)


def tails(text: str) -> Iterator[tuple[str, bool]]:
    """What follows each mark of an explicit answer and whether that is a LaTeX box, the last one first."""
    for match in reversed(deque(_BEFORE_TAIL.finditer(text), maxlen=CANDIDATES)):
        yield text[match.end() : match.end() + TAIL], match["boxed"] is not None
