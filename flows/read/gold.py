"""Read files of ratings by people, by which judges are compared and corrected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalcube._arrays import Dataset
from evalcube.flows.config.secrecy import show
from evalcube.flows.cube_like import CubeLike, address_and_part, listed
from evalcube.flows.errors import SweepError, need_path
from evalcube.flows.plan.plan import Plan, carries
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.selection import OpenPart
from evalcube.stages.analyze.labelled.additions import PEOPLE_RIGHT, PEOPLE_SCORE
from evalcube.stages.generate.dataset.files import file_digest, open_table
from evalcube.stages.generate.errors import TaskError

LARGEST_FILE = 50_000_000
"""Bytes."""
_QUESTION = ("model", "task", "params", "trial")
_FORM = (
    'Write a line for each rating, such as {"unit": "qa/0/3", "score": 4}; or a CSV with columns unit, score'
)


@dataclass(frozen=True)
class Ratings:
    """What people say of answers, by variant ("" where a row names none) and unit."""

    scores: Mapping[str, Mapping[str, float]]
    """From 1 to 5."""
    right: Mapping[str, Mapping[str, float]]
    """1 for a right answer, 0 for a wrong one."""


def read_gold(path: str | Path, ids: Mapping[str, list[str]]) -> Ratings:
    """Ratings by people."""
    scores: dict[str, dict[str, float]] = {}
    right: dict[str, dict[str, float]] = {}
    seen = set()
    path = need_path("gold", path)
    for line, row in _rows(Path(path)):
        spot = f"{path}:{line}"
        rating = _rating(row, spot)
        unit = rating.unit or _of_id(rating.id, ids, spot)
        if (rating.variant, unit) in seen:
            raise SweepError(f"{spot}: unit {show(unit)} is rated twice", "Keep one rating, such as the mean")
        seen.add((rating.variant, unit))
        for ratings, value in ((scores, rating.score), (right, rating.correct)):
            if value is not None:
                ratings.setdefault(rating.variant, {})[unit] = float(value)
    return Ratings(scores, right)


def rated_by_people(opened: OpenPart, cube: CubeLike, gold: str | Path) -> OpenPart:
    """The part with what people say of its answers."""
    if len(cubes := listed(cube)) > 1:
        raise SweepError(
            "`gold`: ratings are of the answers of one cube, and several are given", "Give one cube"
        )
    return replace(opened, arrays=with_ratings(opened.dataset, Reader(address_and_part(cubes[0])[0]), gold))


def with_ratings(dataset: Dataset, reader: Reader, path: str | Path) -> Dataset:
    """Return a cube's dataset with ``people_score`` and ``people_right``, by model, task, params and trial."""
    plan = reader.plan
    points = {
        entry.cell.id: f"{label}/{slot}"
        for task, label in zip(plan.tasks, plan.task_names, strict=True)
        for slot, entry in enumerate(task.cells)
    }
    trials = dataset.sizes["trial"]
    every = (
        (row, slot, index)
        for row, task in enumerate(plan.tasks)
        for slot, entry in enumerate(task.cells)
        for index in range(min(entry.cell.size or trials, trials))
    )
    gold = read_gold(path, units_by_id(plan, every))
    shape = tuple(dataset.sizes[name] for name in _QUESTION)
    rows = {str(eval_id): number for number, eval_id in enumerate(dataset["eval_id"].values.tolist())}
    places = {
        points[cell]: (t, slot)
        for t, line in enumerate(dataset["cell_id"].values.tolist())
        for slot, cell in enumerate(line)
        if cell in points
    }
    arrays = {}
    for name, ratings in ((PEOPLE_SCORE, gold.scores), (PEOPLE_RIGHT, gold.right)):
        values = np.full(shape, np.nan, dtype=np.float32)
        for variant, units in ratings.items():
            row = rows.get(plan.evaluations[_variant(reader, variant, path)].eval_id)
            for unit, value in units.items():
                point, _, trial = unit.rpartition("/")
                in_range = trial.isdecimal() and len(trial) <= len(str(shape[-1])) and int(trial) < shape[-1]
                if not in_range or point not in places:
                    raise SweepError(
                        f"{path}: unit {show(unit)} is not in this part of the cube",
                        "Units are named task/slot/trial, as in `evalcube show`; or give the data set's id",
                    )
                if row is not None:
                    values[(row, *places[point], int(trial))] = value
        arrays[name] = (_QUESTION, values)
    return dataset.assign(arrays)


