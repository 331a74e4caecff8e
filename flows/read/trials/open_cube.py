"""A cube whose trials are read: its plan, the part of it that is meant, and the labels of its rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt

from evalcube.flows.cube_like import Selected
from evalcube.flows.errors import SweepError, as_list, refused, told
from evalcube.flows.plan.coordinates import ROW_ID
from evalcube.flows.plan.filters import meets
from evalcube.flows.plan.plan import Plan, PlannedCell, TaskPlan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.trials.columns import DISAGREE, PARAM, Rows, TrialColumn, Values, objects
from evalcube.flows.state.records import cached_prices, priced_models
from evalcube.stages.generate.dataset import column_of
from evalcube.stages.generate.stream import canonical_json
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.integrity import RecordedChunks
from evalcube.storage.cube.schema import LAYERS, VARIABLES
from evalcube.storage.urls import redacted

MEASURED = ("trial", "repeat", "tokens", "prompt_tokens", "reasoning_tokens", "cached_tokens", "reasoning_bytes",
            "compressed_bytes", "latency", "first_token", "looping", "ending", "guess_chance", "fact", "behavior",
            "judge", DISAGREE)  # fmt: skip
"""What conditions on single trials may name: numbers."""


def split_where(where: Mapping[str, object] | Sequence[str]) -> tuple[Any, dict[str, object]]:
    """Conditions on models and points, as they came, and those on single trials."""
    where = as_list("where", where)
    measured: dict[str, object] = {}
    if not where:
        return (), measured
    from evalcube.flows.plan.filters import (
        read_condition,
        split_condition,
    )  # with xarray, which takes a while

    if isinstance(where, Mapping):
        measured = {name: condition for name, condition in where.items() if name in MEASURED}
        for name, condition in measured.items():
            parts = condition if isinstance(condition, list | tuple) else [condition]
            if not callable(condition) and not all(isinstance(part, SupportsFloat | None) for part in parts):
                raise SweepError(
                    f"`where`: {name} is a number, and {told(condition)} is none",
                    f'Give one, a list of them or a pair; or conditions as texts, such as ["{name}=1..9"]',
                )
        return {name: condition for name, condition in where.items() if name not in MEASURED}, measured
    of_cells = []
    for text in where:
        name, value = (DISAGREE, "true") if text == DISAGREE else split_condition(text)
        if name == "status":
            raise SweepError("`where`: it knows nothing of outcomes", f"Give `status` {value} for that")
        if name not in MEASURED:
            of_cells.append(text)
        elif name in measured:
            raise SweepError(
                f"`where`: '{name}' is given twice",
                f"Give all of its values at once: {name}=1,2 or {name}=1..9",
            )
        else:
            measured[name] = read_condition(name, value, [True] if name == DISAGREE else [0.0])
    return tuple(of_cells), measured


def fulfils(values: npt.NDArray[Any], condition: object) -> npt.NDArray[np.bool_]:
    """Which numbers fulfil a condition; -1 and NaN, which stand for unknown ones, never do."""
    inside: npt.NDArray[np.bool_] = np.isfinite(values) & (values >= 0)
    if callable(condition):
        inside &= np.array([bool(condition(value)) for value in values.tolist()], dtype=bool)
        return inside
    if isinstance(condition, tuple):
        low, high = condition
        inside &= values >= (-np.inf if low is None else low)
        inside &= values <= (np.inf if high is None else high)
        return inside
    options = np.asarray(condition if isinstance(condition, list) else [condition])
    # A number as it is shown stands for the stored one, which may be in single precision.
    inside &= np.isin(values, options.astype(values.dtype) if values.dtype.kind == "f" else options)
    return inside


class OpenCube:
    """A cube with the part of it that is selected: by conditions on models and points, and by identity.

    Raises StorageError if it cannot be read, SweepError if it is no sweep's or a condition is wrong or never fulfilled.
    """

    def __init__(
        self,
        address: str | Path,
        where: Any,  # noqa: ANN401
        cache: str | Path | Sequence[str | Path] | None,
        part: Selected | None = None,
    ) -> None:
        self.reader = Reader(address, cache)
        self.address = redacted(str(address))
        self.cube: Cube = self.reader.cube
        self.plan: Plan = self.reader.plan
        self.planned = SampleTargets(*self.cube.read_targets())
        self.models = np.ones(len(self.plan.evaluations), dtype=bool)
        self.cells = self.plan.valid()
        self.selected = part
        if part is not None:
            self.models &= part.of_models(self.plan)
            self.cells &= part.of_points(self.plan)
        self.asked = np.ones((*self.cells.shape, self.cube.sizes["trial"]), dtype=bool)
        """Which questions are meant, shape (task, params, trial)."""
        self.never = ""
        """Why none is, if none is."""
        self._columns: dict[str, npt.NDArray[np.object_] | None] = {}
        self._levels: dict[str, Values] = {}
        """Values of labels by column: by model, or by point in row-major order."""
        if where:
            self._select(where)

    def _select(self, where: Any) -> None:  # noqa: ANN401
        from evalcube.flows.plan.filters import checked_where, conditions_of, unknown_names, without
        from evalcube.flows.read.design import with_design  # with xarray, which takes a while
        from evalcube.stages.analyze.labelled.selection import keys, select

        dataset = with_design(self.cube.summary())
        table = keys(dataset)
        for name in unknown_names(conditions_of(where), table):
            if (values := self.column(name)) is not None:
                condition = conditions_of(where)[name]
                self.asked &= meets(values, condition)
                if not self.asked.any():
                    self.never = f"there is no {name} '{condition}'"
                where = without(where, [name])
        conditions = checked_where(where, table, dataset)
        with refused():
            selected = select(dataset, conditions, table)
        self.models, self.cells = self.models & selected.models, self.cells & selected.cells

    def part(self, model: int, task: int) -> OpenCube:
        """The same cube, of which only one evaluation and one task are meant, as far as they were."""
        part = copy(self)
        part.models, part.cells = np.zeros_like(self.models), np.zeros_like(self.cells)
        part.models[model], part.cells[task] = self.models[model], self.cells[task]
        return part

    def refuse_lost(self, name: str, values: npt.NDArray[Any], span: tuple[int, slice, slice]) -> None:
        """Refuse an array of one model's trials and repeats if a chunk of it is gone: it reads as never asked."""
        fill = {**VARIABLES, **LAYERS}[name].fill
        # A store keeps what it has: only in a folder anybody deletes single files.
        if self.cube.is_object_store or not (np.isnan(values) if np.isnan(fill) else values == fill).any():
            return
        model, *parts = span
        trial, repeat = (np.arange(part.start, part.stop) for part in parts)
        indices = (np.array([model]), *map(np.arange, self.cells.shape), trial, repeat)
        self._recorded_chunks.refuse_lost(name, indices)

    @cached_property
    def _recorded_chunks(self) -> RecordedChunks:
        return RecordedChunks(self.cube)

    @cached_property
    def prices(self) -> npt.NDArray[np.float64]:
        """USD per million tokens of prompts and completions, shape (model, 2); NaN where neither is known.

        Prices of 0 are known where the config declares them.
        """
        both = np.stack([self.cube.read_label(f"price_{kind}") for kind in ("prompt", "completion")], axis=1)
        prices = both.astype(np.float64)
        declared = priced_models(self.reader.notes) or set()
        named = np.array([row.model in declared for row in self.plan.evaluations], dtype=bool)
        prices[(prices == 0).all(axis=1) & ~named] = np.nan
        return prices

    @cached_property
    def cached_prices(self) -> npt.NDArray[np.float64]:
        """What it adds to the price of a prompt's token if it was cached, by evaluation."""
        surcharges = cached_prices(self.reader.notes)
        return np.array([surcharges.get(row.model, 0.0) for row in self.plan.evaluations])

    def column(self, name: str) -> npt.NDArray[np.object_] | None:
        """What a column of data files has for each question, shape (task, params, trial); None if none has it."""
        if name not in self._columns:
            texts = np.full(self.asked.shape, "", dtype=object)
            if name == ROW_ID and self.cube.has_label(ROW_ID):
                for point, names in zip(self.plan.named_points, self.cube.read_label(ROW_ID), strict=True):
                    texts[(*point, slice(len(names)))] = names
            for number, task in enumerate(self.plan.tasks):
                for slot, planned in enumerate(task.cells):
                    values = column_of(planned.cell, name)[: texts.shape[-1]]
                    texts[number, slot, : len(values)] = [value or "" for value in values]
            self._columns[name] = texts if name == ROW_ID or (texts != "").any() else None
        return self._columns[name]

    @cached_property
    def duplicates(self) -> npt.NDArray[np.uint8]:
        """Which questions occurred before in their cell, shape (task, params, trial); 255 is unknown."""
        return self.cube.read_duplicates()

    def labels(self, column: TrialColumn, rows: Rows) -> Values:
        """Labels of some of its rows."""
        if column.source == "plan" and (values := self._columns.get(column.name)) is not None:
            texts = values[rows["task"], rows["slot"], rows["trial"]].tolist()
            return objects(text or None for text in texts)
        if column.name not in self._levels:
            by_model = _BY_MODEL.get(column.name)
            levels = self._of_points(column) if by_model is None else by_model(self)
            self._levels[column.name] = objects(levels)
        by_cell = column.name not in _BY_MODEL
        codes = rows["task"] * self.cells.shape[1] + rows["slot"] if by_cell else rows["model"]
        return self._levels[column.name][codes]

    def _of_points(self, column: TrialColumn) -> list[Any]:
        labels: list[Any] = [None] * self.cells.size
        for number, task in enumerate(self.plan.tasks):
            for slot, planned in enumerate(task.cells):
                labels[number * self.cells.shape[1] + slot] = _of_point(column, task, planned)
        return labels


