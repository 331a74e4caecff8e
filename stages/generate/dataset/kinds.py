"""Kinds of answers by name; how each is read and compared is in `evalcube.stages.generate.answers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.answers.documents import LONGEST_JSON, json_text, read_json
from evalcube.stages.generate.answers.numbers import parse_number, read_number, same_number
from evalcube.stages.generate.answers.passages import normalise, passages
from evalcube.stages.generate.answers.texts import (
    LONGEST_TEXT,
    line_of,
    place_of_answer,
    read_text,
    same_text,
    stated_in,
    without_markup,
)
from evalcube.stages.generate.answers.ways import note
from evalcube.stages.generate.base import Trial
from evalcube.stages.generate.dataset.matching import accepted_by, find_match
from evalcube.stages.generate.dataset.params import Comparison, DatasetParams

READERS: dict[str, Callable[..., str | None]] = {"number": read_number, "text": read_text, "json": read_json}
"""Kind of answer -> its reader."""
_FEW_WORDS = 3
"""Words of a reply without an answer line that may be an answer by itself; more, if the reference has more."""
_UNMATCHED = "(no accepted answer)"
_ONE_LINE = ("auto", "math")
"""Ways to match that read one line of a reply."""


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


def can_be_answered(answer: str, params: DatasetParams) -> bool:
    """Whether a reply could give an answer of the params' kind that is this one."""
    if params.kind == "number":
        return parse_number(answer) is not None
    if params.kind == "json":
        return len(answer) <= LONGEST_JSON and json_text(answer, parse=True) is not None
    if params.match not in _ONE_LINE:
        return True
    if len(answer) > LONGEST_TEXT or len(answer.splitlines()) > 1:
        return False
    # One without a letter or digit may be mark-up, or a sign that a reply would not be read beyond.
    return any(map(str.isalnum, answer)) or read_text(f"Answer: {answer}") is not None


NEEDED = {
    "number": "with kind number, a reference is one number, such as 7, -1,234.5, 3/4 or 1e-3; `answer_after` cuts off "
    "a mark before it",
    "text": f"a reference to match is one line of at most {LONGEST_TEXT} characters, and more than mark-up; for longer "
    "ones use `match: contains`, `prefix`, `exact` or `judge`, assertions or a rubric",
    "json": "with kind json, a reference is JSON, or a text that is JSON (a JSON string has quotes of its own), of at "
    "most 5000 characters",
}
"""Kind of answer -> what a reference is to be."""


def read_declared(
    text: str, match: str, pattern: str, accepted: Sequence[str], comparison: Comparison
) -> str | None:
    """The answer in a reply; of those that are only looked for, the accepted one. None if there is none."""
    if match == "auto":
        line = read_text(text, most_words=max([_FEW_WORDS, *(len(answer.split()) for answer in accepted)]))
        return line and stated_in(line, accepted, comparison.exact)
    if match == "math":
        from evalcube.stages.generate.foreign.maths import read_math

        return read_math(text, accepted)
    if match == "regex":
        hit = find_match(pattern, text)
        if hit is None:
            return None
        note("pattern", "text")
        return str(hit[1] if hit.re.groups and hit[1] is not None else hit[0]).strip() or None
    text = normalise(text)
    line = next(filter(None, map(line_of, passages(text))), None)
    statement = without_markup(text) if line is None else line
    note("whole reply" if line is None else "answer line", "text", read=bool(statement))
    if not statement or match == "exact":
        return statement or None
    # A reply that gives something else is wrong, and one that neither has an answer line nor an answer is too.
    return place_of_answer(statement, accepted, comparison.exact, first=match == "prefix") or _UNMATCHED


def read_answer(text: str, params: DatasetParams, trial: Trial) -> str | None:
    """The answer in a reply to a question with a reference, as the params' kind says."""
    comparison = Comparison.of(params)
    if params.kind == "text":
        return read_declared(text, params.match, params.pattern, accepted_by(trial), comparison)
    if params.kind == "choice":
        return read_choice(text, trial.options, cast("Sequence[str]", trial.extras["choices"]))
    return READERS[params.kind](text, comparison)


def is_accepted(answer: str, params: DatasetParams, trial: Trial) -> bool:
    """Whether the answer is one of those that are accepted."""
    accepted, comparison = accepted_by(trial), Comparison.of(params)
    if params.match == "judge":  # what is thought of it until judges have spoken
        return read_declared(answer, "contains", "", accepted, comparison) in accepted
    if params.kind == "choice" or params.match in ("contains", "prefix", "math"):
        return answer in accepted
    return any(is_right(params.kind, answer, reference, comparison) for reference in accepted)
