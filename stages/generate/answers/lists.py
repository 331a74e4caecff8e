"""Read the list of words or of integers that a model's text ends up with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evalcube.stages.generate.answers.final import REFUSED, Mention, read_final
from evalcube.stages.generate.answers.numbers import WORDS
from evalcube.stages.generate.answers.passages import (
    TAIL,
    Passage,
    Rank,
    fenced_block,
    in_box,
    last_lines,
    normalised,
    plain_digits,
)
from evalcube.stages.generate.answers.wording import affirmed, declines, goes_on_to_another

_DECORATION = " \t*_`$#>\"'([{\\<~:=|“”‘’«»"
_BULLET = re.compile(r"[-*•+–] |\|? ?(?:(?:term|item|no\.?|#) ?)?\(?[0-9]{1,3} ?[.):|] ?", re.IGNORECASE)
_BOLD_ITEM = re.compile(r"\(?[0-9]{1,3}[.):] ?(?=\*\*)")
_MINUS_APART = re.compile(r"(?<=[,;] )- (?=[0-9])")
_DENIAL = re.compile(
    r"\b(?:not|never|neither|nor|isn['’]?t|aren['’]?t|wasn['’]?t|cannot|can['’]?t|don['’]?t|doesn['’]?t|unsure|maybe|perhaps|"
    r"possibly|might|could|doubt|either|anything but|rather than|instead of|other than|wrong|incorrect)\b",
    re.IGNORECASE,
)


def _lines(text: str) -> list[str]:
    """Lines with single spaces, without bullets and leading decoration; empty where nothing else is left."""
    lines = []
    for raw in text.split("\n"):
        line = " ".join(raw.split())
        if "," in line and line.startswith("|"):
            line = line.strip("| ").rpartition("|")[2]
        bullet = _BULLET.match(line)
        lines.append((line[bullet.end() :] if bullet else line).strip(_DECORATION))
    return lines


# ---- words

_WORD = r"(?>[^\W\d_]+)(?>(?:['’-](?>[^\W\d_]+))*)"
_OPEN = r"(?>[ *_`$\"'(\[{\\<“”‘’«„]*)"
_CLOSE = r"(?>[*_`$\"')\]}\\”’“»]*)"
_BETWEEN = re.compile(
    rf"{_CLOSE}(?: ?(?:[,;|/>→⇒·•<]|->|=>) ?(?:and\b|&|or\b)? ?| (?:and|&|or) )(?:\(?[0-9]{{1,3}}[.)] ?)?{_OPEN}"
    rf"|{_CLOSE} \(?[0-9]{{1,3}}[.)] {_OPEN}"
)
_RUN = re.compile(rf"(?<![^\W_]){_WORD}(?>(?:(?:{_BETWEEN.pattern}){_WORD})*)")
_ITEM = re.compile(_WORD)
_OR = re.compile(r"\b(?:or)\b|[^\W_] ?/ ?[^\W_]", re.IGNORECASE)
_PROSE = frozenset(
    "a an the i it we you is are was be do does not no can cannot to of in on for this that know sorted as which so "
    "with thus hence therefore finally alphabetically respectively certainly indeed here there then since because "
    "but not rather".split()
)
_HOLDER = re.compile(r"\bwords\b[^<>\n]{0,30}\bcommas\b")
"""What the prompts have in the list's place."""
_LEADS = re.compile(
    r"(?:[:=→⇒]|->|=>|\b(?:is|are|as follows|gives|get|becomes?|be|follow|reads?|yields?))(?>[\s\"'`*_:$(\[{<“]*)$",
    re.IGNORECASE,
)
_LINE_END = re.compile(rf"{_CLOSE}(?>[.!;:…]*)(?>[\s*_`\"'✓✅☑)\]}}>]*)$")


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
    return read_final(normalised(text), _words_in, _last_words, _word_runs)


def _words_in(passage: Passage) -> str | None:
    words = _words_from(_lines(in_box(passage.text) if passage.boxed else passage.text))
    return REFUSED if words is None else _joined(words)


def _word_runs(text: str) -> list[Mention]:
    """Every list of words in a text."""
    found = []
    for run in _RUN.finditer(text):
        words = _words_of(run, text) if _BETWEEN.search(run[0]) else []
        if len(words) > 1:
            last = text.rindex(words[-1], run.start(), run.end())
            found.append(Mention(text.index(words[0], run.start()), last + len(words[-1]), ", ".join(words)))
    return found