def _variant(reader: Reader, name: str, path: str | Path) -> int:
    labels = reader.plan.labels
    if not name and len(labels) > 1:
        raise SweepError(
            f"{path}: rows do not name the `variant` whose answer was rated",
            f"Write one of: {', '.join(labels)}",
        )
    return reader.plan.evaluation_index(name or 0, "variant")


def units_by_id(plan: Plan, places: Iterable[tuple[int, int, int]]) -> dict[str, list[str]]:
    """Units by the id that a data set gives their row, of some tasks, slots and trials."""
    units: dict[str, list[str]] = {}
    for row, slot, index in places:
        cell = plan.tasks[row].cells[slot].cell
        if carries(cell, "id"):
            name = str(cell.trial(index).extras.get("id", ""))
            units.setdefault(name, []).append(f"{plan.task_names[row]}/{slot}/{index}")
    return units


def scores_by_variant(
    path: str | Path,
    plan: Plan,
    units: Sequence[str],
    places: Iterable[tuple[int, int, int]],
    names: Sequence[str],
    rated: str | None,
) -> dict[str, Mapping[str, float]]:
    """Scores by variant and unit, of the variants here; those of rows that name none are of `rated`, or the first."""
    named: dict[str, dict[str, float]] = {}
    gold = read_gold(path, units_by_id(plan, places)).scores
    for name, scores in gold.items():  # one variant may have rows that name it, in several ways, and others
        label = plan.labels[plan.evaluation_index(name, "variant")] if name else rated or names[0]
        named.setdefault(label, {}).update(scores)
    scored = [unit for scores in named.values() for unit in scores]
    if set(units).isdisjoint(scored):
        first = scored[0].removeprefix("id:") if scored else "none has a score"
        raise SweepError(
            f"`gold`: none of the {len(scored)} rated units is compared here: '{first}' is not, for one",
            f"Units are named task/slot/trial, such as {units[0]}; or give the data set's id",
        )
    return {name: scores for name, scores in named.items() if name in names}


def rated_variant(plan: Plan, variant: str, names: Sequence[str]) -> str:
    """The label of the variant whose answers people rated, which is one of those compared."""
    rated = plan.labels[plan.evaluation_index(variant, "gold_variant")]
    if rated not in names:
        raise SweepError(
            f"`gold_variant`: '{variant}' is not compared here", f"Give one of: {', '.join(names)}"
        )
    return rated


class _Rating(BaseModel):
    """A row of the file."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    unit: str = ""
    id: str = ""
    variant: str = ""
    score: float | None = Field(default=None, ge=1, le=5)
    correct: bool | None = None


def _rating(row: object, spot: str) -> _Rating:
    if not isinstance(row, dict):
        raise SweepError(f"{spot}: is no JSON object", _FORM)
    fields = {name: value.strip() if isinstance(value, str) else value for name, value in row.items() if name}
    if isinstance(fields.get("score"), bool):
        raise SweepError(f"{spot}: score: must be a number, got {show(fields['score'])}", _FORM)
    filled = {name: value for name, value in fields.items() if value not in ("", None)}
    try:
        rating = _Rating.model_validate(filled)
    except ValidationError as error:
        first = error.errors()[0]
        raise SweepError(
            f"{spot}: {first['loc'][0]}: {first['msg']}, got {show(first['input'])}", _FORM
        ) from None
    if rating.score is None and rating.correct is None:
        raise SweepError(f"{spot}: has neither score nor correct", _FORM)
    if not rating.unit and not rating.id:
        raise SweepError(f"{spot}: has neither unit nor id", _FORM)
    return rating


def _of_id(name: str, ids: Mapping[str, list[str]], spot: str) -> str:
    units = ids.get(name, [])
    if len(units) > 1:
        raise SweepError(
            f"{spot}: id {show(name)} stands for {len(units)} units, such as {units[0]} and {units[1]}",
            "Name the unit, or choose one task with `tasks`",
        )
    return units[0] if units else f"id:{name}"


def _rows(path: Path) -> Iterator[tuple[int, object]]:
    """The rows of a file with their line numbers."""
    if path.exists() and path.stat().st_size > LARGEST_FILE:
        raise SweepError(f"{path}: is larger than {LARGEST_FILE:,} bytes", "Give ratings only")
    form = "csv" if path.suffix.lower() == ".csv" else "jsonl"
    try:
        table = open_table(str(path), form, file_digest(str(path)))
    except TaskError as error:
        raise SweepError(f"cannot be read: {error.message}", _FORM) from None
    for number in range(len(table)):
        row = None
        with suppress(ValueError):
            row = table.row(number)
        yield table.line(number) or number + 1, row
