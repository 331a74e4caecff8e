"""Read the integer that a model's text ends up with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.values import Form, read_value

WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
"""Numbers that are read as words too."""
_SPACES = "\u00a0\u2009\u202f"
_NUMBER = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)(?<![0-9][:/])(?:(?<![\w)\]}-])(?<![0-9)\]}] )(?P<sign>[-+]|\A[-+] |negative |minus ))?"
    rf"(?:(?P<digits>[0-9]{{1,3}}(?>(?: [0-9]{{3}}(?![0-9,._]))+)(?>(?:\.(?>0+))?)"
    rf"|(?>[0-9]+)(?>(?:[.,_'’{_SPACES}](?>[0-9]+))*))(?![\w^])"
    rf"|(?P<word>{'|'.join(WORDS)})(?![\w-]))",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(?>[0-9]+)(?>(?:\.(?>0+)|,0{1,2})?)")
_THOUSANDS = re.compile(
    rf"[0-9]{{1,3}}(?:([,_'’ {_SPACES}])[0-9]{{3}})(?>(?:\1[0-9]{{3}})*)(?>(?:\.(?>0+))?)"
)


class _Integers(Form):
    counts = True
    counts_things = True

    def mentions(self, line: str) -> Sequence[Mention]:
        return [
            Mention(match.start(), match.end(), integer(match), weak=match["word"] is not None)
            for match in _NUMBER.finditer(line)
        ]


_INTEGERS = _Integers()


def last_integer(text: str) -> str | None:
    """The integer a text ends up with, in plain decimal digits; None if there is none.

    Thousands separators, Unicode minus signs, LaTeX, a decimal part of zeros and words up to twelve are understood.
    The number is handled as text, so that one of any length is read without an error.

    Examples
    --------
    >>> last_integer("3 + 4 = 7, so the answer is **7**. (Checked twice.)")
    '7'
    >>> last_integer("Answer: −1,234.")
    '-1234'
    >>> last_integer("half of it") is None
    True
    """
    return read_value(text, _INTEGERS)


def integer(match: re.Match[str]) -> str | None:
    """The integer of a match, in plain digits; None for a number that is none."""
    negative = match["sign"] not in (None, "+", "+ ")
    if match["word"]:
        whole = str(WORDS.index(match["word"].lower())).lstrip("0")
    else:
        digits = match["digits"]
        if not (_PLAIN.fullmatch(digits) or _THOUSANDS.fullmatch(digits)):
            return None
        whole = re.sub("[^0-9]", "", re.split(r"[.]|,0{1,2}$", digits)[0]).lstrip("0")
    return ("-" if negative and whole else "") + (whole or "0")