def _last_words(text: str) -> str | None:
    block = fenced_block(text)
    words = _words_from(_lines(block)) if block is not None else []
    if words is not None and len(words) < 2:
        words = _words_at_end(_lines(text[-TAIL:]))
    return _joined(words or ())


def _joined(items: Sequence[str], least: int = 2) -> str | None:
    return ", ".join(items) if len(items) >= least else None


def _words_from(lines: Sequence[str]) -> list[str] | None:
    """The list that begins at the first line that says something, or after an introduction that ends there.

    None where that line denies a list, or gives two.
    """
    column: list[str] = []
    spoken = 0
    for number, line in enumerate(lines):
        if not line:
            if column:
                break
            continue
        alone = _single(line)
        if alone and not (line.endswith(":") and not column):
            column.append(alone)
            continue
        if column:
            break
        found = _words_on_line(line, lines[number + 1 :])
        if found is None or found:
            return found
        spoken += 1
        if spoken > 1 or not line.endswith((":", "-", "—")):
            break
    return column if len(column) > 1 else []


def _single(line: str) -> str | None:
    """The word that a line is."""
    match = _ITEM.match(line)
    return match[0] if match and _LINE_END.match(line, match.end()) and not line.endswith("?") else None


def _words_on_line(line: str, following: Sequence[str]) -> list[str] | None:
    """The list on a line, with the lines that go on with it; None where it is denied or one of two."""
    joined = [line]
    for more in following:
        if not joined[-1].endswith((",", ";")) or not more:
            break
        joined.append(more)
    line = " ".join(joined)
    if _HOLDER.search(line):
        return []
    spaced = _spaced_words(line)
    if spaced:
        return spaced
    run = _best_run(line)
    if run is None:
        return None if _denies(line) and ("," in line or declines(line)) else []
    before = line[max(0, run.start() - 60) : run.start()]
    if _DENIAL.search(before) or _OR.search(run[0]) or not affirmed(line, run.start(), run.end()):
        return None
    if goes_on_to_another(line, run.end()):
        return None
    return _words_of(run, line)


def _best_run(line: str) -> re.Match[str] | None:
    """The run of words that a line begins with, else the last one that is announced, else the longest."""
    runs = [match for match in _RUN.finditer(line) if _BETWEEN.search(match[0])]
    if not runs:
        return None
    if runs[0].start() == 0 and len(_words_of(runs[0], line)) > 1 and _first(runs[0]) not in _PROSE:
        return runs[0]
    announced = [run for run in runs if _LEADS.search(line[max(0, run.start() - 24) : run.start()])]
    return announced[-1] if announced else max(reversed(runs), key=lambda run: len(_words_of(run, line)))


def _first(run: re.Match[str]) -> str:
    match = _ITEM.match(run[0])
    return match[0].lower() if match else ""


def _words_of(run: re.Match[str], line: str) -> list[str]:
    """The words of a run, without words around it that belong to the sentence."""
    words = list(_ITEM.findall(_BETWEEN.sub(", ", run[0])))
    while words and words[0].lower() in _PROSE:
        words = words[1:]
    goes_on = not _LINE_END.match(line, run.end()) and line[run.end() : run.end() + 1].isspace()
    if goes_on and len(words) > 1 and words[-1].lower() in _PROSE:
        words = words[:-1]
    return words


def _spaced_words(line: str) -> list[str]:
    """Three words or more with nothing but spaces between them that do not look like prose."""
    _, colon, rest = line.rpartition(":")
    line = rest.strip(_DECORATION) if colon and rest.strip() else line
    tokens = line.rstrip(" .*_`$\"')]}>\\”’:").split(" ")
    plain = all(_ITEM.fullmatch(token) and token.lower() not in _PROSE for token in tokens)
    return tokens if len(tokens) > 2 and plain else []


