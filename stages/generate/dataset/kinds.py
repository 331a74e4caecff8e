"""Read and compare answers by their kind: a number, a text or a JSON value."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from evalcube.stages.generate.answers.numbers import WORDS
from evalcube.stages.generate.answers.passages import in_box, normalised, passages
from evalcube.stages.generate.answers.values import Form, Mention, read_value
from evalcube.stages.generate.dataset.params import DatasetParams

_MARKUP = " \t*_`"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How strictly answers are compared."""

    exact: frozenset[str] = frozenset()
    tolerance: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)

    @classmethod
    def of(cls, params: DatasetParams) -> Comparison:
        """What the params ask for; a tolerance is the decimal number that was written."""
        return cls(
            frozenset(params.exact),
            Fraction(str(params.tolerance)),
            Fraction(str(params.relative_tolerance)),
        )


def lines_after_marks(text: str) -> Iterator[str]:
    r"""The first line of each explicit answer with something on it, the last answer first, without mark-up.

    Brackets and quotes stay.

    Examples
    --------
    >>> list(lines_after_marks("**Answer:** *(a, b]*. \n Done."))
    ['(a, b]']
    """
    for passage in passages(text):
        line = passage.text.lstrip(" \t\n\r*_`").split("\n", 1)[0]
        yield _bare(in_box(line) if passage.boxed else line)


def _bare(line: str) -> str:
    """A line without mark-up around it and without a full stop at its end."""
    line = line.strip()
    while True:
        stripped = line.strip(_MARKUP).removesuffix(".").strip(_MARKUP)
        if stripped == line:
            return line
        line = stripped


# ---- numbers

_DIGITS = r"[0-9]{1,3}(?P<sep>[,_ \u00a0\u2009\u202f'’])[0-9]{3}(?:(?P=sep)[0-9]{3}){0,99}|[0-9]{1,400}"
_NUMBER = re.compile(
    rf"(?<![\w.^])(?<![0-9][,/])(?:(?<![\w)\]}}%])(?<![0-9)\]}}] )(?P<sign>[-+]|(?:minus|negative) ))?"
    rf"(?:(?P<word>{'|'.join(WORDS)})(?![\w-])|[$€£]?(?P<whole>{_DIGITS}|(?=\.[0-9]))(?:\.(?P<decimals>[0-9]{{1,400}}))?(?:[eE](?P<exponent>[-+]?[0-9]{{1,3}}))?"
    r"(?:\s?/\s?(?P<under>[0-9]{1,400}))?(?![0-9^]|[.,][0-9]|/[0-9]))",
    re.IGNORECASE,
)
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s?\{([0-9]{1,400})\}\s?\{([0-9]{1,400})\}")
_POWER_OF_TEN = re.compile(
    r"(?<=[0-9])\s?(?:[×x*·]|\\times|\\cdot)\s?10(?:\^|\*\*)(?:\{([-+]?[0-9]{1,3})\}|([-+]?[0-9]{1,3}))(?![0-9])"
)


def read_number(text: str, comparison: Comparison | None = None) -> str | None:  # noqa: ARG001 - as the others
    r"""The number a text ends up with, as a plain decimal or a fraction in lowest terms; None if there is none.

    Understood are signs, thousands separators, decimals, exponents, fractions, their LaTeX, and a currency
    before or a unit after the number.

    Examples
    --------
    >>> read_number("Answer: $1,234.50"), read_number("so it is **\\frac{2}{6}**"), read_number("1.5 × 10^3 m")
    ('1234.5', '1/3', '1500')
    """
    return read_value(_plain_numbers(text), _NUMBERS)


def only_number(text: str) -> str | None:
    """The number in a text that holds one and no other; None otherwise.

    Examples
    --------
    >>> only_number("18 dollars"), only_number("48/2 = 24")
    ('18', None)
    """
    found = [_number(match) for match in _NUMBER.finditer(_plain_numbers(text)) if not match["word"]]
    return found[0] if len(found) == 1 else None


def _plain_numbers(text: str) -> str:
    """A text with LaTeX fractions and powers of ten written plainly."""
    text = _LATEX_FRACTION.sub(r"\1/\2", normalised(text).replace("\\%", "%"))
    return _POWER_OF_TEN.sub(lambda match: f"e{match[1] or match[2]}", text)


class _Numbers(Form):
    counts = True
    counts_things = True

    def mentions(self, line: str) -> Sequence[Mention]:
        return [
            Mention(match.start(), match.end(), _number(match), weak=match["word"] is not None)
            for match in _NUMBER.finditer(line)
        ]


_NUMBERS = _Numbers()


def _number(match: re.Match[str]) -> str | None:
    if match["word"]:
        number = Fraction(WORDS.index(match["word"].lower()))
        return number_text(-number if match["sign"] not in (None, "+") else number)
    whole = re.sub("[^0-9]", "", match["whole"])
    decimals = match["decimals"] or ""
    under = int(match["under"] or 1)
    if under == 0:
        return None
    value = Fraction(int(whole + decimals), 10 ** len(decimals) * under)
    value *= Fraction(10) ** int(match["exponent"] or 0)
    return number_text(-value if match["sign"] not in (None, "+") else value)


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


def same_number(answer: str, reference: str, comparison: Comparison) -> bool:
    """Whether two numbers, as `read_number` gives them, differ by no more than the tolerance; exact."""
    if answer == reference:
        return True
    right = Fraction(reference)
    allowed = max(comparison.tolerance, comparison.relative * abs(right))
    return abs(Fraction(answer) - right) <= allowed


# ---- texts

