"""Decide whether one variant of a cube may replace another. Nothing here asks an endpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from evalcube import known_as
from evalcube._arrays import Dataset
from evalcube.flows.config.findings import reported
from evalcube.flows.config.judges import LayerWeights
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.cube_like import CubeLike, Selected, address_and_part, listed, need_addresses, only
from evalcube.flows.errors import SweepError, need_number, no_bare_text
from evalcube.flows.plan.grading import due_readings, judged_points
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.cautions import describe_missing
from evalcube.flows.read.design import composite_settings
from evalcube.flows.read.gold import rated_variant, scores_by_variant
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.selection import read_trials
from evalcube.flows.read.sides import refuse_altered
from evalcube.stages.analyze.formulas.clustering import cluster_units
from evalcube.stages.analyze.formulas.design import task_weights
from evalcube.stages.analyze.labelled.axes import base_design
from evalcube.stages.analyze.labelled.clustering import all_clusters
from evalcube.stages.analyze.labelled.counters import members, planned_mask
from evalcube.stages.analyze.render.verdicts import ShownVerdict, shown_verdict
from evalcube.stages.analyze.verdict import Verdict, verdict
from evalcube.stages.analyze.verdict.composite import HIGHEST, LAYERS, LOWEST, THRESHOLD
from evalcube.stages.analyze.verdict.measures import MIN_PART, split_holdout
from evalcube.stages.analyze.verdict.paired import Clusters, Method
from evalcube.stages.analyze.verdict.rules import Thresholds
from evalcube.stages.reply.status import FINISHED
from evalcube.storage.errors import CubeDamagedError

Floats = npt.NDArray[np.floating[Any]]
BoolArray = npt.NDArray[np.bool_]
_Settings = tuple[Mapping[str, float] | None, str | None]
"""Weights of the layers and the control, as of `composite_settings`."""


@known_as("evalcube.results")
@dataclass(frozen=True)
class CubeVerdict:
    """What `verdict` returns: a `Verdict`, and the tasks, questions and ratings behind it."""

    verdict: Verdict
    cube: str
    """Several of them with commas."""
    tasks: tuple[str, ...]
    units: int
    """Questions that were compared: (task, point, trial)."""
    readings_asked: int
    """Judge readings that the finished trials should have."""
    readings: int
    """Of these, those with a score."""

    @property
    def exit_code(self) -> int:
        """0 for PROGRESS, and for SOLO with each layer at the threshold; else 1."""
        return self.verdict.exit_code

    def to_dict(self) -> dict[str, object]:
        """The verdict as JSON values."""
        own = {
            "schema": "evalcube.verdict",
            "schema_version": 2,
            "cube": self.cube,
            "tasks": list(self.tasks),
            "units": self.units,
        }
        readings = {"asked": self.readings_asked, "given": self.readings}
        return {**own, "judge_readings": readings, **self.verdict.to_dict()}


def cube_verdict(
    cube: CubeLike,
    control: str | None = None,
    treatments: Sequence[str] = (),
    *,
    tasks: Sequence[str] = (),
    method: Method | None = None,
    threshold: float = THRESHOLD,
    trivial: float = Thresholds.trivial,
    weights: Mapping[str, float] | None = None,
    gold: str | Path | None = None,
    gold_variant: str | None = None,
    missing: float | None = None,
    holdout: float | None = None,
) -> CubeVerdict:
    """Compare variants of a cube on the questions that they share.

    A unit is one question that all of them were asked: (task, point, trial). Repeats are averaged first.

    Parameters
    ----------
    cube
        A cube, or several in a list, read as if merged. If a dataset of `open_cube` was cut, only its questions and
        evaluations count.
    control
        The variant in use, by its model's name, its full label or its number (from 0). May be left out if the
        config declares it, or if there is only one variant.
    treatments
        Variants that might replace it, named in the same way. Default: all others if the config declares a control
        and `control` names no other; else none, and the verdict is about the control alone (SOLO).
    tasks
        Labels of the tasks to compare on; default: all that have assertions or a rubric.
    method
        Test of differences: "sign-flip" (valid for one look) or "anytime" (for any number of looks). Default: chosen so
        that all looks at a growing cube err in 5% together: "anytime" if more was asked than the cube's first run
        planned, else "sign-flip".
    threshold
        Lowest mean score, from 1 to 5, that each layer must reach.
    trivial
        Smallest difference of composite scores that matters, above 0 and up to 4.
    weights
        Weights of the layers, such as {"fact": 2, "judge": 1}; a layer that is not named has none. Default: those of
        the config, else equal weights.
    gold
        Path of a file of ratings by people; 50 or more of a variant correct its scores. Default: none.
    gold_variant
        The variant whose answers people rated, if rows of the file name none; default: the control.
    missing
        Largest share of a variant's scores that may be missing, from 0 to 1; default: 0.1.
    holdout
        Share of the questions to hold out, above 0 and below 1: a gain must not be smaller on them than on the others.
        They are evenly spaced, always the same ones. Default: none.

    Returns
    -------
    CubeVerdict
        The verdict, with what was compared.

    Raises
    ------
    SweepError
        If the cube has no layer scores, or a name is not in it.
    StorageError
        If there is no cube.

    Examples
    --------
    >>> import evalcube as ec
    >>> found = ec.verdict("results/sweep.zarr", control="small", treatments=["large"])
    >>> found.verdict.verdict, found.exit_code
    ('CAUTIOUS', 1)
    """
    no_bare_text(treatments=treatments, tasks=tasks)
    _check_options(method, threshold, trivial, missing, holdout)
    cubes, dataset, plan, part, (declared, in_use), cautions = _open_cubes(cube)
    weights = declared if weights is None else weights
    models = _chosen_models(plan, ", ".join(cubes), part, in_use, control, treatments)
    for address in cubes:
        refuse_altered(address, [plan.evaluations[model].eval_id for model in models])
    names = [plan.labels[model] for model in models]
    rated = None if gold_variant is None else rated_variant(plan, gold_variant, names)
    data = _Data(dataset, plan, models, _chosen_tasks(plan, tasks, part), part)
    clusters = data.clusters()
    _refuse_small_parts(holdout, len(data.units), clusters)
    layers, readings = _scores(data, cubes[0])
    result = verdict(
        layers,
        names,
        data.units,
        judges=readings,
        judge_names=None if readings is None else [f"judge {judge.name}" for judge in plan.judges],
        due=data.due(),
        ok=data.runs(data.finished),
        entries=data.runs(data.planned),
        shares=data.shares(),
        clusters=clusters,
        method=method,
        grown=data.grown,
        threshold=threshold,
        trivial=trivial,
        missing=Thresholds.missing if missing is None else missing,
        holdout_ratio=0.0 if holdout is None else holdout,
        weights=None if weights is None else _weights(weights),
        gold=None if gold is None else scores_by_variant(gold, plan, data.units, data.places, names, rated),
        gold_variant=rated,
    )
    lost, asked = data.counted_readings()
    silent = describe_missing([judge.name for judge in plan.judges], names, lost, asked)
    return CubeVerdict(
        replace(result, notes=(*cautions, *result.notes, *data.notes(), *silent)),
        ", ".join(cubes),
        tuple(plan.task_names[row] for row in data.rows),
        len(data.units),
        int(asked.sum()),
        int((asked - lost).sum()),
    )


def _open_cubes(
    cube: CubeLike,
) -> tuple[list[str], Dataset, Plan, Selected | None, _Settings, tuple[str, ...]]:
    """Addresses, arrays, the plan, which part of it is meant, weights and control, and what to know of them."""
    if len(listed(cube)) == 1:
        address, part = address_and_part(only(cube))
        reader = Reader(address)
        trials, settings = read_trials(reader.cube), composite_settings(reader.notes)
        return [str(address)], trials, reader.plan, part, settings, ()
    from evalcube.flows.read.merged.dataset import open_joined  # with much that one cube needs nothing of

    cubes = [str(address) for address in need_addresses(cube)]
    joined = open_joined(cubes, trials=True)
    declared = [composite_settings(Reader(address).notes) for address in cubes]
    if all(own == declared[0] for own in declared):
        return cubes, joined.dataset, joined.plan, None, declared[0], joined.warnings
    text = "the cubes declare other weights of layers, or another control: here none of these holds"
    return cubes, joined.dataset, joined.plan, None, (None, None), (*joined.warnings, text)


def _check_options(
    method: Method | None, threshold: float, trivial: float, missing: float | None, holdout: float | None
) -> None:
    """Refuse a method that is none, and what is out of range."""
    if method is not None:
        checked_option("method", method, get_args(Method))
    tiny, below_1 = math.ulp(0.0), math.nextafter(1.0, 0.0)
    for name, value, low, high, words in (
        ("threshold", threshold, 1.0, 5.0, "a number from 1 to 5"),
        ("trivial", trivial, tiny, HIGHEST - LOWEST, "a number above 0 and up to 4"),
        ("missing", missing, 0.0, 1.0, "a share from 0 to 1"),
        ("holdout", holdout, tiny, below_1, "a share above 0 and below 1"),
    ):
        if value is not None or name in ("threshold", "trivial"):
            need_number(name, value)
        if value is not None and not low <= value <= high:
            raise SweepError(f"`{name}`: must be {words}, got {value:g}")


class _Data:
    """The chosen part of a cube as the verdict takes it: arrays (run, variant, unit, ...)."""

    def __init__(
        self, dataset: Dataset, plan: Plan, models: Sequence[int], rows: Sequence[int], part: Selected | None
    ) -> None:
        self._part = dataset.isel(model=list(models), task=list(rows))
        self.plan, self.rows = plan, rows
        sizes = self._part.sizes
        status = self.array("status")
        self.planned: BoolArray = planned_mask(self._part)
        """Shape (variant, task, params, trial, repeat), as of `finished`."""
        if part is not None:
            self.planned &= part.of_points(plan)[list(rows), :, None, None]
            self.planned &= part.of_numbers(slice(0, sizes["trial"]), slice(0, sizes["repeat"]))
        self.finished: BoolArray = self.planned & np.isin(status, FINISHED)
        asked = self.planned.any(axis=4)
        # What only some were to answer, since they were measured further, is no question that the others lack.
        self._mask: BoolArray = np.asarray(asked.all(axis=0))
        self.unshared = int(asked.any(axis=0).sum() - self._mask.sum())
        rated = self._mask & np.asarray(members(self._part).any(axis=0))[..., np.newaxis]
        self.unrated = int((self._mask & ~rated).sum()) if rated.any() else 0
        self._mask = rated if rated.any() else self._mask
        base = plan.base[rows]
        self.grown = bool(((self.planned.sum(axis=(3, 4)) > base) & (base > 0)).any())
        """Whether more was asked than in the first plan."""
        self.places = [(rows[t], slot, index) for t, slot, index in np.argwhere(self._mask).tolist()]
        """Task, slot and trial of each unit."""
        self.units = [f"{plan.task_names[row]}/{slot}/{index}" for row, slot, index in self.places]
        if not self.finished[:, self._mask].any():
            remedy = "Run the sweep; and compare answers to the same data file, params, version and seed"
            raise SweepError("no question that all variants are asked has an answer yet", remedy)

    def array(self, name: str) -> npt.NDArray[Any]:
        """An array of the part."""
        return np.asarray(self._part[name].values)

    def runs(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """An array (variant, task, params, trial, repeat, ...) as (run, variant, unit, ...)."""
        return np.moveaxis(array[:, self._mask], 2, 0)

    def shares(self) -> Floats:
        """Weight of each unit, by which the mean is that over tasks of a task's points as in the first plan."""
        there = self._mask.sum(axis=-1)
        weights = task_weights(base_design(self._part)[0], there > 0) / np.maximum(there, 1)
        return np.asarray(np.broadcast_to(weights[..., np.newaxis], self._mask.shape)[self._mask])

    def clusters(self) -> Clusters | None:
        """Number of the cluster of each unit, 0 where it has none; None where no unit has one."""
        numbers = all_clusters(self._part)
        return None if numbers is None else numbers.reshape(self._mask.shape)[self._mask]

    def readings(self) -> Floats | None:
        """Judge readings (run, variant, unit, judge, repeat); None without judges."""
        there = "judge_readings" in self._part
        return self.runs(self.array("judge_readings").astype(np.float64)) if there else None

    def due(self) -> BoolArray:
        """Which layers (unit, layer) a unit is to have even where no variant has it: that of judges."""
        points = judged_points([self.plan.tasks[row] for row in self.rows], self._mask.shape[1])
        judged = np.broadcast_to(points[..., np.newaxis], self._mask.shape)[self._mask]
        return np.asarray(judged[:, np.newaxis] & (np.array(LAYERS) == "judge"))

    def counted_readings(self) -> tuple[npt.NDArray[np.int_], npt.NDArray[np.int_]]:
        """How many judge readings have no score, and how many there should be, shape (variant, judge)."""
        finished = self.finished & self._mask[..., np.newaxis]
        due = due_readings([self.plan.tasks[row] for row in self.rows], self.plan.judges, finished)
        lost = due & np.isnan(self.array("judge_readings")) if due.size else due
        return lost.sum(axis=(1, 2, 3, 4, 6)), due.sum(axis=(1, 2, 3, 4, 6))

    def notes(self) -> list[str]:
        """What a reader of the verdict should know of the data."""
        notes = []
        if self.unshared:
            notes.append(f"{self.unshared} questions that only some of the variants were asked are left out")
        if self.unrated:
            notes.append(
                f"{self.unrated} questions of points in no tier are left out, as compare leaves them out"
            )
        left = int((self.planned & ~self.finished).sum())
        if left:
            imported = all(evaluation.is_imported for evaluation in self.plan.evaluations)
            remedy = "the logs lack them" if imported else "run the sweep again, and compare then"
            notes.append(
                f"{left} planned trials are not finished: {remedy}. Differences may deviate a little from those of "
                "`compare` and `gate`, which pair answers one by one"
            )
        if self.grown:
            notes.append("more was asked than the first run planned, so this cube counts as looked at before")
        repeated = int(((self.array("duplicate") == 1) & self._mask).sum())
        if repeated:
            notes.append(
                f"{repeated} of {len(self.units)} questions repeat an earlier one, and count as new here"
            )
        return notes


