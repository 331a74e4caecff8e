"""Read the list of words or of integers that a model's text ends up with."""

from __future__ import annotations

import re

from stages.generate.answers.explicit import TAIL, normalised, tails

_DECORATION = " \t*_`$#>\"'([{\\<~:=“”‘’"
_BULLET = re.compile(r"[-*•+] |\(?[0-9]{1,3}[.):] ?")
_MINUS_APART = re.compile(r"(?<=[,;] )- (?=[0-9])")


def _lines(text: str) -> list[str]:
    """Lines with single spaces, without bullets and leading decoration; empty where nothing else is left."""
    lines = []
    for raw in text.split("\n"):
        line = _BULLET.sub("", " ".join(raw.split()), count=1) if _BULLET.match(raw.lstrip()) else raw
        lines.append(" ".join(line.split()).strip(_DECORATION))
    return lines


# ---- words

_SEPARATOR = re.compile(r" ?[,;|] ?(?:and )?| and ")
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_BEFORE_WORD = " *_`$#>\"'([{\\<“”‘’"
_AFTER_WORD = re.compile(r"[ *_`$\"')\]}>\\”’]*(?P<end>$|[.!?:]| ?\()")
_INTRODUCTION = re.compile(r".*(?::|\b(?:is|are)\b)", re.DOTALL)
_PROSE = frozenset(
    "a an the i it we you is are was be do does not no can cannot to of in on for this that know sorted".split()
)


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
    text = normalised(text)
    for tail, _ in tails(text):
        words = _words_from(_lines(tail))
        if len(words) > 1:
            return ", ".join(words)
    words = _words_at_end(_lines(text[-TAIL:]))
    return ", ".join(words) if words else None


def _words_from(lines: list[str]) -> list[str]:
    """The list that begins at the first line that says something, or after an introduction that ends there."""
    words: list[str] = []
    on_one_line = continued = False
    for raw in lines:
        if not raw:
            if words:
                break
            continue
        line = raw if words else _without_introduction(raw)
        found = _words_in(line)[0] if line else []
        if not words and len(found) < 2:
            found = _spaced_words(line) or found
            if not found and line:
                break
        if words and (not found or (not continued if on_one_line else len(found) > 1)):
            break
        words += found
        on_one_line = on_one_line or len(found) > 1
        continued = raw.endswith((",", ";"))
    return words


def _without_introduction(line: str) -> str:
    first, comma, rest = line.partition(",")
    lead = _INTRODUCTION.match(first)
    return f"{first[lead.end() :] if lead else first}{comma}{rest}".strip()


def _words_in(line: str) -> tuple[list[str], bool]:
    """Words between separators up to the first thing that is no word, and whether nothing else is there."""
    words: list[str] = []
    for raw in _SEPARATOR.split(line):
        item = raw.lstrip(_BEFORE_WORD)
        numbered = _BULLET.match(item)
        item = item[numbered.end() :].lstrip(_BEFORE_WORD) if numbered else item
        match = _WORD.match(item)
        if match is None:
            if item:
                return words, False
            continue
        after = _AFTER_WORD.match(item, match.end())
        if after is None:
            return words, False
        words.append(match[0])
        if after["end"]:
            return words, not item[after.end() :].strip(" *_`$\"')]}>\\”’")
    return words, True


def _spaced_words(line: str) -> list[str]:
    """Three words or more with nothing but spaces between them that do not look like prose."""
    tokens = line.rstrip(" .*_`$\"')]}>\\”’").split(" ")
    plain = all(_WORD.fullmatch(token) and token.lower() not in _PROSE for token in tokens)
    return tokens if len(tokens) > 2 and plain else []


def _words_at_end(lines: list[str]) -> list[str]:
    """The last line that is a list of three words or more, or the last three lines or more of one word."""
    block: list[str] = []
    for line in reversed(lines):
        words, whole = _words_in(line)
        if len(words) > 2 and whole and len(block) < 3:
            return words
        if len(words) == 1 and whole and not line.endswith(("!", "?", ":")):
            block.append(words[0])
            continue
        if len(block) > 2:
            break
        block = []
    return block[::-1] if len(block) > 2 else []


# ---- integers

