"""Contradictions between cubes: the same trial with other outcomes, counted by model and task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalcube.flows.read.merged.layers import Contradiction
from evalcube.stages.reply.status import Status


@dataclass(frozen=True)
class Conflict:
    """Trials of one model and one task on which two cubes contradict each other."""

    model: str
    task: str
    kept: str
    """The cube whose outcomes stay."""
    hidden: str
    trials: int
    """How many, repeats included."""
    status_changes: int
    """How many of them also ended differently, such as right and wrong."""
    by_nature: bool
    """Whether the model was asked at a temperature above 0, so that two answers differ anyhow."""
    example: Mapping[str, Any]
    """One of them: params, trial, repeat, and how it ended in either cube."""

    def to_dict(self) -> dict[str, Any]:
        """The conflict as JSON values."""
        return {**vars(self), "example": dict(self.example)}


@dataclass
class _Sum:
    trials: int = 0
    status_changes: int = 0
    first: tuple[tuple[int, int, int], int, int] | None = None
    """Position (slot, trial, repeat), and the status on both sides."""


class Tally:
    """Counts contradictions. One thread at a time may add to it.

    Parameters
    ----------
    slots
        Length of the axis of params.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sums: dict[tuple[int, int, int, int], _Sum] = {}
        self.undecided = 0

    @property
    def trials(self) -> int:
        """All contradicted trials."""
        return sum(one.trials for one in self._sums.values())

    def add(
        self, model: int, shape: tuple[int, int, int], first: tuple[int, int], found: Contradiction
    ) -> None:
        """Count what was found in a region.

        Parameters
        ----------
        model
            The region's model.
        shape
            Cells, trials and repeats of the region.
        first
            Its first trial and repeat.
        found
            What was found there.
        """
        self.undecided += found.undecided
        cell, trial, repeat = np.unravel_index(found.where, shape)
        task, slot = np.divmod(cell, self._slots)
        place = np.stack([slot, trial + first[0], repeat + first[1]], axis=1)
        status = found.kept["status"], found.hidden["status"]
        for one in np.unique(task):
            rows = np.flatnonzero(task == one)
            entry = self._sums.setdefault((model, int(one), found.upper, found.lower), _Sum())
            entry.trials += len(rows)
            entry.status_changes += int((status[0][rows] != status[1][rows]).sum())
            # A trial that ended differently shows more than one with other tokens.
            best = min(rows, key=lambda row: (status[0][row] == status[1][row], *place[row]))
            at = (int(place[best][0]), int(place[best][1]), int(place[best][2]))
            shown = (at, int(status[0][best]), int(status[1][best]))
            if entry.first is None or _worth(shown) < _worth(entry.first):
                entry.first = shown

    def update(self, other: Tally) -> None:
        """Add what another one has counted, of other models."""
        self._sums.update(other._sums)
        self.undecided += other.undecided

    def conflicts(
        self,
        names: Sequence[str],
        models: Sequence[str],
        tasks: Sequence[str],
        points: Sequence[Sequence[Mapping[str, Any]]],
        by_nature: Sequence[bool],
    ) -> list[Conflict]:
        """All of them, by model and task.

        Parameters
        ----------
        names
            Of the cubes.
        models, tasks
            Labels.
        points
            Params of the points of each task.
        by_nature
            By model, whether it was asked at a temperature above 0.
        """
        found = []
        for (model, task, upper, lower), one in sorted(self._sums.items()):
            (slot, trial, repeat), kept, hidden = one.first or ((0, 0, 0), 0, 0)
            example = {
                "params": dict(points[task][slot]),
                "trial": trial,
                "repeat": repeat,
                "kept": Status(kept).name.lower(),
                "hidden": Status(hidden).name.lower(),
            }
            found.append(
                Conflict(
                    models[model],
                    tasks[task],
                    names[upper],
                    names[lower],
                    one.trials,
                    one.status_changes,
                    by_nature[model],
                    example,
                )
            )
        return found


def _worth(shown: tuple[tuple[int, int, int], int, int]) -> tuple[bool, tuple[int, int, int]]:
    place, kept, hidden = shown
    return kept == hidden, place
