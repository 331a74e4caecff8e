"""Kinds of answers by name; how each is read and compared is in `evalcube.stages.generate.answers`."""

from __future__ import annotations

from collections.abc import Callable

from evalcube.stages.generate.answers.documents import json_text, read_json
from evalcube.stages.generate.answers.numbers import parse_number, read_number, same_number
from evalcube.stages.generate.answers.texts import read_text, same_text
from evalcube.stages.generate.dataset.params import Comparison

READERS: dict[str, Callable[..., str | None]] = {"number": read_number, "text": read_text, "json": read_json}
"""Kind of answer -> its reader."""


def is_right(kind: str, answer: str, reference: str, comparison: Comparison) -> bool:
    """Whether an answer, as the reader of its kind gives it, is the same as a reference in its author's words."""
    if answer == reference:
        return True
    if kind == "number":
        right = parse_number(reference)
        return right is not None and same_number(answer, right, comparison.tolerance, comparison.relative)
    if kind == "json":
        return answer == json_text(reference, parse=True)
    return same_text(answer, reference, comparison.exact)