_PLAIN = re.compile(r"(?<![\w.])(?<!\w-)([-+]?)([0-9]++)(?:\.0++)?+(?!\w|\.[0-9])")
_GROUPED = re.compile(r"(?<![\w.])(?<!\w-)([-+]?)([0-9]++(?:,[0-9]{3})*+)(?:\.0++)?+(?!\w|\.[0-9])")
_SPACED_COMMA = re.compile(r"[,;] ")
_GAP = re.compile(r"[ ,;|*_`$\"'()\[\]]{1,12}(?:and[ *_`$]{1,4})?")
_OPERATOR = re.compile(r"[ *`$\"')\]]{0,6}(?:[=+*/×·^→-]|times\b|plus\b|minus\b)")
_LEAD = re.compile(r"[^:]*+:|.*\b(?:is|are)\b")
_OR = re.compile(r"[ *`$\"'(,]{0,6}or\b", re.IGNORECASE)


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
    text = normalised(text)
    for tail, _ in tails(text):
        found = _integers_from(tail)
        if found:
            return ", ".join(found)
    for line in reversed(_number_lines(text[-TAIL:])):
        runs = _runs(line)
        if runs:
            return ", ".join(runs[-1])
    return None


def _number_lines(text: str) -> list[str]:
    """Lines with single spaces, without bullets; a minus sign stands at its number."""
    lines = []
    for raw in text.split("\n"):
        line = " ".join(raw.split())
        bullet = _BULLET.match(line)
        # "5. 7" is item 5 of a list, but the "5." of a bare answer is no bullet
        line = line[bullet.end() :] if bullet and bullet.end() < len(line) else line
        lines.append(_MINUS_APART.sub("-", line))
    return lines


def _integers_from(tail: str) -> list[str]:
    """The integers of the first line that has some, or one from each of several lines that have just one."""
    first, newline, rest = tail.partition("\n")
    start = " ".join(first.split()).lstrip(_DECORATION)
    if start.startswith("- "):
        start = f"-{start[2:]}"
    found: list[str] = []
    for line in [
        _MINUS_APART.sub("-", _after_introduction(start)),
        *(_number_lines(rest) if newline else ()),
    ]:
        if not line.strip(_DECORATION):
            if found:
                break
            continue
        runs = _runs(line)
        if found and (len(runs) != 1 or len(runs[0]) != 1 or not re.fullmatch(r"\W*[0-9,.]+\W*", line)):
            break
        if not runs and not line.rstrip("*_ ").endswith(":"):
            break
        found += runs[0] if runs else []
        if len(found) > 1 and runs and len(runs[0]) > 1:
            break
    return found


def _after_introduction(line: str) -> str:
    """The line without an introduction that it begins with, as in "The next 2 terms are: 5, 7"."""
    if not line[:1].isalpha():
        return line
    lead = _LEAD.match(line)
    return line[lead.end() :] if lead and any(map(str.isdigit, line[lead.end() :])) else line


def _runs(line: str) -> list[list[str]]:
    """Integers with nothing but separators between them; no run is an operand or one of two alternatives."""
    runs: list[list[str]] = []
    run: list[str] = []
    end = 0
    for match in (_GROUPED if _SPACED_COMMA.search(line) else _PLAIN).finditer(line):
        if run and not _GAP.fullmatch(line, end, match.start()):
            if not _spoiled(line, end):
                runs.append(run)
            run = []
        digits = match[2].replace(",", "").lstrip("0")
        run.append(f"-{digits}" if match[1] == "-" and digits else digits or "0")
        end = match.end()
    if run and not _spoiled(line, end):
        runs.append(run)
    return [] if _OR.search(line) and len(runs) == 1 and _alternative(line) else runs


def _spoiled(line: str, end: int) -> bool:
    """Whether a calculation or an alternative follows."""
    return _OR.match(line, end) is not None or bool(
        (operator := _OPERATOR.match(line, end)) and line[operator.end() :].lstrip(" $`(-+>")[:1].isdigit()
    )


def _alternative(line: str) -> bool:
    return re.search(r"[0-9][ *`$\"',]{0,6}or [ *`$\"'(]{0,6}-?[0-9]", line, re.IGNORECASE) is not None
