"""Grade a trial by its assertions, and score its layers; no output, however hostile, makes it raise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evalcube.stages.process.assertions.checks import BEHAVIORS, FACTS
from evalcube.stages.process.assertions.hooks import Hooks
from evalcube.stages.process.assertions.model import SET, Assertion, Context, Layer, UnmeasuredError

_CHECKS = {**FACTS, **BEHAVIORS}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Graded:
    """One assertion after a trial."""

    type: str
    layer: Layer | None
    weight: float
    passed: bool
    note: str = ""
    """Why an assertion could not be measured, in which case it has not passed; never the model's own words."""


def evaluate(
    assertions: Sequence[Assertion], context: Context, *, hooks: Hooks | None = None
) -> tuple[Graded, ...]:
    """Each assertion's grade.

    An assertion that cannot be measured (a number that the trial lacks, a pattern that runs out of time, a function
    of the user that raises) has not passed, be it declared with ``not`` or without: an output must gain nothing by
    breaking its measurement.
    """
    trial = _Trial(context, hooks or Hooks())
    return tuple(trial.grade(assertion) for assertion in assertions)


@dataclass(frozen=True)
class _Trial:
    context: Context
    hooks: Hooks

    def grade(self, assertion: Assertion) -> Graded:
        held, note = self._holds(assertion)
        return Graded(assertion.type, assertion.layer, assertion.weight, held is True, note)

    def _holds(self, assertion: Assertion) -> tuple[bool | None, str]:
        """Whether an assertion holds, None if unknown, and why it is unknown."""
        held, note = self._set(assertion) if assertion.type == SET else self._leaf(assertion)
        return (held if held is None else held is not assertion.negated), note

    def _set(self, assertion: Assertion) -> tuple[bool | None, str]:
        """Three-valued logic: unknown members matter only where the others do not decide."""
        held = [self._holds(child) for child in assertion.children]
        deciding = assertion.mode == "any"
        if any(value is deciding for value, _ in held):
            return deciding, ""
        notes = [note for value, note in held if value is None]
        return (None, notes[0]) if notes else (not deciding, "")

    def _leaf(self, assertion: Assertion) -> tuple[bool | None, str]:
        try:
            if assertion.type == "custom":
                return self._custom(assertion), ""
            if assertion.type in self.hooks.scorers:
                return self._score(assertion) >= assertion.threshold, ""
            return _CHECKS[assertion.type](assertion, self.context), ""
        except UnmeasuredError as error:
            return None, str(error)

    def _custom(self, assertion: Assertion) -> bool:
        answer = _call(f"check '{assertion.fn}'", lambda: self.hooks.checks[assertion.fn](self.context))
        if not isinstance(answer, (bool, np.bool_)):
            raise UnmeasuredError(f"check '{assertion.fn}' returned a {type(answer).__name__}, not a bool")
        return bool(answer)

    def _score(self, assertion: Assertion) -> float:
        scorer, name = self.hooks.scorers[assertion.type], f"scorer '{assertion.type}'"
        score = _call(name, lambda: float(scorer(self.context, assertion.reference)))
        if np.isnan(score):
            raise UnmeasuredError(f"{name} returned NaN")
        return score


def _call(name: str, function: Callable[[], T]) -> T:
    """Call a function of the user's; one that raises measures nothing."""
    try:
        return function()
    # Whatever it is: code of the user's must not end a run that was paid for.
    except Exception as error:
        raise UnmeasuredError(f"{name} raised {type(error).__name__}") from error


@dataclass(frozen=True, slots=True)
class LayeredScores:
    """Layer scores of one trial, 1 to 5; None = layer absent."""

    fact: float | None = None
    behavior: float | None = None
    judge: float | None = None


def layered_scores(graded: Iterable[Graded], judge: float | None = None) -> LayeredScores:
    """Scores of one trial from its assertions and its judges.

    A layer of assertions scores 1 + 4 · weight passed / weight; it is absent without weight. The judge layer is
    absent for None, NaN and anything that is not above 0, which stands for a failed reading.

    Examples
    --------
    >>> layered_scores([Graded("contains", "fact", 3.0, True), Graded("equals", "fact", 1.0, False)], 2.0)
    LayeredScores(fact=4.0, behavior=None, judge=2.0)
    """
    graded = list(graded)
    return LayeredScores(
        _score([entry for entry in graded if entry.layer == "fact"]),
        _score([entry for entry in graded if entry.layer == "behavior"]),
        judge if judge is not None and judge > 0 else None,
    )


def _score(graded: Sequence[Graded]) -> float | None:
    # Exactly rounded sums: a score does not depend on the order in which assertions are declared.
    weight = math.fsum(entry.weight for entry in graded)
    if not (weight > 0 and math.isfinite(weight)):
        return None
    return 1 + math.fsum(entry.weight for entry in graded if entry.passed) / weight * 4
