"""The part of a cube that is copied: which evaluations and points, and what describes them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evalcube.flows.errors import refused
from evalcube.flows.plan.filters import checked_where
from evalcube.flows.read.design import with_design
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.merged.union import Place, Union
from evalcube.flows.state.records import PACKAGES
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.selection import keys, select
from evalcube.stages.generate.dataset.hub.address import bare_name, shareable


def copied_part(url: str, where: Sequence[str] = ()) -> Joined:
    """The part of a cube that is meant, as if it was merged alone; all of it without a condition.

    Parameters
    ----------
    url
        Address of the cube.
    where
        Conditions ``NAME=VALUE``, as all commands take them.

    Raises
    ------
    SweepError
        If a name or value is unknown, or nothing is left.
    """
    source = Input(url)
    dataset = with_design(source.cube.summary())
    conditions = checked_where(where, keys(dataset), dataset)
    with refused():
        chosen = select(dataset, conditions, keys(dataset))
    tiers = {axes.names(dataset, "tier")[tier] for tier in chosen.tiers} if "tier" in conditions else None
    place = Place(
        _numbered(chosen.models),
        _numbered(chosen.cells.any(axis=1)),
        tuple(
            _numbered(row[: len(task.points)])
            for row, task in zip(chosen.cells, source.spec.tasks, strict=True)
        ),
        tuple(range(len(source.spec.judges))),
    )
    return Joined([source], part=Union(_described(source.cube.attrs["spec"], place, tiers), (place,)))


def is_whole(part: Joined) -> bool:
    """Whether all points of its tasks are in a part, with all of their tiers: a config cannot leave some out."""
    there = {task.label: task.points for task in part.inputs[0].spec.tasks}
    return all(
        [(point.cell_id, point.tiers) for point in there[task["label"]]]
        == [(point["cell_id"], point["tiers"]) for point in task["points"]]
        for task in part.union.spec["tasks"]
    )


def _numbered(chosen: Any) -> tuple[int, ...]:  # noqa: ANN401 - an array of booleans
    """The places of what is chosen among one another; -1 for the rest."""
    return tuple(np.where(chosen, np.cumsum(chosen) - 1, -1).tolist())


def _described(spec: Mapping[str, Any], place: Place, tiers: set[str] | None) -> dict[str, Any]:
    """The description of a part, its data files named without their folders."""
    found: dict[str, Any] = copy.deepcopy(dict(spec))
    for name in ("evaluations", "asserted_prices"):
        if found.get(name):
            found[name] = _kept(found[name], place.models)
    found["tasks"] = _kept(found["tasks"], place.tasks)
    for task, slots in zip(found["tasks"], _kept(place.slots, place.tasks), strict=True):
        task["points"] = _kept(task["points"], slots)
        for point in task["points"]:
            if tiers is not None:
                point["tiers"] = [tier for tier in point["tiers"] if tier in tiers]
            point["params"] = shareable(point["params"])
    return found


def _kept(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [value for value, place in zip(values, places, strict=True) if place >= 0]


UNPUBLISHED = "https://unpublished.invalid/v1"
"""In the place of an endpoint: a name that leads nowhere, so that whoever goes on has to say whom to ask."""

_KEPT = "name seed precision trials repeats templates samplers degree density tasks judges composite views".split()
_OF_MODELS = "name model revision api stream prices facets simulate measured".split()
_HARMLESS = ("sim:", "local:smollm2")


def shared_notes(notes: Mapping[str, Any], part: Joined) -> dict[str, Any]:
    """The notes of a copy: a name, and the config as far as it says what is measured.

    Parameters
    ----------
    notes
        Of the source.
    part
        What was copied. A config cannot say that some points of a task are left out: then there is none in the copy.
    """
    found: dict[str, Any] = {"name": notes["name"]} if isinstance(notes.get("name"), str) else {}
    if isinstance(notes.get(PACKAGES), Mapping):
        found[PACKAGES] = {str(task): str(package) for task, package in notes[PACKAGES].items()}
    config = notes.get("config")
    if not isinstance(config, Mapping) or not is_whole(part):
        return found
    kept = {name: config[name] for name in _KEPT if name in config}
    rows = part.plan.evaluations
    measured = {row.model for row in rows}
    judging = {str(judge.get("model")) for judge in _mappings(config.get("judges"))}
    models = []
    for model in _mappings(config.get("models")):
        name = str(model.get("name"))
        if name not in measured | judging:
            continue
        one = {name: model[name] for name in _OF_MODELS if name in model}
        endpoint = model.get("endpoint", "")
        endpoint = str(endpoint[0] if isinstance(endpoint, list) and endpoint else endpoint)
        simulated = "sim:" if endpoint.startswith("sim:") else UNPUBLISHED
        one["endpoint"] = endpoint if endpoint in _HARMLESS else simulated
        models.append(one | ({} if name in measured else {"measured": False}))
    tasks = kept.get("tasks")
    labels = {task.label for task in part.plan.tasks}
    if isinstance(tasks, Mapping):
        kept["tasks"] = {label: _without_folders(task) for label, task in tasks.items() if label in labels}
    rules = [
        {"models": [row.model], "templates": [row.template.name], "samplers": [row.sampler.name]}
        for row in rows
    ]
    return found | {"config": {**kept, "models": models, "evaluations": rules}}


def _mappings(noted: object) -> list[Mapping[str, Any]]:
    """The mappings of a list; none of what is no list: anyone may have noted it."""
    return [one for one in noted if isinstance(one, Mapping)] if isinstance(noted, list) else []


def _without_folders(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same with data files named without their folders."""
    if isinstance(value, Mapping):
        return {
            name: bare_name(item)
            if name in ("file", "include_path") and isinstance(item, str)
            else _without_folders(item)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_without_folders(item) for item in value]
    return value
