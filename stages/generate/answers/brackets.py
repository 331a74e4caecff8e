"""Read the closing brackets that a model's text ends up with."""

from __future__ import annotations

import re
from collections import deque

from evalcube.stages.generate.answers.final import Mention, read_final
from evalcube.stages.generate.answers.passages import (
    TAIL,
    Passage,
    Rank,
    bold_passages,
    cleaned,
    fenced_block,
    last_lines,
)
from evalcube.stages.generate.answers.wording import affirmed, declines, goes_on_to_another

_QUIET = " \t*_`$\"'“”‘’«»„,"
_LATEX_GROUP = re.compile(r"\\(?:text|texttt|textbf|mathrm|mathtt|mathbf|verb)\s{0,3}\{")
_LATEX_END = re.compile(r"\\[)\]]|\$")
_FENCE = re.compile(r"^[ \t]{0,8}```\w{0,12}$", re.MULTILINE)
_CLOSERS = re.compile(r"[)\]}>](?>(?:[ \t,]{0,3}[)\]}>])*)")
_PAIRS = {"<": ">", "(": ")", "[": "]", "{": "}"}
LINE = 1000
"""Characters of a line that are read."""
_ANNOUNCED = re.compile(
    r"(?:[:=→]|\b(?:is|are|sequence|string|brackets?|order|simply|just|therefore|thus))[\s*_`$\"'“‘]{0,6}[)\]}>]",
    re.IGNORECASE,
)
_EMPHASISED = re.compile(r"(\*\*|[`'\"])([)\]}>])\1")
_RUN = re.compile(r"(?<![^\s*_`\"'“‘|/(:])([)\]}>](?>(?:[ \t,]?[)\]}>])*))")
_ALONE = re.compile(
    r"(?<![^\s:])[*_`\"'“‘]{0,4}([)\]}>](?>(?:[ \t,]?[)\]}>])*))(?=[*_`\"'”’.!,:;]{0,6}(?:\s|$))"
)


def closing_brackets(text: str) -> str | None:
    r"""The sequence of closing brackets that a text ends up with, without spaces; None if there is none.

    Examples
    --------
    >>> closing_brackets("I close ( last, so: Answer: `] } )`")
    ']})'
    >>> closing_brackets("$\\boxed{\\text{)]}}$")
    ')]'
    >>> closing_brackets("Answer: ([{}])") is None
    True
    """
    return read_final(_EMPHASISED.sub(r"\2", cleaned(text)), _closers_in, _closers_at_end, _closer_runs)


def _closers_in(passage: Passage) -> str | None:
    return _boxed_closers(passage.text) if passage.boxed else _closers_from(passage)


def _closer_runs(text: str) -> list[Mention]:
    """Every sequence of closing brackets that stands alone."""
    return [Mention(run.start(1), run.end(1), _bare(run[1])) for run in _ALONE.finditer(text)]


def _closers_at_end(text: str) -> str | None:
    block = fenced_block(text)
    if block is not None and (found := _leading_closers(block.strip())):
        return found
    for line in last_lines(text[-TAIL:]):
        for part in (line, *bold_passages(line)):
            if found := _leading_closers(part):
                return None if _refuses(part) else found
        if found := _last_closers(line):
            return None if _refuses(line) else found
    return None


def _closers_from(passage: Passage) -> str | None:
    """The brackets on the first line that says something: at its start, or else standing alone.

    Empty where that line denies them, or gives two sequences.
    """
    for line in _FENCE.sub("", passage.text).split("\n"):
        if line.strip(_QUIET):
            found = _on_line(line[:LINE], passage.rank)
            if found is not None or not line.rstrip(_QUIET).endswith(":"):
                return found
    return None


def _on_line(line: str, rank: Rank) -> str | None:
    if _refuses(line):
        return ""
    found = _leading_closers(line)
    if found or (rank is Rank.SAID and not _ANNOUNCED.search(line)):
        return found
    return _last_closers(line)


def _refuses(line: str) -> bool:
    """Whether a line denies its brackets, or gives alternatives."""
    if declines(line) and not _leading_closers(line):
        return True
    runs = list(_RUN.finditer(line))
    if not runs:
        return False
    if not affirmed(line, runs[0].start(1), runs[0].end(1)):
        return True
    return len(runs) > 1 and any(goes_on_to_another(line, run.end(1)) for run in runs[:-1])


def _leading_closers(line: str) -> str | None:
    line = line.strip(_QUIET).removeprefix("\\(").removeprefix("\\[").lstrip(_QUIET)
    line = line.replace("\\}", "}")
    line = line if _LATEX_GROUP.match(line) else line.split("\\", 1)[0]
    if group := _LATEX_GROUP.match(line):
        line = line[group.end() :].rstrip(_QUIET + ".").removesuffix("}")
    bare = line.rstrip(_QUIET + ".")
    # the placeholder's brackets were kept, or others put around the answer
    copied = line[:1] in _PAIRS and bare.endswith(_PAIRS[line[0]])
    if copied:
        line = bare[1:-1].strip(_QUIET)
    match = _CLOSERS.match(line)
    if match is None or (copied and match.end() < len(line)):
        return None
    return _bare(match[0])


def _last_closers(line: str) -> str | None:
    last = deque(_ALONE.finditer(line), maxlen=1)
    return _bare(last[0][1]) if last else None


def _boxed_closers(tail: str) -> str | None:
    r"""The brackets in a LaTeX box; one "}" for the box and for each group in it is not part of them."""
    line = _LATEX_END.split(tail.split("\n", 1)[0], maxsplit=1)[0].replace("\\}", "}")
    groups = 1
    while group := _LATEX_GROUP.match(line.lstrip(_QUIET)):
        line = line.lstrip(_QUIET)[group.end() :]
        groups += 1
    match = _CLOSERS.match(line.lstrip(_QUIET))
    found = _bare(match[0]) if match else ""
    return found[:-groups] if found.endswith("}" * groups) and len(found) > groups else None


def _bare(brackets: str) -> str:
    return "".join(character for character in brackets if character in ")]}>")
