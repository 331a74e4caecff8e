"""What is exported: the trials of a cube by evaluation and task, with what is said of all of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from evalcube import __version__
from evalcube.flows.config.secrecy import mask
from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.plan import TaskPlan
from evalcube.flows.read.trials.open_cube import OpenCube
from evalcube.flows.read.trials.read import Trials, trials
from evalcube.flows.state.records import read_notes
from evalcube.stages.generate.dataset.hub.address import shareable
from evalcube.storage.cube.ledger import Ledger, graders_of

CONFIDENCE = 0.95
ACCURACY = "accuracy"
LAYERS = ("fact", "behavior", "judge")
"""Scores from 1 to 5 that outputs may have beside right and wrong."""

Row = dict[str, Any]
"""A trial as `evalcube.flows.read.trials.read.Trials.rows` has it."""


@dataclass
class Mean:
    """Mean of a score over trials, with its standard error by question: repeats of one question are not independent."""

    rows: int = 0
    _by_question: dict[object, tuple[float, int]] = field(default_factory=dict)

    def add(self, place: object, value: float) -> None:
        """Take a trial's score up; `place` is its question."""
        total, count = self._by_question.get(place, (0.0, 0))
        self._by_question[place] = total + value, count + 1
        self.rows += 1

    @property
    def questions(self) -> int:
        """How many there are."""
        return len(self._by_question)

    @property
    def value(self) -> float:
        """The mean of the questions' means."""
        return float(np.mean(self._means)) if self.questions else math.nan

    @property
    def error(self) -> float:
        """Its standard error; NaN of fewer than two questions."""
        return float(np.std(self._means, ddof=1)) / self.questions**0.5 if self.questions > 1 else math.nan

    @property
    def _means(self) -> list[float]:
        return [total / count for total, count in self._by_question.values()]


class Source:
    """A cube, or a part of it, that is exported.

    Parameters
    ----------
    cube
        Its address.
    where
        Conditions on models and points, as for `Part.where`.
    cache
        Address of the response cache; default: the one at hand.
    organization
        Who measured, for formats that ask for it.
    now
        When it is exported, seconds since the epoch.
    """

    def __init__(
        self,
        cube: str | Path,
        where: Mapping[str, object] | Sequence[str],
        cache: str | Path | None,
        organization: str,
        now: float,
    ) -> None:
        self.address, self.where = cube, where
        self.table: Trials = trials(cube, where=where, cache=cache)
        self.opened: OpenCube = self.table.cube(0)
        self.organization, self.now = organization, now
        self.plan = self.opened.plan
        self.notes: list[str] = []
        self.rows_written = 0

    @cached_property
    def name(self) -> str:
        """What the sweep is called."""
        noted = read_notes(self.opened.cube.records).get("name")
        name = noted if isinstance(noted, str) and noted else PurePosixPath(self.opened.address).stem
        return file_name(mask(name)) or "evalcube"

    @cached_property
    def version(self) -> str:
        """Of evalcube."""
        return __version__

    @cached_property
    def graders(self) -> tuple[str, ...]:
        """Versions of the graders."""
        return graders_of(self._receipts)

    @cached_property
    def _receipts(self) -> list[Any]:
        with Ledger(self.opened.cube.records) as ledger:
            return list(ledger.newest().values())

    def measured_at(self, model: int) -> tuple[float, float]:
        """When an evaluation's first and last results were recorded, seconds since the epoch; 0 if nobody noted it."""
        times = [one.at for one in self._receipts if one.region.model == model]
        return (float(min(times)), float(max(times))) if times else (0.0, 0.0)

    def evaluations(self) -> Iterator[tuple[int, Evaluation]]:
        """The evaluations that are meant, with their indices."""
        for index, evaluation in enumerate(self.plan.evaluations):
            if self.opened.models[index]:
                yield index, evaluation

    def tasks(self) -> Iterator[tuple[int, TaskPlan]]:
        """The tasks that are meant, with their indices."""
        for index, task in enumerate(self.plan.tasks):
            if self.opened.cells[index].any():
                yield index, task

    def rows(self, model: int, task: int) -> Iterator[Row]:
        """The finished trials of one evaluation and task, repeats of a question one after another."""
        part = self.table.part(0, model, task)
        for row in part.rows():
            self.rows_written += 1
            yield row
        self.notes += [note for note in part.notes if note not in self.notes]

    @cached_property
    def _referenced(self) -> frozenset[str]:
        """Points that have right answers."""
        return frozenset(
            planned.cell.id
            for task in self.plan.tasks
            for planned in task.cells
            if planned.cell.task.has_reference(planned.cell.params)
        )

    def scores(self, row: Row) -> dict[str, float]:
        """The results that a trial is part of: `ACCURACY` where there is a right answer, and the layers that it has."""
        found = {ACCURACY: float(is_right(row))} if row["cell_id"] in self._referenced else {}
        return found | {name: row[name] for name in LAYERS if row[name] is not None}

    @cached_property
    def intervals(self) -> Mapping[tuple[int, int], Row]:
        """Success rates by evaluation and task, each with its interval, truncated trials counting as wrong.

        Tasks without right answers have none.
        """
        from evalcube.flows.read.selection import Part
        from evalcube.flows.read.statistics import table

        by = ("eval_id", "task")
        found = table(self.address, Part(self.where), by=by, mode="E_P", confidence=CONFIDENCE)
        evaluations = [row.eval_id for row in self.plan.evaluations]
        labels, method = list(self.plan.task_names), {"method": found.arrays.attrs["interval"]}
        return {
            (evaluations.index(row["eval_id"]), labels.index(row["task"])): row | method
            for row in found.records()
            if not math.isnan(row["point"])
        }

    def identity(self, evaluation: Evaluation) -> str:
        """A digest of what an evaluation was asked: equal for every export of it, whenever and wherever it is made."""
        cells = [planned.cell.id for _, task in self.tasks() for planned in task.cells]
        return hashlib.sha256(json.dumps([evaluation.eval_id, cells]).encode()).hexdigest()[:16]


