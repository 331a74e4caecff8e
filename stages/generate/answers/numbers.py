"""The grammar of numbers: one is read whole, and what looks like one and is not understood is a value of no kind."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from evalcube.stages.generate.answers.cues import entries
from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.passages import normalise, plain_digits
from evalcube.stages.generate.answers.values import PatternForm, read_value
from evalcube.stages.generate.answers.wording import cue, late

UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
UNITS += [f"{stem}teen" for stem in "thir four fif six seven eigh nine".split()]
TENS = [f"{stem}ty" for stem in "twen thir for fif six seven eigh nine".split()]
_SCALES = dict.fromkeys(entries()["dozen"], 12)
_SCALES |= {word: 10**zeros for zeros in range(2, 13) for word in entries().get(f"ten_to_{zeros}", ())}
_SHORT_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
"""Letters that may be units too, and multiply amounts of money alone."""
_BELOW_HUNDRED = rf"(?:{'|'.join(UNITS)}|(?:{'|'.join(TENS)})(?:[ -](?:{'|'.join(UNITS[1:10])}))?)"
_SCALE_WORDS = "(?:hundred|thousand|million|billion|trillion)"
WORD = (
    rf"(?=[aefhnostz]){_BELOW_HUNDRED}(?!\w)(?>(?:[ -]{_SCALE_WORDS}(?!\w)"
    rf"(?:(?:,? and|,)? {_BELOW_HUNDRED}(?!\w))?){{0,9}})"
)
"""Whole numbers in words."""


def digits_of_words(word: str) -> str:
    """The digits of a number that is written in words.

    Examples
    --------
    >>> digits_of_words("twenty-one"), digits_of_words("two thousand five hundred and six")
    ('21', '2506')
    """
    whole = part = 0
    for word_part in re.split(r"[ ,-]+", word.casefold()):
        if word_part == "hundred":
            part *= 100
        elif word_part in _SCALES:
            whole, part = whole + part * _SCALES[word_part], 0
        elif word_part in TENS:
            part += 10 * TENS.index(word_part) + 20
        elif word_part in UNITS:
            part += UNITS.index(word_part)
    return str(whole + part)


# ---- one way of writing

_LATEX_FRACTION = late(
    r"([-+]?)\\[dtc]?frac\s?(?:\{\s?(-?[0-9]{1,400})\s?\}\s?\{\s?([0-9]{1,400})\s?\}|([0-9])\s?([0-9]))"
)
_POWER_OF_TEN = late(
    r"(?<=[0-9])\s?(?:[×x*·]|\\times|\\cdot)\s?10(?:(?:\^|\*\*)(?:\{([-+]?[0-9]{1,3})\}|([-+]?[0-9]{1,3}))(?![0-9])"
    r"|([⁺⁻]?[⁰¹²³⁴-⁹]{1,3}))"
)
_VULGAR = late("[¼-¾⅐-⅞]")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_FORMULA = late(r"(?<![\w$\\])\$(?=\S)([^$\n]{1,200}?)(?<=\S)\$(?![\w$])")
_CITED = late(
    r"(?:(?<=[\w.)*%])|(?<=[0-9]) |(?<=[0-9] [a-zA-Z%]) |(?<=[0-9] [a-zA-Z]{2}) )"
    r"(?:\[\^?[0-9]{1,3}\](?!\()|【[^】\n]{1,40}】)+(?=[\s.,;]|\Z)"
)
"""References to sources behind a value."""
_DEGREES = late(r"\s?(?:\^\s?(?:\\circ|\{\s?\\circ\s?\})|\\degree|°)")


def plain_numbers(text: str) -> str:
    """A text with fractions and powers of ten written plainly."""
    text = _FORMULA.sub(r"\1", text) if "$" in text else text
    text = _CITED.sub("", text) if "]" in text or "】" in text else text
    text = normalise(text if text.isascii() else _VULGAR.sub(_fraction, text))
    if "\\" in text:
        text = _LATEX_FRACTION.sub(
            lambda match: f"{match[1]}{'' if match[1] else ' '}{match[2] or match[4]}/{match[3] or match[5]}",
            text.replace("\\%", "%"),
        ).replace("\\$", "$")
    text = _DEGREES.sub(" ", text) if "^" in text or "\\" in text or not text.isascii() else text
    return _POWER_OF_TEN.sub(lambda match: f"e{(match[1] or match[2] or match[3]).translate(_RAISED)}", text)


def _fraction(match: re.Match[str]) -> str:
    value = Fraction(unicodedata.numeric(match[0])).limit_denominator(10)
    return f" {value.numerator}/{value.denominator}"


# ---- the grammar

_SPACELESS = "\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
_SPACES = " \u00a0\u2009\u202f"
_GROUPED = (
    rf"[0-9]{{1,3}}(?P<sep>[,_'’{_SPACES}])[0-9]{{3}}(?:(?P=sep)[0-9]{{3}}){{0,99}}(?![0-9])"
    r"|[0-9]{1,3}(?:\.[0-9]{3}){2,99}(?![.0-9])|[0-9]{1,3}(?:\.[0-9]{3}){1,99}(?=,(?:[0-9]{1,2}(?![0-9,.])|-(?!\w)))"
    r"|[0-9]{1,2}(?:,[0-9]{2}){1,9},[0-9]{3}(?![0-9,])|[1-9][0-9]{0,2}\.[0-9]{3}(?=\s?(?:€|euros?\b|EUR\b)(?!/))"
)
_SPELLED = "|".join(
    word if word > "\u2e7f" else rf"{word}(?!\w)" for word in sorted(_SCALES, key=len, reverse=True)
)
"""Words that multiply; in scripts without spaces a noun may touch them."""
_SCALE = rf"(?:\s?(?P<scale>{_SPELLED})|(?P<short>{'|'.join(_SHORT_SCALES)})\b)"
_MONEY = r"(?:US|AU|CA|HK|NZ|[ACRS])?[$€£¥₹₩]\s?|\b(?:USD|EUR|GBP|CHF|INR|Rs\.?)\s"
NUMBER = late(
    rf"(?<![.^])(?<![^\W{_SPACELESS}])(?:(?<!<)(?<!<[-=])|(?=[^<>\n]{{1,40}}>))"
    rf"(?:(?<![\w)\]}}%|])(?<![0-9)\]}}%] )(?P<sign>[-+—](?=[0-9.$€£¥₹])|\A[-+] (?=[0-9])"
    rf"|(?:minus|negative|(?<!au )plus)\s))?(?:(?P<word>{WORD})(?![\w-])|(?:(?P<money>{_MONEY})"
    rf"(?P<inner>-(?=[0-9.]))?)?(?:(?P<whole>{_GROUPED}|(?>[0-9]+)|(?=\.[0-9]))"
    r"(?:(?!(?P=sep))(?:\.(?![.0-9]*\.[0-9])|,(?=[0-9]{1,2}(?![0-9]|[.,/^][0-9]|[\])}])))(?P<decimals>[0-9]{1,400}))?"
    r"(?:[eE](?P<exponent>[-+]?[0-9]{1,3})|(?P<mixed>\s{1,2}(?:and\s)?[0-9]{1,4})?\s?[/⁄]\s?(?P<under>[0-9]{1,400}))?))"
    rf"{_SCALE}?",
    re.IGNORECASE,
)
_NO_NUMBER_BEFORE = cue(
    r"(?:\A(?:>=?|<=?\s)|\|-|[√∛∜^±∓≥≤≠≪≫⌊⌈]|-(?=\()|[\w}^_]\{|\}\s?\{|[\w)\]}]\s?(?:[<>]|(?<![-=])>)=?|(?:[0-9\]}%]|(?<![A-Za-z]{2})\)|(?<![^\W_])[a-zα-ω]|[a-z](?=\s[+×÷]))\s?"
    r"(?:[-+/×·÷^]|(?<!\*)\*(?!\*)|(?<=[0-9])\*\*)|[0-9][.,:'’]|[a-z)]\^[0-9]\s?=|[0-9][knxyz]\s?=|[A-Za-z]-|[A-Za-z0-9]\()[\s$(]{0,2}\Z"
)
_NO_NUMBER_AFTER_WORDS = cue(
    r"(?:\\(?!<commands_around_numbers>)[a-z]+\s?\{?|[0-9]\s(?:out\s)?of\s|<bounds>"
    r"|\b(?:<before_no_number>(?:_?[0-9₀-₉²]{1,3})?\s?[({]?|<month_names>|<months>\.?))[\s$(]{0,2}\Z"
)
"""What makes a number a part of something else: an argument, an operand, a bound, the end of a range or of a date.
Words are looked for apart, as most numbers have none before them."""
_NO_NUMBER_AFTER = cue(
    r"!(?!\[)|\s?[√∛π∞]|[²³¹⁰⁴-⁹⁺⁻₀-₉∶]|\s?(?:分[之の]|又|[兆조])|\s?(?:\\(?!text|quad|right|circ|end)[a-z]+|\^|\*\*(?=[0-9({])|[±∓]|\+/?-)"
    r"|\s?%?\s?[-+*/×·÷~〜][\s$]?(?:[0-9(\\]|[b-hj-z](?![\w'’-]))|\s?[+×÷]|\s?(?:%\s?%|[≤≥≠]|[<>]=?\s?\.?\w{1,4}\b(?![>/])"
    r"|(?:%|percent)\sof\s[0-9])|_\{?[0-9]|[:/][0-9A-Za-z]|[.,'’′][0-9]|[0-9]|\s?(?:\.\.\.?|…)\s?[0-9]|\([0-9a-z]|\s\([0-9]{3}\)\s?[0-9]"
    r"|(?!<units_that_touch>(?![A-Za-z]))[A-Za-zα-ω]"
    r"|\s?<bounds_behind>|\.?[ -](?:<after_no_number>|<month_names>|<months>|(?-i:[xyzniM])|(?:out )?of [0-9])(?!\w)"
)
"""What makes a number before it a part of something else."""


def number(match: re.Match[str]) -> str | None:
    """The number of a match as `number_text` has it; None for one that is a part of something else."""
    line, start, end = match.string, match.start(), match.end()
    if _NO_NUMBER_AFTER.match(line, end) or _NO_NUMBER_BEFORE.search(line, max(0, start - 6), start):
        return None
    before = line[max(0, start - 24) : start].rstrip(" $({")
    if before[-1:].isalnum() and _NO_NUMBER_AFTER_WORDS.search(line, max(0, start - 24), start):
        return None
    negative = (match["sign"] is not None and match["sign"][0] not in "+p") or match["inner"] is not None
    word = match["word"]
    whole = digits_of_words(word) if word else "".join(filter(str.isdecimal, match["whole"]))
    if not (match["decimals"] or match["under"] or match["exponent"] or match["scale"] or match["short"]):
        return plain_decimal(whole, negative=negative)  # most numbers, for which fractions cost too much
    amount = _amount(match, whole)
    return None if amount is None else number_text(-amount if negative else amount)


def _amount(match: re.Match[str], whole: str) -> Fraction | None:
    """The number of a match with decimals, an exponent, a fraction or a word that multiplies; None without a value."""
    if len(whole) > LONGEST:
        return None
    decimals, under, short = match["decimals"] or "", int(match["under"] or 1), (match["short"] or "").lower()
    if under == 0 or (short and not match["money"]) or (match["mixed"] and decimals):
        return None
    value = Fraction(int(whole + decimals), 10 ** len(decimals))
    part = Fraction(int(match["mixed"].split()[-1]), under) if match["mixed"] else 0
    value = value + part if match["mixed"] else value / under
    # a fraction would be reduced: 36 / 48 are two values
    is_pair = " /" in match[0] and whole[1:] and under > 9 and value.denominator < under
    if part >= 1 or is_pair:
        return None
    factor = _SCALES.get((match["scale"] or "").lower()) or _SHORT_SCALES.get(short, 1)
    return value * factor * Fraction(10) ** int(match["exponent"] or 0)


LONGEST = 400
"""Digits of a number that is compared."""


def _number(match: re.Match[str]) -> Mention:
    value = None if len(match["whole"] or "") > LONGEST else number(match)
    return Mention(*match.span(), value, match["word"] is not None)


def _integer(match: re.Match[str]) -> Mention:
    value = number(match)
    parted = match["under"] is not None and " " in match[0]  # 0 / 1 is one of two
    whole = value if value and not parted and value.lstrip("-").isdecimal() else None
    return Mention(*match.span(), whole, match["word"] is not None)


_PERCENT = late(r"\s?(?:%|percent)")
_OR = cue(rf"(?:{_PERCENT.pattern})?[\s*$]{{0,3}}\(?<either_or>\s\$?")


class _Numbers(PatternForm):
    """Numbers, of which "0.25 or 25%" are one, the first."""

    def mentions(self, line: str) -> Sequence[Mention]:
        """Every number in a line, in order."""
        mentions = list(super().mentions(line))
        for at, pair in enumerate(pairwise(mentions) if "%" in line or "percent" in line else (), 1):
            shares = {Fraction(m.value or 0) / (100 if _PERCENT.match(line, m.end) else 1) for m in pair}
            if len(shares) == 1 and _OR.fullmatch(line, pair[0].end, pair[1].start):
                mentions[at] = pair[1]._replace(value=pair[0].value)
        return mentions


_TRAITS = {"name": "number", "counts": True, "counts_things": True}
NUMBERS = _Numbers(NUMBER, _number, **_TRAITS)
_INTEGERS = PatternForm(NUMBER, _integer, **_TRAITS)


def read_number(text: str, comparison: object = None) -> str | None:  # noqa: ARG001 - as the others
    r"""The number a text ends up with, as a plain decimal or a fraction in lowest terms; None if there is none.

    Understood are signs, separators of thousands, decimals, exponents, fractions, mixed numbers, their LaTeX, words
    that multiply, and a currency before or a unit after the number.

    Examples
    --------
    >>> read_number("Answer: $1,234.50"), read_number("so it is **\\frac{2}{6}**"), read_number("1.5 × 10^3 m")
    ('1234.5', '1/3', '1500')
    >>> read_number("Answer: 3√2") is None
    True
    """
    return read_value(plain_numbers(text), NUMBERS)


def last_integer(text: str) -> str | None:
    """The integer a text ends up with, in plain decimal digits; None if there is none.

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
    return read_value(plain_numbers(text), _INTEGERS)


