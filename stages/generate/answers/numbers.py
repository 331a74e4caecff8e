"""Read the integer that a model's text ends up with, and write numbers of any kind in one way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.passages import normalised
from evalcube.stages.generate.answers.values import Form, read_value

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_UNITS += [f"{stem}teen" for stem in "thir four fif six seven eigh nine".split()]
_TENS = [f"{stem}ty" for stem in "twen thir for fif six seven eigh nine".split()]
WORD = rf"(?=[efnostz])(?:{'|'.join(_UNITS)}|(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_UNITS[1:10])}))?)"
"""Numbers that are read as words too, those below a hundred."""


def spelled(word: str) -> str:
    """The digits of a number that is written as a word."""
    parts = re.split("[ -]", word.casefold())
    return str(sum(10 * _TENS.index(p) + 20 if p in _TENS else _UNITS.index(p) for p in parts))


_SPACES = "\u00a0\u2009\u202f"
_NUMBER = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)(?<![0-9][:/])(?:(?<![\w)\]}-])(?<![0-9)\]}] )(?P<sign>[-+]|\A[-+] |negative |minus ))?"
    rf"(?:(?P<digits>[0-9]{{1,3}}(?>(?: [0-9]{{3}}(?![0-9,._]))+)(?>(?:\.(?>0+))?)"
    rf"|(?>[0-9]+)(?>(?:[.,_'’{_SPACES}](?>[0-9]+))*))(?![\w^]|/[0-9])|(?P<word>{WORD})(?![\w-]))",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(?>[0-9]+)(?>(?:\.(?>0+)|,0{1,2})?)")
_THOUSANDS = re.compile(
    rf"[0-9]{{1,3}}(?:([,_'’ {_SPACES}])[0-9]{{3}})(?>(?:\1[0-9]{{3}})*)(?>(?:\.(?>0+))?)"
)


class NumberForm(Form):
    """Numbers as a pattern finds them.

    Parameters
    ----------
    pattern
        What finds one.
    value
        The number of a match; None for what is none.
    word
        The pattern's group of numbers that are written as words.
    """

    counts = True
    counts_things = True

    def __init__(
        self, pattern: re.Pattern[str], value: Callable[[re.Match[str]], str | None], word: str = "word"
    ) -> None:
        self._pattern, self._value, self._word = pattern, value, word

    def mentions(self, line: str) -> Sequence[Mention]:
        """Every number in a line, in order."""
        return [
            Mention(match.start(), match.end(), self._value(match), weak=match[self._word] is not None)
            for match in self._pattern.finditer(line)
        ]


def last_integer(text: str) -> str | None:
    """The integer a text ends up with, in plain decimal digits; None if there is none.

    Thousands separators, Unicode minus signs, LaTeX, a decimal part of zeros and words below a hundred are understood.
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
        whole = spelled(match["word"]).lstrip("0")
    else:
        whole = match["digits"]
        if not whole.isdecimal():
            if not (_PLAIN.fullmatch(whole) or _THOUSANDS.fullmatch(whole)):
                return None
            whole = re.sub("[^0-9]", "", re.split(r"[.]|,0{1,2}$", whole)[0])
        whole = whole.lstrip("0")
    return ("-" if negative and whole else "") + (whole or "0")


_INTEGERS = NumberForm(_NUMBER, integer)

# ---- fractions and decimals

_WHOLE = r"[0-9]{1,3}(?P<sep>[,_ \u00a0\u2009\u202f'’])[0-9]{3}(?:(?P=sep)[0-9]{3}){0,99}|[0-9]{1,400}"
NUMBER = re.compile(
    rf"(?<![\w.^])(?<![0-9][,/])(?:(?<![\w)\]}}%])(?<![0-9)\]}}] )(?P<sign>[-+]|(?:minus"
    rf"|negative) ))?(?:(?P<word>{WORD})(?![\w-])|[$€£]?(?P<whole>{_WHOLE}|(?=\.[0-9]))(?:(?:\."
    rf"|,(?=[0-9]{{1,2}}(?![0-9]|[.,/^][0-9])))(?P<decimals>[0-9]{{1,400}}))?(?:[eE](?P<exponent>[-+]?[0-9]{{1,3}}))?"
    r"(?:\s?/\s?(?P<under>[0-9]{1,400}))?(?![0-9^]|[.,][0-9]|/[0-9]))",
    re.IGNORECASE,
)
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s?\{([0-9]{1,400})\}\s?\{([0-9]{1,400})\}")
_POWER_OF_TEN = re.compile(
    r"(?<=[0-9])\s?(?:[×x*·]|\\times|\\cdot)\s?10(?:\^|\*\*)(?:\{([-+]?[0-9]{1,3})\}|([-+]?[0-9]{1,3}))(?![0-9])"
)


def plain_numbers(text: str) -> str:
    """A text with LaTeX fractions and powers of ten written plainly."""
    text = _LATEX_FRACTION.sub(r"\1/\2", normalised(text).replace("\\%", "%"))
    return _POWER_OF_TEN.sub(lambda match: f"e{match[1] or match[2]}", text)


def number(match: re.Match[str]) -> str | None:
    """The number of a match as `number_text` has it; None where it is divided by zero."""
    if match["word"]:
        number = Fraction(spelled(match["word"]))
        return number_text(-number if match["sign"] not in (None, "+") else number)
    whole = "".join(filter(str.isdecimal, match["whole"]))
    if not (match["decimals"] or match["under"] or match["exponent"]):
        digits = whole.lstrip("0")  # most numbers, for which fractions cost too much
        return f"-{digits}" if digits and match["sign"] not in (None, "+") else digits or "0"
    decimals = match["decimals"] or ""
    under = int(match["under"] or 1)
    if under == 0:
        return None
    value = Fraction(int(whole + decimals), 10 ** len(decimals) * under)
    value *= Fraction(10) ** int(match["exponent"] or 0)
    return number_text(-value if match["sign"] not in (None, "+") else value)


NUMBERS = NumberForm(NUMBER, number)


def number_text(value: Fraction) -> str:
    """A number as a decimal, or as a fraction if it has no end as a decimal.

    Examples
    --------
    >>> number_text(Fraction(-5, 4)), number_text(Fraction(2, 3))
    ('-1.25', '2/3')
    """
    rest, places = value.denominator, 0
    while rest % 10 == 0:
        rest, places = rest // 10, places + 1
    for prime in (2, 5):
        while rest % prime == 0:
            rest, places = rest // prime, places + 1
    if rest > 1:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    cut = len(digits) - places
    decimals = digits[cut:].rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:cut]}.{decimals}" if decimals else f"{sign}{digits[:cut]}"


def with_whole_numbers(value: object) -> object:
    """A value of JSON in which 1.0 is 1."""
    if isinstance(value, dict):
        return {key: with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