def question(row: Row) -> tuple[str, int]:
    """What the repeats of one question have in common."""
    return row["cell_id"], row["trial"]


class Names:
    """Names of a task's questions, each of another: the data set's own where they serve, else by point and trial.

    Parameters
    ----------
    task
        The task. Rows of a data set have its names only if one point asks each of them once.
    """

    def __init__(self, task: TaskPlan) -> None:
        self._own = len(task.cells) == 1
        self._known: dict[str, tuple[str, int]] = {}

    def of(self, row: Row) -> str:
        """The name of a row's question."""
        name, place = row["row_id"] or "", question(row)
        # Tools make names of files of it.
        if self._own and name and file_name(name) == name and self._known.setdefault(name, place) == place:
            return str(name)
        return f"{row['cell_id'][:12]}-{row['trial']}"


def is_right(row: Row) -> bool:
    """Whether a trial counts as right; a truncated, refused or unreadable one does not."""
    return bool(row["status"] == "correct")


def iso(seconds: float) -> str:
    """A time in UTC as ISO 8601 writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def file_name(text: str) -> str:
    """A text as part of a file's name: letters, digits, dots, underscores and hyphens."""
    kept = "".join(char if (char.isascii() and char.isalnum()) or char in "._-" else "-" for char in text)
    return kept.strip(".-")[:80]


def shared(params: Mapping[str, object]) -> dict[str, object]:
    """Parameters as others may see them: of a file its name alone, and nothing that looks like a secret."""
    found: dict[str, Any] = shareable(params)
    return {
        name: mask(value) if isinstance(value, str) and name != "sha256" else value
        for name, value in found.items()
    }


def plain_params(row: Row) -> dict[str, object]:
    """A row's parameters as others may see them."""
    return shared(json.loads(row["params"]))


def described(row: Row) -> dict[str, object]:
    """What is known of a trial beyond what other tools have fields for; absent values are left out."""
    found: dict[str, object] = {
        "params": plain_params(row),
        **{
            name: row[name]
            for name in ("cell_id", "tiers", "difficulty", "trial", "repeat", "status", "status_theirs", "finish",
                         "guess_chance", "cost", "duplicate", "row", "row_id", "digest", "first_token", *LAYERS,
                         "opinions")
        },
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}