_AFTER_ALONE = late(r"[\s%$€£¥₹]*(?:[A-Za-z°µ][\w./²³^ -]{0,40})?\.?\s*")


def parse_number(text: str) -> str | None:
    """The number that a text is, a currency and a unit aside; None if it is none, or more.

    Examples
    --------
    >>> parse_number("18 dollars"), parse_number("48/2 = 24"), parse_number("2½")
    ('18', None, '2.5')
    """
    plain = plain_digits(plain_numbers(text)).strip().strip("$").strip()
    numbers = list(NUMBER.finditer(plain))
    if len(numbers) != 1 or numbers[0].start() or not _AFTER_ALONE.fullmatch(plain, numbers[0].end()):
        return None
    return None if numbers[0]["word"] else _number(numbers[0]).value


def same_number(answer: str, reference: str, tolerance: Fraction, relative: Fraction) -> bool:
    """Whether two numbers, as `read_number` gives them, differ by no more than a tolerance; exact."""
    right = Fraction(reference)
    return answer == reference or abs(Fraction(answer) - right) <= max(tolerance, relative * abs(right))


def plain_decimal(digits: str, *, negative: bool) -> str:
    """A decimal number without zeros that say nothing; 0 is never negative.

    Examples
    --------
    >>> plain_decimal("007.50", negative=True), plain_decimal(".0", negative=True)
    ('-7.5', '0')
    """
    whole, _, decimals = digits.partition(".")
    number = f"{whole.lstrip('0') or '0'}.{decimals.rstrip('0')}".rstrip(".")
    return f"-{number}" if negative and number != "0" else number


def number_text(value: Fraction) -> str:
    """A number as a decimal, or as a fraction if it has no end as a decimal.

    Examples
    --------
    >>> number_text(Fraction(-5, 4)), number_text(Fraction(2, 3))
    ('-1.25', '2/3')
    """
    places = value.denominator.bit_length()
    if pow(10, places, value.denominator):
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def with_whole_numbers(value: object) -> object:
    """A value of JSON in which 1.0 is 1."""
    if isinstance(value, dict):
        return {key: with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