LONGEST_TEXT = 300
"""Characters of a text that can be an answer."""
_HOLDER = re.compile(r"<(?:text|number|letter|json|value|answer|your answer)>", re.IGNORECASE)
"""What the prompts have in the answer's place."""
_DECLINES = re.compile(
    r"(?:i|we|sorry|unfortunately|no idea|cannot|can't|unknown|unclear|not sure)\b", re.IGNORECASE
)
_BETWEEN_WORDS = re.compile(r"(?<=[^\W\d_]{2})[-\u2010-\u2015/](?=[^\W\d_]{2})")
_STOPS = re.compile(r"(?<![0-9])[.,]|[.,](?![0-9])|[;:!?\"“”„«»…¿¡'’‘`]")
_ARTICLE = re.compile(r"\b(?:the|an|a)\s+(?=[^\W\d_])", re.IGNORECASE)


def read_text(
    text: str, comparison: Comparison | None = None, *, most_words: int | None = None
) -> str | None:
    r"""The text a reply gives as its answer, in the form that is compared; None if there is none.

    That is the line after the last mark of an answer; without one, a reply of a single line of at most `most_words`.

    Examples
    --------
    >>> read_text("I think so.\nAnswer: The  **Eiffel** Tower!")
    'eiffel tower'
    >>> read_text("I do not know.") is None
    True
    """
    exact = (comparison or Comparison()).exact
    text = normalised(text)
    for line in lines_after_marks(text):
        if line and len(line) <= LONGEST_TEXT and not _HOLDER.fullmatch(line):
            found = comparable(line, exact)
            if found:
                return found
    line = _bare(text)
    if len(line) > LONGEST_TEXT or "\n" in line or _DECLINES.match(line) or not re.search(r"[^\W_]", line):
        return None
    if next(passages(text), None) is not None or (most_words is not None and len(line.split()) > most_words):
        return None
    return comparable(line, exact) or None


def comparable(line: str, exact: frozenset[str]) -> str:
    """A text without the differences that do not matter.

    Examples
    --------
    >>> comparable("The U.S. Post-Office,  3.5 km", frozenset())
    'us post office 3.5 km'
    """
    for _ in range(8):  # each step may lay bare something for another one
        changed = _less(line, exact)
        if changed == line:
            break
        line = changed
    return line


def _less(line: str, exact: frozenset[str]) -> str:
    original = line
    if "unicode" not in exact:
        line = unicodedata.normalize("NFKC", line)
    if "case" not in exact:
        line = line.casefold()
    if "punctuation" not in exact:
        line = _STOPS.sub("", _BETWEEN_WORDS.sub(" ", line.replace("**", "")))
    if "articles" not in exact:
        line = _ARTICLE.sub("", line)
    if "whitespace" not in exact:
        line = " ".join(line.split())
    line = _bare(line)
    return line or original  # an answer of nothing but punctuation is compared as it is


# ---- JSON

_WINDOW = 6000
"""Characters at the end of a reply in which a JSON value is looked for."""
LONGEST_JSON = 5000
"""Characters of a JSON value that can be an answer."""
_ATTEMPTS = 300
_GOES_ON = re.compile(r"\w|\s?[-+*/^]\s?\w")
_FENCE = re.compile(r"[\s*_`#>]{0,40}(?:json\b[\s`]{0,6})?", re.IGNORECASE)


def _refuse(word: str) -> object:
    raise ValueError(word)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def json_text(value: object, *, parse: bool = False) -> str | None:
    """A JSON value in one form: sorted keys, 1.0 as 1; None for what is no JSON.

    Examples
    --------
    >>> json_text({"b": 1.0, "a": [True]}), json_text('{"a":2}', parse=True)
    ('{"a": [true], "b": 1}', '{"a": 2}')
    """
    try:
        if parse and isinstance(value, str):
            value = json.loads(value, parse_constant=_refuse)
        return json.dumps(_canonical(value), sort_keys=True, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None


def _canonical(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return value


def read_json(text: str, comparison: Comparison | None = None) -> str | None:  # noqa: ARG001 - as the others
    """The JSON value a reply gives as its answer, in one form; None if there is none.

    It stands after the last mark of an answer; without one it is the whole reply, or the last object or array
    in it.

    Examples
    --------
    >>> read_json('Answer: {"b": 1, "a": 2.0}')
    '{"a": 2, "b": 1}'
    """
    text = text[-_WINDOW:]  # so that what `tails` gives reaches to the end, and its length gives its place
    best: tuple[str, int] | None = None
    for passage in passages(text):
        tail = passage.text
        if not text.endswith(tail):
            if (found := json_text(tail, parse=True)) is not None:
                best = best or (found, len(text))
            continue
        place = len(text) - len(tail)
        fence = _FENCE.match(text, place)
        start = fence.end() if fence else place
        value, end = _value_at(text, start)
        # a mark may stand in a text inside of the value that an earlier mark announces
        if value is not None and (best is None or start < best[1] <= end):
            best = value, start
    if best is not None:
        return best[0]
    whole = json_text(text.strip("` \n"), parse=True)
    return whole if whole is not None else _last_container(text)


def _value_at(text: str, place: int) -> tuple[str | None, int]:
    """The JSON value that begins at a place and does not end in the middle of a word, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, place
    if isinstance(value, (int, float)) and _GOES_ON.match(text, end):
        return None, place
    return json_text(value), end


def _last_container(text: str) -> str | None:
    found, place = None, 0
    for _ in range(_ATTEMPTS):
        starts = [i for i in (text.find("{", place), text.find("[", place)) if i >= 0]
        if not starts:
            break
        place = min(starts)
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
            continue
        found = json_text(value) or found
    return found


READERS: dict[str, Callable[[str, Comparison], str | None]] = {
    "number": read_number,
    "text": read_text,
    "json": read_json,
}
"""Kind of answer -> its reader."""