def _scores(data: _Data, cube: str) -> tuple[Floats, Floats | None]:
    """Scores of the layers and of judges; some off the scale show that the cube is damaged, or made to deceive."""
    layers = data.runs(np.stack([data.array(name).astype(np.float64) for name in LAYERS], axis=-1))
    readings = data.readings()
    for name, values in (("the layers", layers), ("judge_readings", readings)):
        if values is not None and ((values < LOWEST) | (values > HIGHEST)).any():
            raise SweepError(
                f"cube '{cube}': {name} hold scores that are not from {LOWEST:g} to {HIGHEST:g}",
                f"See what is damaged: evalcube cube verify {cube}",
            )
    return layers, readings


def _refuse_small_parts(holdout: float | None, units: int, clusters: Clusters | None) -> None:
    """Refuse a share of the questions, or of their clusters, that leaves a part too small to be compared."""
    drawn, noun = units, "questions"
    if clusters is not None:
        drawn, noun = len(np.unique(cluster_units(clusters))), "clusters"
    if holdout is not None and split_holdout(range(drawn), holdout) is None:
        raise SweepError(
            f"`holdout`: {holdout:g} of {drawn} {noun} leaves one part fewer than {MIN_PART}",
            "Compare more questions, or leave it out",
        )


def _weights(weights: Mapping[str, float]) -> list[float]:
    """Weights in the order of the layers."""
    with reported("`weights`", LayerWeights):
        checked = LayerWeights.model_validate(dict(weights)).model_dump()
    return [checked[name] / max(checked.values()) for name in LAYERS]


