"""What is left to ask of an evaluation, by range: trials that nobody has begun are counted and drawn, never listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalcube.flows.plan.targets import Positions, SampleTargets, Window, window_of
from evalcube.flows.state.store import SweepStore
from evalcube.storage.cube.regions import Region


@dataclass(frozen=True, eq=False)
class OpenTrials:
    """Trials of one evaluation that are not recorded yet."""

    window: Window
    targets: SampleTargets
    positions: Positions | None = None
    """Flat positions in the window; None for all that the targets have there."""
    unrated: int = 0
    """Recorded trials that judges are to rate."""

    @property
    def count(self) -> int:
        """Number of trials."""
        return self.targets.count(self.window) if self.positions is None else len(self.positions)

    def by_cell(self) -> Positions:
        """Number of trials of each cell, shape (task, params)."""
        if self.positions is None:
            return self.targets.by_cell(self.window)
        counts = np.zeros(self.window.shape[:2], np.int64)
        np.add.at(counts, self.window.coordinates(self.positions)[:2], 1)
        return counts

    def at(self, numbers: Positions) -> Positions:
        """Flat positions of some of the trials, by number."""
        if self.positions is None:
            return self.targets.positions(self.window, numbers)
        return self.positions[numbers]


def open_trials(store: SweepStore, model: int) -> Iterator[OpenTrials]:
    """What is left of an evaluation: what is left in recorded regions, and ranges of regions that nobody has begun."""
    begun: Window | None = None
    sizes, chunks, targets = store.plan.sizes, store.cube.chunks, store.targets
    for region in sorted(store.regions(model), key=lambda region: (region.repeat, region.trial)):
        window = window_of(sizes, region, chunks)
        if store.is_recorded(region):
            work = store.work_in(region)
            if work is not None:
                yield OpenTrials(window, targets, work.positions, len(work.unrated))
        elif begun is not None and _follows(begun, window):
            begun = replace(begun, shape=(*begun.shape[:2], begun.shape[2] + window.shape[2], begun.shape[3]))
        else:
            if begun is not None:
                yield OpenTrials(begun, targets)
            begun = window
    if begun is not None:
        yield OpenTrials(begun, targets)


def unbegun(targets: SampleTargets, shape: Sequence[int], model: int) -> OpenTrials:
    """All that the targets have of an evaluation, where there is no cube yet."""
    # From the first trial that is meant: a part of a billion trials is no larger than itself.
    tasks, slots, trials, repeats = shape
    window = Window(Region(model, 0, 0), (tasks, slots, trials - targets.first, repeats), targets.first, 0)
    return OpenTrials(window, targets)


def left_of(store: SweepStore, model: int) -> tuple[int, int]:
    """How many trials of an evaluation are to be asked, and how many recorded ones to be rated."""
    parts = list(open_trials(store, model))
    return sum(part.count for part in parts), sum(part.unrated for part in parts)


@dataclass(frozen=True)
class RoundWork:
    """What a round of a run has to do."""

    left: Sequence[int]
    """Trials to ask, by evaluation."""
    unrated: Sequence[int]
    """Recorded trials that judges are to rate, by evaluation."""
    stale: Sequence[int]
    """Evaluations to count again."""
    uncompared: Sequence[int]
    """Tasks whose prompts are to be compared."""

    @classmethod
    def of(cls, store: SweepStore) -> RoundWork:
        """What is left of a sweep, as far as its targets go."""
        counts = (left_of(store, model) for model in range(len(store.plan.evaluations)))
        left, unrated = zip(*counts, strict=True)
        return cls(left, unrated, *store.behind())

    @property
    def by_evaluation(self) -> list[int]:
        """Trials for which models are asked, be it as judges."""
        return [left + unrated for left, unrated in zip(self.left, self.unrated, strict=True)]

    @property
    def trials(self) -> int:
        """All of these."""
        return sum(self.by_evaluation)


def pending_beside(store: SweepStore, whole: SampleTargets, left: int) -> int:
    """How many trials of a plan, and of what its cube was grown to, are not done and not among those `left`."""
    own = store.plan.named_cells
    whole = whole.union(SampleTargets(store.planned.trials * own, store.planned.repeats * own))
    if store.targets.first == 0 and whole.same(store.targets):
        return 0
    planned = SweepStore(store.cube, store.plan, whole, store.found)
    return sum(left_of(planned, model)[0] for model in range(len(planned.plan.evaluations))) - left


def _follows(before: Window, window: Window) -> bool:
    end = before.first_trial + before.shape[2]
    return (before.first_repeat, end) == (window.first_repeat, window.first_trial)
