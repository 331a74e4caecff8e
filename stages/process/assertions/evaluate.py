"""Grade a trial by its assertions; no output, however hostile, makes it raise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalcube.stages.process.assertions.behaviors import BEHAVIORS
from evalcube.stages.process.assertions.facts import FACTS
from evalcube.stages.process.assertions.hooks import Hooks
from evalcube.stages.process.assertions.model import SET, Assertion, Context, Layer, UnmeasuredError

_CHECKS = {**FACTS, **BEHAVIORS}


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
    assertions: Sequence[Assertion],
    context: Context,
    *,
    hooks: Hooks | None = None,
) -> tuple[Graded, ...]:
    """Each assertion's grade.

    An assertion that cannot be measured (a number that the trial lacks, a pattern that runs out of time, a function
    of the user that raises) has not passed, be it declared with ``not`` or without: an output must gain nothing by
    breaking its measurement.

    Parameters
    ----------
    assertions
        As `parse_assertions` gave them, with the same `hooks`.
    context
        What the trial gave.
    hooks
        The user's functions; none by default.
    """
    trial = _Trial(context, hooks or Hooks())
    return tuple(trial.graded(assertion) for assertion in assertions)


@dataclass(frozen=True)
class _Trial:
    context: Context
    hooks: Hooks

    def graded(self, assertion: Assertion) -> Graded:
        held, note = self._held(assertion)
        return Graded(
            assertion.type, assertion.layer, assertion.weight, held is True, note if held is None else ""
        )

    def _held(self, assertion: Assertion) -> tuple[bool | None, str]:
        """Whether an assertion holds, None if unknown, and why it is unknown."""
        held, note = self._set(assertion) if assertion.type == SET else self._leaf(assertion)
        return (held if held is None else held is not assertion.negated), note

    def _set(self, assertion: Assertion) -> tuple[bool | None, str]:
        """Three-valued logic: unknown members matter only where the others do not decide."""
        held = [self._held(child) for child in assertion.children]
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
        try:
            answer = self.hooks.checks[assertion.fn](self.context)
        except Exception as error:
            raise UnmeasuredError(f"check '{assertion.fn}' raised {type(error).__name__}") from error
        if not isinstance(answer, (bool, np.bool_)):
            raise UnmeasuredError(f"check '{assertion.fn}' returned a {type(answer).__name__}, not a bool")
        return bool(answer)

    def _score(self, assertion: Assertion) -> float:
        try:
            score = float(self.hooks.scorers[assertion.type](self.context, assertion.reference))
        except Exception as error:
            raise UnmeasuredError(f"scorer '{assertion.type}' raised {type(error).__name__}") from error
        if np.isnan(score):
            raise UnmeasuredError(f"scorer '{assertion.type}' returned NaN")
        return score
