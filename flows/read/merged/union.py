"""What several sweeps measure together: evaluations and points of their descriptions, joined by identity. Pure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalcube.flows.errors import SweepError
from evalcube.flows.plan.evaluations import Evaluation, Judge
from evalcube.flows.plan.spec import SPEC_FORMAT, PointSpec, Spec, TaskSpec, in_short

_NAMING = ("eval_id", "model")
_EXACT = 2**53


@dataclass(frozen=True)
class Place:
    """Where what one cube holds stands in the union, or among what several have; -1 where it does not."""

    models: tuple[int, ...]
    """Of each of its evaluations."""
    tasks: tuple[int, ...]
    slots: tuple[tuple[int, ...], ...]
    """Of each point, by its task."""
    judges: tuple[int, ...]


@dataclass(frozen=True)
class Union:
    """The description of all, its axes in the order of what people call things, and where each cube stands in it."""

    spec: dict[str, Any]
    """As in a cube's attributes."""
    places: tuple[Place, ...]
    notes: tuple[str, ...] = ()
    """What a user should know, a sentence each."""


@dataclass(frozen=True)
class Rename:
    """Another name for a model or a task of one cube."""

    cube: str
    label: str
    new: str


def read_renames(texts: Iterable[str], cubes: Sequence[str]) -> list[Rename]:
    """New names as they are given on the command line.

    Examples
    --------
    >>> read_renames(["s3://team/b.zarr:qwen:7b=qwen-b"], ["a.zarr", "s3://team/b.zarr"])
    [Rename(cube='s3://team/b.zarr', label='qwen:7b', new='qwen-b')]
    """
    renames = []
    for text in texts:
        cube = max((name for name in cubes if text.startswith(f"{name}:")), key=len, default=None)
        label, equals, new = text[len(cube or "") + 1 :].rpartition("=")
        if cube is None or not equals or not label or not new.strip() or not new.isprintable():
            raise SweepError(
                f"`rename`: '{text}' is no new name for something in one of the cubes",
                f"Write it like {cubes[-1]}:LABEL=NEW",
            )
        renames.append(Rename(cube, label, new.strip()))
    return renames


def rename_labels(spec: Spec, cube: str, renames: Iterable[Rename]) -> Spec:
    """A description with the new names of a cube's models and tasks."""
    for rename in renames:
        if rename.cube != cube:
            continue
        models = [row.model for row in spec.evaluations]
        tasks = [task.label for task in spec.tasks]
        if rename.label not in (*models, *tasks):
            labels = ", ".join(dict.fromkeys((*models, *tasks)))
            raise SweepError(
                f"`rename`: cube '{cube}' has neither a model nor a task '{rename.label}'",
                f"It has: {labels}",
            )
        for field, name in (("evaluations", "model"), ("tasks", "label")):
            rows = [
                row.model_copy(update={name: rename.new}) if getattr(row, name) == rename.label else row
                for row in getattr(spec, field)
            ]
            spec = spec.model_copy(update={field: rows})
    return spec


def unite(
    specs: Sequence[Spec], names: Sequence[str], prices: Sequence[Sequence[tuple[float, float]]]
) -> Union:
    """What several sweeps measure together."""
    seeds = [spec.seed for spec in specs]
    for name, seed in zip(names, seeds, strict=True):
        if seed != seeds[0]:
            raise SweepError(
                f"cube '{name}' has seed {seed}, and cube '{names[0]}' has {seeds[0]}: they have no question in common",
                "Merge cubes of one seed",
            )
    notes: dict[str, None] = {}
    contradictions: list[tuple[str, str]] = []
    evaluations = _evaluations(specs, names, notes, contradictions)
    labels = sorted({task.label for spec in specs for task in spec.tasks})
    tasks = [_task(label, specs, names, contradictions) for label in labels]
    if contradictions:
        renames = " --rename ".join(dict.fromkeys(rename for _, rename in contradictions))
        raise SweepError(
            f"the cubes mean other things by the same names: {'; '.join(line for line, _ in contradictions)}",
            f"Give other names: evalcube merge NEW.zarr {' '.join(names)} --rename {renames}",
        )
    judges = _judges(specs, names)
    asserted = _asserted_prices(specs, names, prices, evaluations)
    spec: dict[str, Any] = {
        "format": SPEC_FORMAT,
        "seed": seeds[0],
        "evaluations": [row.spec() for row in evaluations],
        "tasks": [task.spec() for task in tasks],
        **({"judges": [judge.spec() for judge in judges]} if judges else {}),
        **({"asserted_prices": [list(pair) for pair in asserted]} if asserted else {}),
    }
    return Union(spec, tuple(_place(own, evaluations, tasks, judges) for own in specs), tuple(notes))


