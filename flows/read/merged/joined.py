"""Several cubes as one sweep: its plan, how far it is to be measured, and what is known of its prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.coordinates import OF_CODE, ROW_ID, ROW_ID_ATTRS, labels
from evalcube.flows.plan.grading import trial_variables
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.spec import base_design_array, damaged_at, joined_base
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.layers import Array, Layers, Variables
from evalcube.flows.read.merged.union import Place, Union, same_judges, unite
from evalcube.flows.state.questions import offer_questions
from evalcube.stages.generate.absent import AbsentTask
from evalcube.storage.cube.cube import Coordinate
from evalcube.storage.cube.schema import DUPLICATE, SAID

_UNKNOWN = int(DUPLICATE.fill)


def planned_of(source: Input, layout: Place, shape: tuple[int, int, int]) -> Array:
    """How many trials and repeats a cube plans, int32 (2, model, cell) of the union."""
    return np.stack(
        [scatter(source, layout, shape, values) for values in (source.planned.trials, source.planned.repeats)]
    )


def scatter(source: Input, layout: Place, shape: tuple[int, int, int], values: Array) -> Array:
    """What a cube says by model, task and params, by model and cell of the union; 0 where it says nothing."""
    mine, theirs = source.cells(layout, shape[2])
    cells = np.zeros((shape[0], shape[1] * shape[2]), dtype=values.dtype)
    for row, target in enumerate(layout.models):
        if target >= 0:
            cells[target, theirs] = values[row].reshape(-1)[mine]
    return cells


def joined_duplicates(
    inputs: Sequence[Input], places: Sequence[Place], shape: tuple[int, int, int]
) -> tuple[npt.NDArray[np.uint8], int]:
    """Which prompts occurred before in their cell, as any of the cubes knows."""
    flags = np.full((shape[0] * shape[1], shape[2]), _UNKNOWN, dtype=np.uint8)
    wrong = np.zeros(len(flags), dtype=bool)
    for source, layout in zip(inputs, places, strict=True):
        mine, theirs = source.cells(layout, shape[1])
        values = source.cube.read_duplicates().reshape(-1, source.cube.sizes["trial"])[mine, : shape[2]]
        earlier = flags[theirs, : values.shape[1]]
        wrong[theirs] |= ((earlier != _UNKNOWN) & (values != _UNKNOWN) & (earlier != values)).any(axis=1)
        flags[theirs, : values.shape[1]] = np.where(earlier == _UNKNOWN, values, earlier)
    flags[wrong] = _UNKNOWN
    return flags.reshape(shape), int(wrong.sum())


class Joined:
    """The union of several cubes, by default of all that any of them has; raises SweepError if they do not fit.

    Cubes that were rated by different judges are refused, or with `without_judges` joined without their judges' scores.
    """

    def __init__(
        self, inputs: Sequence[Input], *, without_judges: bool = False, union: Union | None = None
    ) -> None:
        self.inputs = inputs
        names = [source.url for source in inputs]
        specs = [source.spec for source in inputs]
        unjudged = without_judges and not same_judges(specs)
        if unjudged:
            specs = [spec.model_copy(update={"judges": []}) for spec in specs]
        self.union: Union = union or unite(specs, names, [source.prices for source in inputs])
        self.notes = list(self.union.notes)
        self.plan = self._planned_sweep({} if union else _noted_files(inputs))
        there = {name for source in self.inputs for name in source.cube.trial_arrays}
        self.variables: Variables = {
            name: form
            for name, form in trial_variables(self.plan).items()
            if name not in SAID or name in there
        }
        if unjudged:
            self.variables = {name: form for name, form in self.variables.items() if name != "judge"}
            self.notes.append(
                "Other judges rated each of these cubes: their scores are no scores of the same, and are left out."
            )
        self.targets = self._all_targets()
        self.targets.refuse_too_many()
        trials, repeats = self.targets.maxima
        most = [max(source.sizes[dim] for source in inputs) for dim in ("trial", "repeat")]
        self.plan = replace(self.plan, trials=max(trials, most[0]), repeats=max(repeats, most[1]))
        shape = (len(self.plan.tasks), self.plan.slots, self.plan.trials)
        self.flags, wrong = joined_duplicates(inputs, self.union.places, shape)
        if wrong:
            self.notes.append(
                f"The cubes do not agree which prompts of {wrong} points occurred before: the next run compares them."
            )
        for source in inputs:
            if source.damaged_lines:
                self.notes.append(
                    f"{source.damaged_lines} lines of the ledger of '{source.url}' are damaged: what they spoke of is "
                    "not taken."
                )

    def _planned_sweep(self, files: Mapping[str, str]) -> Plan:
        """The plan of the union, with the prices and facets of the cube that was measured last."""
        plan = Plan.from_spec(self.union.spec, 1, 1, files)
        for source in self.inputs:
            offer_questions(source.cube.records, plan)
        self.notes += [f"{reason}. Its results are joined as the cubes say." for reason in plan.absent]
        for task, described in zip(plan.tasks, self.union.spec["tasks"], strict=True):
            for planned, point in zip(task.cells, described["points"], strict=True):
                if planned.cell.id != point["cell_id"]:
                    raise damaged_at(f"task {task.label}", f"point {point['cell_id'][:12]} has other params")
        for row, described in zip(plan.evaluations, self.union.spec["evaluations"], strict=True):
            if row.eval_id != described["eval_id"]:
                raise damaged_at(f"evaluation {row.label}", "its id is not that of its requests")
        prices = self._newest("prices", [source.prices for source in self.inputs])
        facets = self._newest("facets", [source.facets for source in self.inputs])
        asserted = tuple((a, b) for a, b in self.union.spec.get("asserted_prices", ()))
        return replace(plan, prices=tuple(prices), facets=tuple(facets), asserted_prices=asserted)

    def labels(self) -> list[Coordinate]:
        """See `evalcube.flows.plan.coordinates.labels`; what only absent code tells is as the cubes have it."""
        coordinates = labels(self.plan)
        absent = [row for row, task in enumerate(self.plan.tasks) if isinstance(task.task, AbsentTask)]
        by_code = {source.name: source.values for source in coordinates if source.name in OF_CODE}
        for source, layout in zip(self.inputs, self.union.places, strict=True) if absent else ():
            mine, theirs = source.cells(layout, self.plan.slots)
            taken = np.isin(theirs // self.plan.slots, absent)
            theirs_of = [str(tier) for tier in source.cube.whole_label("tier")]
            for name, values in by_code.items():
                stored = source.cube.whole_label(name)
                stored = stored.reshape(*stored.shape[:-2], -1)[..., mine[taken]]
                flat = values.reshape(*values.shape[:-2], -1)  # the same memory
                if name != "in_tier":
                    flat[theirs[taken]] = stored
                    continue
                for row, tier in enumerate(self.plan.tiers):
                    if tier in theirs_of:
                        flat[row, theirs[taken]] = stored[theirs_of.index(tier)]
        return [*coordinates, base_design_array(self._base())]

    def _base(self) -> Array:
        """The base design of each evaluation, as its own cube has it."""
        shape = self.targets.trials.shape
        pairs = zip(self.inputs, self.union.places, strict=True)
        parts = [scatter(source, layout, shape, source.base.astype(np.int64)) for source, layout in pairs]
        return joined_base([part.reshape(shape) for part in parts])

    def row_ids(self) -> list[Coordinate]:
        """The ids of the rows of named points, as the cubes have them; nothing if there are no such points."""
        named = {layout: number for number, layout in enumerate(self.plan.named_points)}
        if not named:
            return []
        ids = np.full((len(named), self.plan.trials), "", dtype=object)
        for source, layout in zip(self.inputs, self.union.places, strict=True):
            if not source.cube.has_label(ROW_ID):
                continue  # a cube without named points
            places = {
                (task.label, number): (to_task, slot)
                for task, to_task, own in zip(source.described.tasks, layout.tasks, layout.slots, strict=True)
                for number, slot in enumerate(own)
            }
            stored = [source.cube.whole_label(name) for name in (ROW_ID, "dataset_task", "dataset_params")]
            for values, label, number in zip(*stored, strict=True):
                row = named.get(places.get((str(label), int(number)), (-1, -1)))
                if row is not None:
                    row_ids = ids[row, : len(values)]
                    row_ids[row_ids == ""] = values[: len(row_ids)][row_ids == ""]
        return [Coordinate(ROW_ID, ("dataset", "trial"), ids, ROW_ID_ATTRS)]

    def _newest(self, field: str, values: Sequence[Sequence[Any]]) -> list[Any]:
        """What the cube says that was written last, by evaluation of the union."""
        by_model: dict[int, Any] = {}
        cubes = zip(self.inputs, self.union.places, values, strict=True)
        for _, layout, own in sorted(
            cubes, key=lambda row: ((row[0].times or (0, 0))[1], json.dumps(row[2]))
        ):
            for model, value in zip(layout.models, own, strict=True):
                label = self.union.spec["evaluations"][model]["model"]
                note = f"The {field} of '{label}' differ: those of the cube that was written last are taken."
                if by_model.get(model, value) != value and note not in self.notes:
                    self.notes.append(note)
                by_model[model] = value
        return [by_model[model] for model in sorted(by_model)]

    def _all_targets(self) -> SampleTargets:
        """How far each cell is to be measured, as far as any cube plans it."""
        shape = (len(self.plan.evaluations), len(self.plan.tasks), self.plan.slots)
        pairs = zip(self.inputs, self.union.places, strict=True)
        planned = np.maximum.reduce([planned_of(source, layout, shape) for source, layout in pairs])
        return SampleTargets(*planned.reshape(2, *shape))

    def layers(self, only: str | None = None) -> Layers:
        """What each of the cubes knows, for one thread."""
        return Layers(
            self.inputs, self.union.places, (len(self.plan.tasks), self.plan.slots), self.variables, only
        )


def _noted_files(inputs: Sequence[Input]) -> dict[str, str]:
    """Paths of data files by SHA-256, as the notes of the cubes have them, the first one's before all others."""
    files: dict[str, str] = {}
    for source in reversed(inputs):
        noted = source.notes.get("files")
        if isinstance(noted, dict):
            files |= {str(digest): path for digest, path in noted.items() if isinstance(path, str)}
    return files
