"""What a cube holds beside all that the config of its last run names: kept, and never asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stages.reply.status import COUNTERS

if TYPE_CHECKING:
    from flows.plan.plan import Plan

_SHOWN = 4
KEY = "unnamed"
"""Its name among the notes of a run."""


@dataclass(frozen=True)
class Unnamed:
    """Evaluations and points that a config does not name."""

    models: tuple[str, ...]
    """Labels of evaluations."""
    points: Mapping[str, int]
    """Number of points, by task."""
    trials: int
    """Finished trials of these evaluations and points."""

    def __str__(self) -> str:
        parts = []
        if self.models:
            shown = ", ".join(self.models[:_SHOWN])
            more = f" and {len(self.models) - _SHOWN} more" if len(self.models) > _SHOWN else ""
            parts.append(f"{shown}{more}")
        parts += [f"{count} point{'s' if count > 1 else ''} of {task}" for task, count in self.points.items()]
        return f"not in the config: {', '.join(parts)} ({self.trials:,} trials)"

    def to_dict(self) -> dict[str, Any]:
        """It as JSON values."""
        return {**asdict(self), "models": list(self.models)}


def unnamed(plan: Plan, counters: npt.NDArray[np.float64]) -> Unnamed | None:
    """What the config of a plan does not name; None if it names all.

    Parameters
    ----------
    plan
        Of the cube and the config.
    counters
        Of the cube, shape (model, task, params, counter).
    """
    if plan.named is None or (all(plan.named.evaluations) and all(map(all, plan.named.points))):
        return None
    points = {
        task.label: sum(not own for own in row)
        for task, row in zip(plan.tasks, plan.named.points, strict=True)
    }
    trials = np.where(plan.named_cells, 0, counters[..., COUNTERS.index("trials")]).sum()
    return Unnamed(
        tuple(label for label, own in zip(plan.labels, plan.named.evaluations, strict=True) if not own),
        {label: count for label, count in points.items() if count},
        int(trials),
    )


def noted_unnamed(notes: Mapping[str, Any]) -> Unnamed | None:
    """What the last run noted of it; None if that is nothing, or no such note: anyone may have written it."""
    found = notes.get(KEY)
    if not isinstance(found, dict):
        return None
    models, points, trials = (found.get(name) for name in ("models", "points", "trials"))
    if not isinstance(models, list) or not isinstance(points, dict) or type(trials) is not int:
        return None
    if not all(type(count) is int for count in points.values()):
        return None
    return Unnamed(tuple(map(str, models)), points, trials)