def given_name(url: str) -> str:
    """The name of a cube, and nothing of where it is."""
    return url.rstrip("/\\").replace("\\", "/").rpartition("/")[2].removesuffix(".zarr")


def _renaming(cube: str, label: str) -> str:
    """What gives something of a cube another name."""
    return f"{cube}:{label}={label}-{given_name(cube)}"


def _evaluations(
    specs: Sequence[Spec], names: Sequence[str], notes: dict[str, None], contradictions: list[tuple[str, str]]
) -> list[Evaluation]:
    by_id: dict[str, Evaluation] = {}
    where: dict[str, str] = {}
    for spec, name in zip(specs, names, strict=True):
        for row in spec.evaluations:
            earlier = by_id.setdefault(row.eval_id, row)
            first = where.setdefault(row.eval_id, name)
            if _request_fields(earlier) != _request_fields(row):
                raise SweepError(
                    f"evaluation '{earlier.label}' of cube '{first}' and '{row.label}' of cube '{name}' have the same "
                    "id and send other requests: one of the two descriptions is not by evalcube",
                    "Find out who made them",
                )
            if earlier.label != row.label:
                labels = sorted((earlier.label, row.label))
                notes[
                    f"'{labels[0]}' and '{labels[1]}' are one evaluation, which is called '{labels[0]}'."
                ] = None
                by_id[row.eval_id] = min(earlier, row, key=lambda evaluation: evaluation.label)
    ordered = sorted(by_id.values(), key=lambda row: (*_label(row), row.eval_id))
    for _, group in itertools.groupby(ordered, key=_label):
        earlier, *later = sorted(group, key=lambda row: names.index(where[row.eval_id]))
        for row in later:
            home, name = where[earlier.eval_id], where[row.eval_id]
            differ = _differences(_request_fields(earlier), _request_fields(row))
            line = f"'{row.label}' has {differ} in '{home}' / '{name}'"
            contradictions.append((line, _renaming(name, row.model)))
    return ordered


def _differences(ours: Any, theirs: Any, path: str = "") -> str:  # noqa: ANN401 - any JSON value
    """What differs between two descriptions, such as ``temperature 0 / 0.7``."""
    if not (isinstance(ours, Mapping) and isinstance(theirs, Mapping)):
        return f"{path} {in_short(ours)} / {in_short(theirs)}"
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return ", ".join(_differences(ours.get(key), theirs.get(key), key) for key in keys)


def _label(row: Evaluation) -> tuple[str, str, str]:
    return row.model, row.template.name, row.sampler.name


def _request_fields(row: Evaluation) -> dict[str, Any]:
    """What makes the requests of an evaluation, without the names that people gave."""
    fields = {name: value for name, value in row.spec().items() if name not in _NAMING}
    return {**fields, "template": row.template.source, "sampler": row.sampler.params}


def _task(
    label: str, specs: Sequence[Spec], names: Sequence[str], contradictions: list[tuple[str, str]]
) -> TaskSpec:
    """All points that any of the cubes has of a task."""
    pairs = [
        (task, name)
        for spec, name in zip(specs, names, strict=True)
        for task in spec.tasks
        if task.label == label
    ]
    first, home = pairs[0]
    points: dict[str, list[PointSpec]] = {}
    reader: Mapping[str, Any] = {}
    for task, name in pairs:
        reader = reader or task.reader
        for part, ours, theirs in (
            ("generators", [first.name, first.version], [task.name, task.version]),
            ("assertions", first.assertions, task.assertions),
            ("rubrics", first.rubric, task.rubric),
            ("readers", reader, task.reader or reader),
        ):
            if ours != theirs:
                differ = f"{part} {in_short(ours)} / {in_short(theirs)}"
                line = f"task '{label}' has {differ} in '{home}' / '{name}'"
                contradictions.append((line, _renaming(name, label)))
        for point in task.points:
            points.setdefault(point.cell_id, []).append(point)
    joined = sorted(map(_point, points.values()), key=lambda point: (_natural(point.params), point.cell_id))
    return first.model_copy(update={"points": joined, "reader": reader})