def _chosen_models(
    plan: Plan,
    cube: str,
    part: Selected | None,
    in_use: str | None,
    control: str | None,
    treatments: Sequence[str],
) -> list[int]:
    """The evaluations that are compared, first that in use: the control that is given, or that of the config."""
    here = list(range(len(plan.labels))) if part is None else np.flatnonzero(part.of_models(plan)).tolist()
    control = in_use if control is None else control
    if in_use is not None and not treatments:
        own, in_place = (plan.evaluation_index(name, "control") for name in (in_use, str(control)))
        # The config says which is in use: all others may replace it, as in the report.
        treatments = [plan.labels[number] for number in here if number != own == in_place]
    if not plan.layers:
        raise SweepError(
            f"cube '{cube}' has no layer scores: its sweep declares neither assertions nor a rubric",
            "Declare some in the config, and run it with another cube, to which the answers come from the cache; or "
            "decide by right and wrong answers alone: `evalcube gate POLICY CUBE`, with the margins that you state",
        )
    choices = ", ".join(f"{number} = {plan.labels[number]}" for number in here)
    if control is None and len(here) > 1:
        raise SweepError("`control` is missing: say which variant is in use", f"Give one of: {choices}")
    models = [here[0] if control is None else plan.evaluation_index(control, "control")]
    models += [plan.evaluation_index(name, "treatments") for name in treatments]
    for model in models:
        if model not in here or models.count(model) > 1:
            fault = "is given twice" if model in here else "is not in the part that was selected"
            raise SweepError(f"'{plan.labels[model]}' {fault}", f"Give others of: {choices}")
    return models


