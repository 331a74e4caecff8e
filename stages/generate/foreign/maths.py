"""Read mathematical answers: our reader finds the answer, and math-verify compares it in the bounded process."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from importlib.util import find_spec
from typing import cast

from evalcube.stages.generate.answers.final import REFUSED
from evalcube.stages.generate.answers.passages import Passage, clean, in_box, passages
from evalcube.stages.generate.answers.texts import TextForm
from evalcube.stages.generate.answers.values import read_final
from evalcube.stages.generate.answers.wording import DECLINES, breaks_off, cue, is_affirmed
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign.bounded import Failure, ask

_FEW_WORDS = 3
"""Words of a reply that is nothing but an answer."""
_MOST_TEXT = 100_000
"""Characters at the end of a reply that are read."""
_ENCLOSED = re.compile(
    r"\$\$(?P<a>(?>[^$]{1,4000}))\$\$|\$(?P<b>(?>(?:[^$\n\\]|\\[^\n]){1,4000}))\$|\\\[(?P<c>.{1,4000}?)\\\]"
    r"|\\\((?P<d>.{1,4000}?)\\\)",
    re.DOTALL,
)
"""A formula with a pair of delimiters around it."""
_SAYS_MORE = cue(r"(?![\s.,;(]*<explains>(?!\w)).*(?:[0-9$\\=+]|\bor\b)")
"""What makes the rest of a line more than words about its formula."""
_BRACKET = re.compile(r"\s\((?=[^()]*[A-Za-z.]{2}\s)[^()]*\)\s*\.?\Z")
_SENTENCE = re.compile(
    r"(?<=[\w)}\]$])[.,;]?\s+(?=(?:This|That|It|We|I|Because|Since|because|since|as|where)\s)|(?<=\w\w)\.\s+(?=[A-Z])"
)
_LED = cue(r"(?:[^$\\\d=<>\n]{0,60}?\b<states>\s{1,3})?(?:(?:<filler>|around)[\s:,]{1,3}){0,6}")
"""What may lead to a formula."""
_ROWS = re.compile(
    r"(\\\\|\\begin\{\w{1,20}\*?\}(?:\{[lcr|]{1,20}\})?|[&{])[ \t]{0,40}\n[ \t]{0,40}|\n[ \t]{0,40}(?=\\end\{|\})"
)
"""Where the rows of a matrix end, which would else be the end of the answer's line."""


def require_math() -> None:
    """Raise a `TaskError` where math-verify is not installed."""
    if find_spec("math_verify") is None:
        raise TaskError(
            "match math needs math-verify: pip install 'evalcube[math]'", field="match", value="math"
        )


def read_math(text: str, accepted: Sequence[str]) -> str | None:
    r"""The accepted answer that a reply gives; else what it gives; None if that is nothing, or nothing that ends.

    The answer stands where it does for all kinds: after the last mark of an answer, in ``\boxed{}`` for one. It goes to
    math-verify as it is written, without a pair of delimiters around all of it. A reply without any mark is left to
    math-verify's own rules, which take its last formula or number.
    """
    text = clean(_ROWS.sub(lambda found: f"{found[1] or ''} ", text[-_MOST_TEXT:]))
    marked = next(passages(text), None) is not None
    last = deque(_ENCLOSED.finditer(text), maxlen=1)
    if not marked and (breaks_off(text) or (last and not is_affirmed(text, *last[0].span()))):
        return None
    line = read_final(text, _FORMULAS) if marked or len(text.split()) <= _FEW_WORDS else None
    if line is None and marked:
        return None  # it has marks, and takes back what it says there
    response = ask("math", {"line": line, "text": "" if line else text, "accepted": list(accepted)})
    return None if isinstance(response, Failure) else cast("dict[str, str | None]", response)["read"]


class _Formulas(TextForm):
    name = "formula"

    def in_place(self, passage: Passage) -> str | None:
        """The formula that a place gives, as it is written."""
        return _formula_of(in_box(passage.text) if passage.boxed else passage.text)

    def at_end(self, text: str) -> str | None:
        """The formula that a short reply is."""
        return _formula_of(text)


_FORMULAS = _Formulas()


def _formula_of(text: str) -> str | None:
    if DECLINES.match(text):
        return None
    text = text.strip().removeprefix("**").lstrip(" :\t\n")
    enclosed = _ENCLOSED.match(text, _LED.match(text).end())  # type: ignore[union-attr]  # it may be empty
    line = text[enclosed.end() if enclosed else 0 :].partition("\n")[0]
    if enclosed and not is_affirmed(text, *enclosed.span()):
        return REFUSED
    if enclosed and not _SAYS_MORE.match(_BRACKET.sub("", _SENTENCE.split(line)[0])):
        return next(filter(None, enclosed.groups())).strip() or None
    line = _BRACKET.sub("", _SENTENCE.split(text.partition("\n")[0])[0])
    line = line.strip().removesuffix("**").rstrip(" .").removesuffix("**").strip()
    for mark in "`*_":
        line = line.strip(mark) if line.count(mark) % 2 or line[:1] == line[-1:] == mark else line
    plain = _ENCLOSED.sub(lambda formula: f" {next(filter(None, formula.groups()))} ", line).strip()
    return REFUSED if plain.endswith("?") else plain or None