def _point(same: Sequence[PointSpec]) -> PointSpec:
    """One point, as several cubes have it: in all tiers, with its greatest weight, and older if none still asks it."""
    params = min((point.params for point in same), key=lambda params: json.dumps(params, sort_keys=True))
    tiers = sorted({tier for point in same for tier in point.tiers})
    base, older = max(point.base for point in same), all(point.older for point in same)
    return PointSpec(cell_id=same[0].cell_id, params=params, tiers=tiers, base=base, older=older)


def _natural(params: Mapping[str, Any]) -> tuple[Hashable, ...]:
    """Params in an order in which numbers count."""
    return tuple(
        (name, 0, float(value), "")
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _EXACT
        else (name, 1, 0.0, json.dumps(value, sort_keys=True))
        for name, value in sorted(params.items())
    )


def same_judges(specs: Sequence[Spec]) -> bool:
    """Whether all cubes that have something to judge have the same judges, in any order."""
    judging = [{judge.name: judge for judge in spec.judges} for spec in specs if spec.judges]
    return all(judges == judging[0] for judges in judging)


def _judges(specs: Sequence[Spec], names: Sequence[str]) -> list[Judge]:
    """The judges of all cubes that have something to judge: the same ones, in any order."""
    judging = [(spec, name) for spec, name in zip(specs, names, strict=True) if spec.judges]
    for spec, name in judging[1:]:
        first, home = judging[0]
        if {judge.name: judge for judge in spec.judges} != {judge.name: judge for judge in first.judges}:
            raise SweepError(
                f"outputs are rated by other judges in cube '{name}' ({_judge_names(spec)}) than in cube '{home}' "
                f"({_judge_names(first)}): their scores are no scores of the same",
                "Have the judges of both rate both, by running each with the same `judges:`, and merge then",
            )
    return sorted(judging[0][0].judges, key=lambda judge: judge.name) if judging else []


def _judge_names(spec: Spec) -> str:
    return ", ".join(judge.name for judge in spec.judges)


def _asserted_prices(
    specs: Sequence[Spec],
    names: Sequence[str],
    prices: Sequence[Sequence[tuple[float, float]]],
    evaluations: Sequence[Evaluation],
) -> list[tuple[float, float]]:
    """The prices that assertions went by; empty if none asks for any."""
    if not any(spec.asserted_prices for spec in specs):
        return []
    by_id: dict[str, tuple[tuple[float, float], str]] = {}
    # Those that assertions went by come first: the others are only what an evaluation cost.
    for asserted in (True, False):
        for spec, name, own in zip(specs, names, prices, strict=True):
            if bool(spec.asserted_prices) is not asserted:
                continue
            rows = [(pair[0], pair[1]) for pair in spec.asserted_prices] if asserted else own
            for row, pair in zip(spec.evaluations, rows, strict=True):
                price, home = by_id.setdefault(row.eval_id, (pair, name))
                if asserted and price != pair:
                    raise SweepError(
                        f"assertions about the cost of '{row.label}' went by other prices in cube '{name}' than in "
                        f"cube '{home}'",
                        "Run one of them with the prices of the other",
                    )
    return [by_id[row.eval_id][0] for row in evaluations]


def _place(
    spec: Spec, evaluations: Sequence[Evaluation], tasks: Sequence[TaskSpec], judges: Sequence[Judge]
) -> Place:
    rows = {row.eval_id: index for index, row in enumerate(evaluations)}
    labels = {task.label: index for index, task in enumerate(tasks)}
    slots = [{point.cell_id: index for index, point in enumerate(task.points)} for task in tasks]
    order = {judge.name: index for index, judge in enumerate(judges)}
    return Place(
        tuple(rows[row.eval_id] for row in spec.evaluations),
        tuple(labels[task.label] for task in spec.tasks),
        tuple(
            tuple(slots[labels[task.label]][point.cell_id] for point in task.points) for task in spec.tasks
        ),
        tuple(order[judge.name] for judge in spec.judges),
    )