def _words_at_end(lines: Sequence[str]) -> list[str] | None:
    """The last line that is or announces a list, or the last three lines or more of one word."""
    block: list[str] = []
    tried = 0
    for line in reversed(lines):
        if not line:
            if len(block) > 2:
                break
            continue
        alone = _single(line)
        if alone and not line.endswith(("!", "?", ":")):
            block.append(alone)
            continue
        if len(block) > 2:
            break
        block = []
        tried += 1
        run = _best_run(line)
        announced = run is not None and _LEADS.search(line[max(0, run.start() - 24) : run.start()])
        found = _words_on_line(line, ()) if run is not None else []
        if found is None:
            return None
        if len(found) > 2 or (len(found) == 2 and announced):
            return found
        if tried > 6:
            break
    return block[::-1] if len(block) > 2 else []


# ---- integers

_PLAIN = re.compile(
    r"(?<![\w.])(?<!\w-)([-+]?)((?>[0-9]+)(?>(?:[_'’][0-9]{3})*))(?>(?:\.(?>0+))?)(?!\w|\.[0-9])"
)
_GROUPED = re.compile(
    r"(?<![\w.])(?<!\w-)([-+]?)((?>[0-9]+)(?>(?:[,_'’][0-9]{3})*))(?>(?:\.(?>0+))?)(?!\w|\.[0-9])"
)
_SPACED_COMMA = re.compile(r"[,;] ")
_GAP = re.compile(r"[ ,;|/*_`$\"'()\[\]→⇒>]{1,12}(?:(?:and|then)[ *_`$]{1,4})?|[ *_`$]{0,4}->[ *_`$]{0,4}")
_OPERATOR = re.compile(r"[ *`$\"')\]]{0,6}(?:[=+*/×·^→-]|times\b|plus\b|minus\b)")
_OR_RUN = re.compile(
    r"[0-9][ *`$\"',)\]]{0,6}(?:or|/ ?or|versus|vs\.?|maybe|perhaps|possibly)\b[^\n]{0,24}[-+]?[0-9]",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"\s{0,9}(?:[-*•+–] |\(?[0-9]{1,3}[.)] )[*_`]{0,3}[-+]?[0-9]")
_REPLACED = re.compile(r"(?<!anything )(?<!nothing )(?<!all )\bbut (?:rather )?\W{0,4}$", re.IGNORECASE)
_OTHER = re.compile(r"\bor[\s*_`$(]{0,6}$", re.IGNORECASE)
_COUNT = re.compile(r"\b(?:next|first|last|these|the|all|following|step|steps|of) $", re.IGNORECASE)
_SPELLED = re.compile(rf"(?<![\w-])(?:(minus|negative) )?({'|'.join(WORDS)})(?![\w-])", re.IGNORECASE)
_NAMED_WORDS = re.compile(
    rf"(?>[\s,;.*_`\"'()\[\]]*)(?>(?:(?:{'|'.join(WORDS)}|and|minus|negative|the|it|is|terms?|next|are)(?![\w-])(?>[\s,;.:*_`\"'()\[\]]*))+)",
    re.IGNORECASE,
)


class _Run(NamedTuple):
    """Integers with nothing but separators between them."""

    start: int
    end: int
    values: list[str]


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
    return read_final(plain_digits(normalised(text)), _integers_in, _last_integers, _integer_runs)


def _integers_in(passage: Passage) -> str | None:
    found = _integers_from(in_box(passage.text) if passage.boxed else passage.text, passage.rank)
    return REFUSED if found is None else _joined(found, 1)


def _integer_runs(text: str) -> list[Mention]:
    """Every list of integers in a text."""
    found, at = [], 0
    for line in text.split("\n"):
        found += [Mention(at + run.start, at + run.end, ", ".join(run.values)) for run in _runs(line)]
        at += len(line) + 1
    return found


def _last_integers(text: str) -> str | None:
    text = text[-TAIL:]
    block = fenced_block(text)
    if block is not None and (found := _integers_from(block, Rank.MARKED)):
        return _joined(found, 1)
    if column := _column_at_end(text):
        return _joined(column, 1)
    for line in last_lines(text):
        plain = _number_lines(line)[0]
        runs = _runs(plain)
        if runs:
            return None if _refuses(plain, runs[-1]) else ", ".join(runs[-1].values)
    return None


def _column_at_end(text: str) -> list[str]:
    """The integers of the items, of one each, that a text ends with; nothing of fewer than two."""
    found: list[str] = []
    for line in reversed(text.rstrip().split("\n")):
        item = " ".join(line.split())
        runs = _runs(_number_lines(line)[0]) if _COLUMN.match(item) else []
        if len(runs) != 1 or len(runs[0].values) != 1:
            break
        found += runs[0].values
    return found[::-1] if len(found) > 1 else []


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


