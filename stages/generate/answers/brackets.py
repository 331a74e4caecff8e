"""Read the closing brackets that a model's text ends up with."""

from __future__ import annotations

import re
from collections import deque

from stages.generate.answers.explicit import TAIL, tails

_QUIET = " \t*_`$\"'“”‘’,"
_LATEX_GROUP = re.compile(r"\\(?:text|texttt|textbf|mathrm|mathtt|mathbf|verb)\s{0,3}\{")
_LATEX_END = re.compile(r"\\[)\]]|\$")
_FENCE = re.compile(r"^[ \t]{0,8}```\w{0,12}$", re.MULTILINE)
_CLOSERS = re.compile(r"[)\]}>](?:[ \t,]{0,3}[)\]}>])*+")
_ALONE = re.compile(r"(?<!\S)[*_`\"'“‘]{0,4}([)\]}>](?:[ \t,]?[)\]}>])*+)(?=[*_`\"'”’.!]{0,6}(?:\s|$))")


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
    text = text.replace("&gt;", ">").replace("\r", "\n")
    for tail, boxed in tails(text):
        found = _boxed_closers(tail) if boxed else _closers_from(tail)
        if found:
            return found
    lines = [line for line in text[-TAIL:].split("\n") if line.strip(_QUIET)]
    return (_leading_closers(lines[-1]) or _last_closers(lines[-1])) if lines else None


def _closers_from(tail: str) -> str | None:
    """The brackets on the first line that says something: at its start, or else standing alone."""
    for line in _FENCE.sub("", tail).split("\n"):
        if line.strip(_QUIET):
            return _leading_closers(line) or _last_closers(line)
    return None


def _leading_closers(line: str) -> str | None:
    line = line.strip(_QUIET).removeprefix("\\(").removeprefix("\\[").lstrip(_QUIET)
    line = line.replace("\\}", "}").split("\\", 1)[0]
    copied = line.startswith("<") and line.rstrip(_QUIET + ".").endswith(">")
    if copied:  # the angle brackets of the placeholder were kept
        line = line.rstrip(_QUIET + ".")[1:-1].strip(_QUIET)
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