def _chosen_tasks(plan: Plan, wanted: Sequence[str], part: Selected | None) -> list[int]:
    there = plan.valid() if part is None else part.of_points(plan)
    graded = (row for row, task in enumerate(plan.tasks) if task.graded and there[row].any())
    rows = {plan.task_names[row]: row for row in graded}
    for name in wanted:
        if name not in rows:
            fault = "has no assertions and no rubric" if name in plan.task_names else "is not in this cube"
            raise SweepError(f"`tasks`: '{name}' {fault}", f"Give one of: {', '.join(rows)}")
    return [row for name, row in rows.items() if not wanted or name in wanted]


def shown_standing(reader: Reader) -> tuple[ShownVerdict | None, str]:
    """Return the verdict on all evaluations of a cube against its declared control, and why there is none.

    Without a declared control there is a verdict on a single evaluation alone: nobody asked for a decision on others.
    """
    plan = reader.plan
    control = composite_settings(reader.notes)[1]
    if not plan.layers or (control is None and (len(plan.labels) > 1 or plan.has_imported)):
        return None, ""
    try:
        index = 0 if control is None else plan.evaluation_index(control, "composite.control")
        treatments = [str(number) for number in range(len(plan.labels)) if number != index]
        result = cube_verdict(reader.cube.url, str(index), treatments)
    except (SweepError, CubeDamagedError) as error:
        # Nothing is measured yet, the control is not in this part of a cube, or what is stored contradicts itself.
        return None, f"There is no verdict: {error.message}."
    ids = {label: row.eval_id for label, row in zip(plan.labels, plan.evaluations, strict=True)}
    return shown_verdict(result.verdict, ids), ""