def _integers_from(tail: str, rank: Rank) -> list[str] | None:
    """The integers of the first line that has some, or one from each of several lines that have just one.

    None where that line denies them, or gives two lists.
    """
    found: list[str] = []
    for line in _lines_of_integers(tail):
        if not line.strip(_DECORATION):
            if found:
                break
            continue
        runs = _runs(line)
        if found and (
            len(runs) != 1 or len(runs[0].values) != 1 or not re.fullmatch(r"\W*[0-9,.]+\W*", line)
        ):
            break
        if not runs:
            if line.rstrip("*_ ").endswith((":", "|")) and not _denies(line):
                continue
            return None if _denies(line) else found
        run = _chosen(line, runs, stated=rank is Rank.SAID)
        if run is None:
            break
        if _refuses(line, run):
            return None
        found += run.values
        if len(run.values) > 1:
            break
    return found


def _denies(line: str) -> bool:
    return declines(line) or _DENIAL.search(line[:60]) is not None


def _lines_of_integers(tail: str) -> list[str]:
    """The lines after a mark; the first one keeps its minus sign, unless it is an item of a list."""
    first, newline, rest = tail.lstrip(" \t\n*_`").partition("\n")
    start = " ".join(first.split()).lstrip(_DECORATION)
    column = _COLUMN.match(rest) if newline else None
    bullet = _BULLET.match(start) if column else _BOLD_ITEM.match(start)
    start = start[bullet.end() :] if bullet else re.sub(r"^- (?=[0-9])", "-", start)
    return [_MINUS_APART.sub("-", start), *(_number_lines(rest) if newline else ())]


def _chosen(line: str, runs: Sequence[_Run], *, stated: bool) -> _Run | None:
    """The run that a line begins with, else the last one that it announces, else its first one."""
    if not line[: runs[0].start].strip(_DECORATION + "-+"):
        return runs[0]
    announced = [run for run in runs if _LEADS.search(line[max(0, run.start - 24) : run.start])]
    if announced:
        return announced[-1]
    return None if stated else runs[0]


def _refuses(line: str, run: _Run) -> bool:
    """Whether a run is denied, or has an alternative."""
    before = line[max(0, run.start - 40) : run.start]
    denied = _DENIAL.search(before) and not _REPLACED.search(before)
    return bool(
        denied
        or _OTHER.search(before)
        or not affirmed(line, run.start, run.end)
        or goes_on_to_another(line, run.end)
        or _OR_RUN.search(line, run.start, line.find(". ", run.start) % (len(line) + 1))
    )


def _runs(line: str) -> list[_Run]:
    """Integers with nothing but separators between them; a run that is an operand, or a count of terms, is none."""
    if not any(map(str.isdigit, line)) and _NAMED_WORDS.fullmatch(line):
        line = _SPELLED.sub(
            lambda match: ("-" if match[1] else "") + str(WORDS.index(match[2].lower())), line
        )
    runs: list[_Run] = []
    run: list[str] = []
    start = end = 0
    for match in (_GROUPED if _SPACED_COMMA.search(line) else _PLAIN).finditer(line):
        if run and not _GAP.fullmatch(line, end, match.start()):
            if not _spoiled(line, end):
                runs.append(_Run(start, end, run))
            run = []
        start = start if run else match.start()
        digits = re.sub("[^0-9]", "", match[2]).lstrip("0")
        run.append(f"-{digits}" if match[1] == "-" and digits else digits or "0")
        end = match.end()
    if run and not _spoiled(line, end):
        runs.append(_Run(start, end, run))
    if len(runs) > 1:
        runs = [run for run in runs if not _is_count(line, run)] or runs
    return runs


def _is_count(line: str, run: _Run) -> bool:
    """Whether a run is a number of terms, as in "the next 3 terms are"."""
    return len(run.values) == 1 and bool(
        _COUNT.search(line[max(0, run.start - 12) : run.start])
        and re.match(r" (?:terms?|numbers?|integers?|values?|steps?|rules?)\b", line[run.end :])
    )


def _spoiled(line: str, end: int) -> bool:
    """Whether a calculation follows."""
    operator = _OPERATOR.match(line, end)
    return operator is not None and line[operator.end() :].lstrip(" $`(-+>")[:1].isdigit()
