"""Source of an export: the trials of a cube by evaluation and task, and what is known of all of them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

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

    def add(self, question: object, value: float) -> None:
        """Add the score of a question's trial."""
        total, count = self._by_question.get(question, (0.0, 0))
        self._by_question[question] = total + value, count + 1
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
    """A cube, or a part of it, that is exported; arguments as of `export`."""

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
    def graders(self) -> tuple[str, ...]:
        """Versions of the graders."""
        return graders_of(self._receipts)

    @cached_property
    def _receipts(self) -> list[Any]:
        with Ledger(self.opened.cube.records) as ledger:
            return list(ledger.newest().values())

    def measured_at(self, model: int) -> float:
        """Return when an evaluation's last result was recorded, seconds since the epoch; 0 if unknown."""
        return float(
            max((receipt.at for receipt in self._receipts if receipt.region.model == model), default=0)
        )

    def evaluations(self) -> Iterator[tuple[int, Evaluation]]:
        """The evaluations that are meant, with their indices."""
        return ((index, row) for index, row in enumerate(self.plan.evaluations) if self.opened.models[index])

    def tasks(self) -> Iterator[tuple[int, TaskPlan]]:
        """The tasks that are meant, with their indices."""
        return ((index, task) for index, task in enumerate(self.plan.tasks) if self.opened.cells[index].any())

    def rows(self, model: int, task: int) -> Iterator[Row]:
        """The finished trials of one evaluation and task, repeats of a question one after another."""
        part = self.table.part(0, model, task)
        for row in part.rows():
            self.rows_written += 1
            yield row
        self.notes += [note for note in part.notes if note not in self.notes]

    @cached_property
    def _graded_cells(self) -> frozenset[str]:
        """Points that have right answers."""
        return frozenset(
            planned.cell.id
            for task in self.plan.tasks
            for planned in task.cells
            if planned.cell.task.has_reference(planned.cell.params)
        )

    def scores(self, row: Row) -> dict[str, float]:
        """The results that a trial is part of: `ACCURACY` where there is a right answer, and the layers that it has."""
        accuracy = (
            {ACCURACY: float(row["status"] == "correct")} if row["cell_id"] in self._graded_cells else {}
        )
        return accuracy | {name: row[name] for name in LAYERS if row[name] is not None}

    @cached_property
    def intervals(self) -> Mapping[tuple[int, int], Row]:
        """Success rates by evaluation and task, each with its interval, truncated trials counting as wrong.

        Tasks without right answers have none.
        """
        from evalcube.flows.read.selection import Part
        from evalcube.flows.read.statistics import table

        by = ("eval_id", "task")
        rates = table(self.address, Part(self.where), by=by, mode="E_P", confidence=CONFIDENCE)
        evaluations = [row.eval_id for row in self.plan.evaluations]
        labels, method = list(self.plan.task_names), {"method": rates.arrays.attrs["interval"]}
        return {
            (evaluations.index(row["eval_id"]), labels.index(row["task"])): row | method
            for row in rates.records()
            if not math.isnan(row["point"])
        }

    def identity(self, evaluation: Evaluation) -> str:
        """A digest of what an evaluation was asked: equal for every export of it, whenever and wherever it is made."""
        cells = [planned.cell.id for _, task in self.tasks() for planned in task.cells]
        return hashlib.sha256(json.dumps([evaluation.eval_id, cells]).encode()).hexdigest()[:16]


def question(row: Row) -> tuple[str, int]:
    """What the repeats of one question have in common."""
    return row["cell_id"], row["trial"]


class SampleNames:
    """Distinct names of a task's questions: the data set's own if one point asks each row once, else made of ids."""

    def __init__(self, task: TaskPlan) -> None:
        self._own = len(task.cells) == 1
        self._known: dict[str, tuple[str, int]] = {}

    def name_of(self, row: Row) -> str:
        """Return the name of a row's question."""
        name = str(row["row_id"] or "")
        if self._own and name and self._known.setdefault(name, question(row)) == question(row):
            return name
        return f"{row['cell_id'][:12]}-{row['trial']}"


def file_name(text: str) -> str:
    """A text as part of a file's name: letters, digits, dots, underscores and hyphens."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text).strip(".-")[:80]


def public_params(params: Mapping[str, object]) -> dict[str, object]:
    """Return parameters as others may see them: of a file its name alone, and nothing that looks like a secret."""
    return {
        name: mask(value) if isinstance(value, str) and name != "sha256" else value
        for name, value in shareable(params).items()
    }


def trial_details(row: Row) -> dict[str, object]:
    """Return what is known of a trial beyond the fields that the schema has; absent values are left out."""
    details: dict[str, object] = {
        "params": public_params(json.loads(row["params"])),
        **{
            name: row[name]
            for name in ("cell_id", "tiers", "difficulty", "trial", "repeat", "status", "status_theirs", "finish",
                         "guess_chance", "cost", "duplicate", "row", "row_id", "digest", "first_token", *LAYERS,
                         "opinions")
        },
    }  # fmt: skip
    return {name: value for name, value in details.items() if value is not None}
