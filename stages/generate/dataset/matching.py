"""Grade a reply with a function of the user's, or look for a pattern of the user's in it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import cast

import regex

from evalcube.stages.generate.base import Trial
from evalcube.stages.generate.errors import CodeError, TaskError
from evalcube.stages.named_code import FOLDER, may_run

GRADERS = "evalcube.graders"
"""Entry point group of graders."""
SECONDS = 1.0
"""CPU time that a pattern may take on one reply; the pattern is the user's, but the reply is anybody's."""


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


def explain_withheld(name: str) -> str:
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
        raise CodeError(explain_withheld(name), field="grader", value=name)
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
    is_array = getattr(ruling, "size", 0) == 1 and hasattr(ruling, "item")
    plain = ruling.item() if is_array else ruling  # type: ignore[attr-defined]  # NumPy's truths
    if isinstance(plain, int | float) and plain in (0, 1):
        return bool(plain)
    raise TaskError(
        f"grader '{name}' returned {repr(ruling)[:60]}, which is none of True, False and None",
        field="grader",
        value=name,
    )


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
