"""Questions that two evaluations answered differently, with both answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.near_names import checked_option
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.filters import differing
from evalcube.flows.read.reader import FoundTrial, Reader, status_name
from evalcube.flows.read.selection import Part
from evalcube.flows.read.sides import Side, SideBySide, SidePoint, side_by_side
from evalcube.flows.read.trials.texts import AT_ONCE, READ
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.pairing import TRUNCATED, Pair
from evalcube.stages.reply.status import Status

Change = Literal["lost", "won"]


@dataclass(frozen=True)
class SideReply:
    """What one side said to a question. All texts but `status` are a model's own."""

    status: str
    right: int
    """Answers that were right, of those that are compared."""
    answer: str | None
    """As it was read in the response; None where there is none, or the reply is not at hand."""
    response: str | None
    reasoning: str | None


@dataclass(frozen=True)
class Flip:
    """A question that one side got right more often than the other."""

    change: Change
    """What happened from the first to the second."""
    task: str
    params: Mapping[str, Any]
    tiers: tuple[str, ...]
    trial: int
    repeat: int
    """The first one in which they differ in that way: its replies are shown."""
    asked: int
    """Answers to the question that are compared."""
    prompt: str
    reference: str
    row_id: str | None
    first: SideReply
    second: SideReply


@dataclass(frozen=True)
class Count:
    """Questions of a task or a point."""

    task: str
    params: Mapping[str, Any] | None
    """None for all points of the task."""
    tiers: tuple[str, ...]
    questions: int
    """That both answered."""
    lost: int
    """Of these, those that the second got right less often than the first."""
    won: int
    first_alone: int
    """Questions that only the first was asked."""
    second_alone: int
    unanswered: int
    """Questions that both were asked, and not both have answered yet."""


class Flips:
    """Questions that two sides answered differently; see `flips`."""

    def __init__(self, sides: SideBySide, truncated: str, cache: str | Path | None) -> None:
        self.sides, self.truncated, self._cache = sides, truncated, cache
        both = sides.both(truncated)
        right = (sides.status == int(Status.CORRECT)) & both
        self._asked: npt.NDArray[np.int64] = both.sum(axis=-1)
        self._right: npt.NDArray[np.int64] = right.sum(axis=-1)
        self._differ = right[0].astype(np.int8) - right[1]
        self._change = np.sign(self._right[0] - self._right[1])
        self._places = np.argwhere(self._change)

    def __len__(self) -> int:
        """Questions that changed."""
        return len(self._places)

    @cached_property
    def pair(self) -> Pair | None:
        """The paired comparison that says what of it may be noise; None if nothing was answered by both."""
        return self.sides.compare(truncated=self.truncated)

    @cached_property
    def varying(self) -> dict[str, set[str]]:
        """Parameters in which the points of each task differ."""
        return {task: differing(points) for task, points in zip(self.sides.tasks, self._params, strict=True)}

    @cached_property
    def _params(self) -> list[list[dict[str, Any]]]:
        return [[axes.json_object(point.params) for point in points] for points in self.sides.points]

    @cached_property
    def tasks(self) -> tuple[Count, ...]:
        """Counts by task."""
        return tuple(self._count(task, None) for task in range(len(self.sides.tasks)))

    @cached_property
    def points(self) -> tuple[Count, ...]:
        """Counts of the points with changed questions; where most changed comes first, then where most are lost."""
        counts = [self._count(task, slot) for task, slot in np.argwhere(self._change.any(axis=-1)).tolist()]
        return tuple(sorted(counts, key=lambda count: (-count.won - count.lost, -count.lost)))

    def _count(self, task: int, slot: int | None) -> Count:
        index: tuple[Any, ...] = (task, slice(None) if slot is None else slot)
        asked = np.asarray(self.sides.planned[(slice(None), *index)].any(axis=-1))
        answered, change = self._asked[index] > 0, self._change[index]
        return Count(
            self.sides.tasks[task],
            None if slot is None else self._params[task][slot],
            () if slot is None else self._tiers(task, slot),
            int(answered.sum()),
            int((change > 0).sum()),
            int((change < 0).sum()),
            int((asked[0] & ~asked[1]).sum()),
            int((asked[1] & ~asked[0]).sum()),
            int((asked.all(axis=0) & ~answered).sum()),
        )

    def _tiers(self, task: int, slot: int) -> tuple[str, ...]:
        dataset = self.sides.dataset
        inside = dataset["in_tier"].values[:, task, slot]
        return tuple(name for name, here in zip(dataset["tier"].values.tolist(), inside, strict=True) if here)

    def rows(self, limit: int | None = None) -> Iterator[Flip]:
        """The questions that changed, by task, point and trial, with both replies."""
        chosen = self._places if limit is None else _fairly(self._places, self._change, limit)
        readers = [_Replies(side, self._cache) for side in (self.sides.first, self.sides.second)]
        for begin in range(0, len(chosen), AT_ONCE):
            part = chosen[begin : begin + AT_ONCE]
            change = self._change[tuple(part.T)]
            repeats = (self._differ[tuple(part.T)] == change[:, np.newaxis]).argmax(axis=-1)
            places = [(*unit, repeat) for unit, repeat in zip(part.tolist(), repeats.tolist(), strict=True)]
            keys = [self.sides.points[task][slot] for task, slot, *_ in places]
            yield from map(self._flip, places, *(reader.load(keys, places) for reader in readers))
        self.missing = sum(reader.missing for reader in readers)

    missing = 0
    """Replies that the last reading of all rows looked for and did not find."""

    def _flip(self, position: tuple[int, int, int, int], *trials: FoundTrial) -> Flip:
        task, slot, trial, repeat = position
        replies = [
            SideReply(
                status_name(Status(int(self.sides.status[side, *position])), row.cell),
                int(self._right[side, task, slot, trial]),
                *(READ[name](row) for name in ("answer", "response", "reasoning")),
            )
            for side, row in enumerate(trials)
        ]
        return Flip(
            "lost" if self._change[task, slot, trial] > 0 else "won",
            self.sides.tasks[task],
            self._params[task][slot],
            self._tiers(task, slot),
            trial,
            repeat,
            int(self._asked[task, slot, trial]),
            *(READ[name](trials[0]) for name in ("prompt", "reference", "row_id")),
            *replies,
        )


