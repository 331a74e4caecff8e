"""What a cube holds beside all that the config of its last run names: kept, and never asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from evalcube.stages.reply.status import COUNTERS

if TYPE_CHECKING:
    from evalcube.flows.plan.plan import Plan

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
    tiers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of points, by task and tier, that the config has taken out of one of its tiers and the cube has not."""

    @property
    def unasked(self) -> bool:
        """Whether there is something that is not asked."""
        return bool(self.models or self.points)

    def __str__(self) -> str:
        tiers = [
            f"{_points(count, task)} in tier {tier}"
            for task, row in self.tiers.items()
            for tier, count in row.items()
        ]
        texts = (
            [f"not in the run's config: {', '.join(self._parts())} ({self.trials:,} trials)"]
            if self.unasked
            else []
        )
        texts += [f"in the cube and not in the run's config: {', '.join(tiers)}"] if tiers else []
        return "; ".join(texts)

    def _parts(self) -> list[str]:
        parts = []
        if self.models:
            shown = ", ".join(self.models[:_SHOWN])
            more = f" and {len(self.models) - _SHOWN} more" if len(self.models) > _SHOWN else ""
            parts.append(f"{shown}{more}")
        return [*parts, *(_points(count, task) for task, count in self.points.items())]

    def to_dict(self) -> dict[str, Any]:
        """It as JSON values."""
        return {**asdict(self), "models": list(self.models)}


def _points(count: int, task: str) -> str:
    return f"{count} point{'s' if count > 1 else ''} of {task}"


def find_unnamed(plan: Plan, counters: npt.NDArray[np.float64]) -> Unnamed | None:
    """What the config of a plan does not name; None if it names all."""
    if plan.named is None:
        return None
    # What a data file had in it before it was edited is told apart from what was left out.
    older = plan.by_point(lambda one: one.older, np.bool_)
    points = {
        task.label: sum(not own and not planned.older for own, planned in zip(row, task.cells, strict=True))
        for task, row in zip(plan.tasks, plan.named.points, strict=True)
    }
    if all(plan.named.evaluations) and not any(points.values()) and not plan.named.tiers:
        return None
    tiers: dict[str, dict[str, int]] = {}
    for label, tier, count in plan.named.tiers:
        tiers.setdefault(label, {})[tier] = count
    return Unnamed(
        tuple(label for label, own in zip(plan.labels, plan.named.evaluations, strict=True) if not own),
        {label: count for label, count in points.items() if count},
        int(np.where(plan.named_cells | older, 0, counters[..., COUNTERS.index("trials")]).sum()),
        tiers,
    )


def noted_unnamed(notes: Mapping[str, Any]) -> Unnamed | None:
    """What the last run noted of it; None if that is nothing, or no such note: anyone may have written it."""
    try:
        return TypeAdapter(Unnamed).validate_python(notes.get(KEY))
    except ValidationError:
        return None
