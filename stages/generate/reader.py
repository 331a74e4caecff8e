"""A second reader of replies: another grader's, as a pattern, as a function by name, or as the task itself has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import regex

from evalcube.stages.generate.base import Cell, Trial
from evalcube.stages.generate.dataset.matching import (
    SECONDS,
    accepted_by,
    context_of,
    find_match,
    load_grader,
    verdict_of,
)

OWN = "own"
"""Key of the description of a reader that the task itself has."""


@dataclass(frozen=True)
class SecondReader:
    """Another grader of the replies to a task.

    Parameters
    ----------
    described
        As a cube has it: ``name``, and ``own``, ``grader``, or ``pattern`` with ``group``, ``take``, ``ignore`` and
        ``case`` as a config has them.
    """

    described: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.described["name"])

    @property
    def grader(self) -> str:
        """The function that it is, if it is one."""
        return str(self.described.get("grader", ""))

    def of(self, cell: Cell, trial: Trial) -> Callable[[str], float | None]:
        """The score of a text as a reply to one of a cell's trials; None where the reader finds no answer."""
        if self.described.get(OWN):
            return partial(cell.task.theirs, params=cell.params, trial=trial)
        return partial(_by_function, self.grader, trial) if self.grader else partial(self._by_pattern, trial)

    def _by_pattern(self, trial: Trial, text: str) -> float | None:
        answer = self.extract(text)
        if not answer:
            return None
        return float(any(self._form(answer) == self._form(reference) for reference in accepted_by(trial)))

    def extract(self, text: str) -> str | None:
        """What the pattern takes of a text; None if it does not occur or takes too long, or there is none."""
        if "pattern" not in self.described:
            return None
        match = find_match(
            self.described["pattern"], text, first=self.described.get("take", "first") == "first"
        )
        if match is None:
            return None
        if (group := self.described.get("group")) is not None:
            return str(match[group] or "").strip()
        return str(next((part for part in match.groups() if part), match[0])).strip()

    def _form(self, answer: str) -> str:
        """An answer as it is compared."""
        for pattern in self.described.get("ignore", ()):
            try:
                answer = regex.sub(pattern, "", answer, timeout=SECONDS, concurrent=True)
            except (TimeoutError, MemoryError, RecursionError):
                return answer.strip()
        answer = answer.strip()
        return answer if self.described.get("case", True) else answer.casefold()


def _by_function(name: str, trial: Trial, text: str) -> float | None:
    right = verdict_of(name, load_grader(name)(text, context_of(trial)))
    return None if right is None else float(right)