def _of_point(column: TrialColumn, task: TaskPlan, planned: PlannedCell) -> object:
    cell = planned.cell
    match column.name:
        case "task":
            return task.label
        case "params":
            return canonical_json(cell.plain_params)
        case "cell_id":
            return cell.id
        case "tiers":
            return list(planned.tiers)
        case "difficulty":
            return None if math.isnan(cell.difficulty) else float(cell.difficulty)
    value = cell.plain_params.get(column.name.removeprefix(PARAM))
    odd = column.kind == "text" and value is not None and not isinstance(value, str)
    return json.dumps(value, sort_keys=True) if odd else value


def _facets(opened: OpenCube) -> list[Any]:
    texts = [str(text) for text in opened.cube.read_label("facets").tolist()]
    return [None if text in ("", "{}") else text for text in texts]


_BY_MODEL: Mapping[str, Callable[[OpenCube], list[Any]]] = {
    "cube": lambda opened: [opened.address for _ in opened.plan.evaluations],
    "model": lambda opened: [row.model for row in opened.plan.evaluations],
    "template": lambda opened: [row.template.name for row in opened.plan.evaluations],
    "sampler": lambda opened: [row.sampler.name for row in opened.plan.evaluations],
    "eval_id": lambda opened: [row.eval_id for row in opened.plan.evaluations],
    "revision": lambda opened: [row.revision or None for row in opened.plan.evaluations],
    "facets": _facets,
}
