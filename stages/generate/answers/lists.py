"""Read the list of words or of integers that a model's text ends up with."""

from __future__ import annotations

import re

from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.numbers import WORD, digits_of_words, plain_decimal
from evalcube.stages.generate.answers.passages import normalise, plain_digits
from evalcube.stages.generate.answers.values import PatternForm, read_value
from evalcube.stages.generate.answers.wording import late

_DRESS = r"[ \t*_`\"'$>]{0,6}"
_BULLET = (
    r"(?:[-*•+–][ \t]{1,4}|\|?[ \t]?(?:(?:term|item|no\.?|#)[ \t]?)?\(?[0-9]{1,3}[ \t]?(?:\*\*)?[.):|](?:[ \t]{1,4}"
    r"|(?=\*\*)))"
)


def _column(item: str) -> re.Pattern[str]:
    """Lines of one item each, with or without its number; the first may stand after a colon."""
    line = rf"{_DRESS}(?:{_BULLET})?{_DRESS}{item}[ \t*_`\"'$|.,;✓✅]{{0,8}}"
    return late(
        rf"(?:^|(?<=[:*]) ){line}(?:\n(?:[ \t]*\n(?=[ \t]*(?:\*\*|{_BULLET})))?{line}(?=\n|\Z)){{1,400}}",
        re.MULTILINE,
    )


_LONGEST = 6000
"""Characters of a list."""


def _on_one_line(text: str, item: re.Pattern[str], column: re.Pattern[str]) -> str:
    """The text with each list of a line for each item on one line."""

    def join_lines(lines: re.Match[str]) -> str:
        items = (item.search(re.sub(rf"\A{_DRESS}{_BULLET}", "", line)) for line in lines[0].split("\n"))
        return " " + ", ".join(match[0] for match in items if match)

    return column.sub(join_lines, text) if "\n" in text else text


# ---- words

_WORD = r"(?>[^\W\d_]+)(?>(?:['’-](?>[^\W\d_]+))*)"
_OPEN = r"(?>[ *_`$\"'(\[{\\<“”‘’«„]*)"
_CLOSE = r"(?>[*_`$\"')\]}\\”’“»]*)"
_AND = "and|und|et|y"
_SEPARATOR = (
    rf"(?:{_CLOSE}(?: ?(?:[,;/>→⇒·•<]) ?(?:and\b|&|or\b)? ?| (?:{_AND}|&|or) )(?:\(?[0-9]{{1,3}}[.)] ?)?{_OPEN}"
    rf"|{_CLOSE} \(?[0-9]{{1,3}}[.)] {_OPEN}|[,;] ?\n ?{_OPEN})"
)
_JOINS = late(rf"{_AND}|or", re.IGNORECASE)
_RUN = late(rf"(?<![^\W_]){_WORD}(?>(?:{_SEPARATOR}{_WORD})+)")
_SPACED = late(rf"(?>[\s*_`\"'(\[<]*)({_WORD}(?: {_WORD}){{2,99}})(?>[*_`\"')\]>.]*)(?=\n|\Z)")
_OR = late(r"\bor\b|[^\W_] ?/ ?[^\W_]", re.IGNORECASE)
_PROSE = frozenset(
    "a an the i it we you is are was be do does not no can cannot to of in on for this that know sorted as which so "
    "with thus hence therefore finally alphabetically respectively certainly indeed here there then since because "
    "but not rather nicht niet pas".split()
)
_HOLDER = late(r"\bwords\b[^<>\n]{0,30}\bcommas\b")
"""What the prompts have in the list's place."""


_ITEM, _WORD_COLUMN = late(_WORD), _column(_WORD)


def _list_of_words(run: re.Match[str]) -> Mention | None:
    """A list of words; of two they are like ordinary words."""
    line, (start, end) = run.string, run.span()
    words = [word for word in _ITEM.finditer(line, start, end) if not _JOINS.fullmatch(word[0])]
    while words and words[0][0].lower() in _PROSE:
        words = words[1:]
    while len(words) > 1 and words[-1][0].lower() in _PROSE and line[end : end + 1] == " ":
        words = words[:-1]
    if len(words) < 2 or _HOLDER.search(line, max(0, start - 60), end):
        return None
    value = None if _OR.search(line, start, end) else ", ".join(word[0] for word in words)
    return Mention(words[0].start(), words[-1].end(), value, len(words) == 2)