class _Replies:
    """Reads the answers of one side."""

    def __init__(self, side: Side, cache: str | Path | None) -> None:
        self._reader = Reader(side.address, cache)
        plan = self._reader.plan
        self._model = [row.eval_id for row in plan.evaluations].index(side.eval_id)
        self._points = {
            (task.label, planned.cell.id): (number, slot)
            for number, task in enumerate(plan.tasks)
            for slot, planned in enumerate(task.cells)
        }
        self.missing = 0

    def load(self, keys: Sequence[SidePoint], places: Sequence[tuple[int, ...]]) -> list[FoundTrial]:
        """What is known of trials, whose points are named by `keys`."""
        own = [
            (self._model, *self._points[key.task, key.cell_id], trial, repeat)
            for key, (*_, trial, repeat) in zip(keys, places, strict=True)
        ]
        rows = self._reader.load_trials(own, judged=False)
        self.missing += sum(bool(row.digest) and row.answered is None for row in rows)
        return rows


def flips(
    cubes: Sequence[str | Path],
    models: Sequence[str] = (),
    part: Part | None = None,
    *,
    repeats: int | None = None,
    truncated: str = "wrong",
    cache: str | Path | None = None,
) -> Flips:
    """The questions that two evaluations, of one cube or of two, answered differently.

    Where questions were asked several times, one counts as changed if it was right more often in one of the two, over
    the repeats that both finished.
    """
    checked_option("truncated", truncated, TRUNCATED)
    sides = side_by_side(cubes, models, part, repeats=repeats)
    if not sides.planned.all(axis=0).any():
        raise SweepError(
            f"{sides.first.label} and {sides.second.label} were asked no question in common",
            "Questions are the same where task, generator version, params, data set and seed are",
        )
    return Flips(sides, truncated, cache)


def _fairly(places: npt.NDArray[np.intp], change: npt.NDArray[Any], limit: int) -> npt.NDArray[np.intp]:
    """At most `limit` places in their order: half of each direction, more of one where the other has fewer."""
    lost = change[tuple(places.T)] > 0
    count = min(int(lost.sum()), max(limit - limit // 2, limit - int((~lost).sum())))
    keep = [*np.flatnonzero(lost)[:count], *np.flatnonzero(~lost)[: limit - count]]
    return places[np.sort(np.array(keep, dtype=np.intp))]
