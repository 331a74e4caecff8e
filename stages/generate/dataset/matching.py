"""Read a text answer as a data set declares: as a whole, as a part, by a pattern, or with a function of the user's."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import cast

import regex

from evalcube.stages.generate.answers.passages import normalise, passages
from evalcube.stages.generate.answers.texts import line_of, place_of_answer, read_text, without_markup
from evalcube.stages.generate.answers.ways import note
from evalcube.stages.generate.base import Trial
from evalcube.stages.generate.dataset.params import Comparison
from evalcube.stages.generate.errors import CodeError, TaskError
from evalcube.stages.named_code import FOLDER, may_run

GRADERS = "evalcube.graders"
"""Entry point group of graders."""
SECONDS = 1.0
"""CPU time that a pattern may take on one reply; the pattern is the user's, but the reply is anybody's."""
_FEW_WORDS = 3
"""Words of a reply without an answer line that may be an answer by itself; more, if the reference has more."""
_UNMATCHED = "(no accepted answer)"


@dataclass(frozen=True, slots=True)
class GradingContext:
    """What a user's grader gets beside the reply."""

    prompt: str = ""
    """The question as it was asked."""
    reference: str = ""
    """The row's reference answer as the file has it; the first one of several. Empty without one."""
    accepted: tuple[str, ...] = ()
    """All reference answers."""
    row: int = 1
    """Number of the row in the file, from 1."""
    id: str = ""
    """The row's name, empty where the data set has none."""


Grader = Callable[[str, GradingContext], bool | None]
"""Whether a reply is right; None if it has no answer, which makes it invalid."""


def withheld(name: str) -> str:
    """Why a grader, or a folder of them, that only a cube names is not run."""
    folder = name.startswith(FOLDER)
    return (
        f"{'' if folder else 'grader '}'{name}' is not run: only the cube names it, and no config of yours. Run a "
        f"sweep whose config names it{'' if folder else f', or install it as an entry point of group {GRADERS}'}"
    )


@lru_cache(maxsize=64)
def load_grader(name: str) -> Grader:
    """The grader of an entry point's name, or of ``module:function``: the one place where either is imported."""
    if not may_run(name):
        raise CodeError(withheld(name), field="grader", value=name)
    module, colon, attribute = name.partition(":")
    try:
        if colon:
            function: object = getattr(importlib.import_module(module), attribute)
        else:
            function = next(point for point in entry_points(group=GRADERS) if point.name == name).load()
    except (ImportError, AttributeError, StopIteration) as error:
        raise CodeError(
            f"grader '{name}' is not found: give an entry point of group {GRADERS}, or module:function",
            field="grader",
            value=name,
        ) from error
    try:
        names = list(inspect.signature(function).parameters) if callable(function) else []
    except ValueError:
        names = []
    if names != ["reply", "context"] or not callable(function):
        raise TaskError(f"grader '{name}' must be a function of (reply, context)", field="grader", value=name)
    return function


def verdict_of(name: str, ruling: object) -> bool | None:
    """What a grader said of a reply: right, wrong, or that it has no answer."""
    if ruling is None:
        return None
    plain = (
        ruling.item() if getattr(ruling, "size", 0) == 1 and hasattr(ruling, "item") else ruling
    )  # NumPy's truths
    if isinstance(plain, int | float) and plain in (0, 1):
        return bool(plain)
    raise TaskError(
        f"grader '{name}' returned {repr(ruling)[:60]}, which is none of True, False and None",
        field="grader",
        value=name,
    )


def read_declared(
    text: str, match: str, pattern: str, accepted: Sequence[str], comparison: Comparison
) -> str | None:
    """The answer in a reply; of those that are only looked for, the accepted one. None if there is none."""
    if match == "auto":
        return read_text(text, most_words=max([_FEW_WORDS, *(len(answer.split()) for answer in accepted)]))
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


def find_match(pattern: str, text: str, *, first: bool = False) -> regex.Match[str] | None:
    """The last or first match of a user's pattern; None also where a hostile text takes it too long."""
    match = None
    try:
        for match in regex.finditer(pattern, text, timeout=SECONDS, concurrent=True):  # noqa: B007 - the last one
            if first:
                break
    except (TimeoutError, MemoryError, RecursionError):
        return None
    return match


def accepted_by(trial: Trial) -> Sequence[str]:
    """The right answers to a trial as the file has them."""
    return cast("Sequence[str]", trial.extras.get("accepted", (trial.answer,) if trial.answer else ()))


def context_of(trial: Trial) -> GradingContext:
    """What a grader is told of a trial."""
    accepted, row = accepted_by(trial), trial.extras.get("row", 0)
    return GradingContext(
        trial.prompt,
        accepted[0] if accepted else "",
        tuple(accepted),
        row if isinstance(row, int) else 0,
        str(trial.extras.get("id", "")),
    )