class _Words(PatternForm):
    def first_line(self, tail: str) -> str:
        """The first line; there, three words or more may have nothing but spaces between them."""
        spaced = _SPACED.match(tail)
        words = spaced[1].split(" ") if spaced else []
        if spaced and not any(word.lower() in _PROSE for word in words):
            return ", ".join(words)
        return super().first_line(re.sub(r"([,;]) ?\n ?(?![aA]nswer)", r"\1 ", tail))


_WORDS = _Words(_RUN, _list_of_words, longest=_LONGEST)


def word_list(text: str) -> str | None:
    """The list of words that a text ends up with, joined by comma and space; None if there is none.

    The words may stand on one line with commas (or other usual separators) or on a line each, with quotes,
    brackets, bullets or numbers. In an explicit answer they may be separated by spaces alone.

    Examples
    --------
    >>> word_list("Sorted, that gives: **Answer:** apple, Bear and cat.")
    'apple, Bear, cat'
    >>> word_list("Answer: I am not sure") is None
    True
    """
    return read_value(_on_one_line(normalise(text), _ITEM, _WORD_COLUMN), _WORDS)


# ---- integers

_SIGN = r"(?P<sign>(?<![\w)\]}-])(?<![0-9)\]}] )[-+]|(?:(?<=[,;] )|\A)[-+] )?"
_PLAIN = late(
    rf"(?<![\w.])(?<!\w-){_SIGN}(?:(?P<digits>(?>[0-9]+)(?>(?:[_'’][0-9]{{3}})*))(?>(?:\.(?>0+))?)(?!\w|\.[0-9])"
    rf"|(?P<word>{WORD})(?![\w-]))",
    re.IGNORECASE,
)
_GROUPED = late(_PLAIN.pattern.replace("[_'’]", "[,_'’]"), re.IGNORECASE)
_SPACED_COMMA = late(r"[,;] ")
_GAP = r"[ ,;|/*_`$\"'()\[\]→⇒>]{1,12}(?:(?:and|then|und|et|y)[ *_`$]{1,4})?"
_ANY_INTEGER = re.sub(r"\?P<\w+>", "?:", _PLAIN.pattern)
_INTEGER_RUN = late(rf"{_ANY_INTEGER}(?>(?:{_GAP}{_ANY_INTEGER})*)", re.IGNORECASE)
_OPERATOR = late(r"[ *`$\"')\]]{0,6}(?:[=+*/×·^→-]|times\b|plus\b|minus\b)[ $`(>+-]{0,4}[0-9]")


def _integers(match: re.Match[str]) -> Mention | None:
    """A list of integers; one that is an operand, or a count of terms, is none."""
    if _OPERATOR.match(match.string, match.end()):
        return None
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
    item = _GROUPED if _SPACED_COMMA.search(line) else _PLAIN
    run = list(item.finditer(match.string, *match.span()))
    whole = not re.search("[0-9]", item.sub("", match[0]))
    value = ", ".join(map(_integer, run)) if whole else None
    return Mention(*match.span(), value, len(run) == 1 and run[0]["word"] is not None)


def _integer(match: re.Match[str]) -> str:
    digits = digits_of_words(match["word"]) if match["word"] else re.sub("[^0-9]", "", match["digits"])
    return plain_decimal(digits, negative=(match["sign"] or "").startswith("-"))


_DIGITS = late(r"[-+]?[0-9][0-9_'’,]*")
_COLUMN = _column(r"[-+]?[0-9]{1,60}(?:[_'’,][0-9]{3}){0,9}(?:\.0{1,9})?")
_INTEGERS = PatternForm(_INTEGER_RUN, _integers, counts=True, longest=_LONGEST)


def integer_list(text: str) -> str | None:
    """The list of integers that a text ends up with, joined by comma and space; None if there is none.

    Where commas are followed by spaces, a comma without one groups thousands. Integers of any length are read.

    Examples
    --------
    >>> integer_list("The steps are 2, 3, 4. Answer: 20, −25 and 1,031.")
    '20, -25, 1031'
    >>> integer_list("Answer: 5 or 6") is None
    True
    """
    return read_value(_on_one_line(plain_digits(normalise(text)), _DIGITS, _COLUMN), _INTEGERS)
