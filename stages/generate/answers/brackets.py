"""Read the closing brackets that a model's text ends up with."""

from __future__ import annotations

import re

from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.values import PatternForm, read_value

_PAIRS = {"<": ">", "(": ")", "[": "]", "{": "}"}
_CLOSERS = r"[)\]}>](?>(?:[ \t,]{0,3}\\?[)\]}>])*)"
_ALONE = re.compile(
    rf"(?<![^\s:*_`\"'“‘«„$|→])(?:(?P<open>[<(\[{{])[ \t]?)?(?P<run>\\?{_CLOSERS})"
    r"(?=[*_`\"'”’»$.!,:;?✅|]{0,6}(?:\s|\Z|\(|[^\x00-\x7f]))"
)
_BOXED = re.compile(rf"[\s*_`\"'“‘«„$]*(?P<run>\\?{_CLOSERS})")
_GROUP = re.compile(
    rf"\\(?:text|texttt|textbf|mathrm|mathtt|mathbf|verb)\s{{0,3}}\{{[ \t`\"'$]{{0,4}}({_CLOSERS})(?<=\}})"
)
_EMPHASISED = re.compile(r"(\*\*|[`'\"])([)\]}>])\1")


class _Closers(PatternForm):
    def in_box(self, tail: str) -> str:
        """The brackets in a LaTeX box without the one that closes it."""
        match = _BOXED.match(tail)
        return _bare(match["run"])[:-1] if match else ""


def _closers(match: re.Match[str]) -> Mention | None:
    """Closing brackets that stand alone; a pair around some is no part of them."""
    run, opened = _bare(match["run"]), match["open"]
    if opened and not (run.endswith(_PAIRS[opened]) and len(run) > 1):
        return None
    return Mention(*match.span("run"), run[:-1] if opened else run)


_FORM = _Closers(_ALONE, _closers)


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
    text = _GROUP.sub(lambda group: group[1][:-1], text)
    return read_value(_EMPHASISED.sub(r"\2", text), _FORM)


def _bare(brackets: str) -> str:
    return "".join(character for character in brackets if character in ")]}>")
