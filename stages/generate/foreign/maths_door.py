"""Compare mathematical answers with math-verify; runs only in the bounded process."""

from __future__ import annotations

import logging
import re
import unicodedata
from typing import Any

MOST_TEXT = 20_000
"""Characters at the end of a text without an answer line in which math-verify looks for one."""


def warm() -> None:
    """Import math-verify and have it build its grammar and patterns."""
    logging.disable(logging.CRITICAL)
    answer({"line": "\\frac{1}{2}", "text": "", "accepted": ["0.5"]})
    answer({"line": None, "text": "so $x = 2$", "accepted": ["\\{1, 2\\}"]})


def answer(request: dict[str, Any]) -> dict[str, object]:
    """Which accepted answer a reply gives, or None; and whether it gives any."""
    # Its own time limits need signals and are off: this process has limits, and from outside.
    from math_verify import parse, verify

    line = request["line"]
    parsed = parse(request["text"][-MOST_TEXT:] if line is None else _box(line), parsing_timeout=None)
    if not parsed:
        return {"read": line, "right": None}
    for accepted in request["accepted"]:
        right = parse(_box(accepted), parsing_timeout=None)
        same = _BASE.findall(line or "") == _BASE.findall(accepted) and not _differ(right, parsed)
        if same and verify(right, parsed, timeout_seconds=None):
            return {"read": accepted, "right": accepted}
    return {"read": line or str(parsed[-1])[:300], "right": None}


_BASE = re.compile(r"[0-9]_\{?[0-9]+")
"""A number in a base, which math-verify takes for one of ten."""
_TINY = 1e-3
"""Values below which math-verify's rounding to six places takes different ones for the same."""


def _differ(right: list[Any], parsed: list[Any]) -> bool:
    """Whether second answers are small numbers that are not the same."""
    try:
        first, second = float(right[0]), float(parsed[0])
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return False
    return max(abs(first), abs(second)) < _TINY and abs(first - second) > 1e-6 * max(abs(first), abs(second))


_SIGNS = dict(zip("∞∪∩∈·°∅", r"\infty \cup \cap \in \cdot ^\circ \emptyset".split(), strict=True))
_ROOT = re.compile(r"√\s?(?:\(([^()]{1,200})\)|([0-9]+(?:\.[0-9]+)?|\w))")
_LITTLE = re.compile("[¼-¾⅐-⅞]|([⁰¹²³⁴-⁹⁺⁻ⁿ]+)|([₀-₉]+)")


def _box(text: str) -> str:
    """A text as one answer, so that brackets, several values and words are part of it; with LaTeX for signs."""
    if not text.isascii():
        text = _ROOT.sub(lambda root: f"\\sqrt{{{root[1] or root[2]}}}", _LITTLE.sub(_in_latex, text))
        text = "".join(f"{_SIGNS[sign]} " if sign in _SIGNS else sign for sign in text)
    return f"\\boxed{{{text}}}"


def _in_latex(little: re.Match[str]) -> str:
    plain = unicodedata.normalize("NFKC", little[0]).replace("\u2212", "-")
    over, slash, under = plain.partition("\u2044")
    return f"\\frac{{{over}}}{{{under}}}" if slash else f"{'^' if little[1] else '_'}{{{plain}}}"
