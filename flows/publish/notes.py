"""What a copy says of the config that it was made with: what is measured, never whom to ask or where things lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from evalcube.flows.merge.joined import Joined
from evalcube.flows.plan.records import PACKAGES
from evalcube.flows.publish.part import is_whole

UNPUBLISHED = "https://unpublished.invalid/v1"
"""In the place of an endpoint: a name that leads nowhere, so that whoever goes on has to say whom to ask."""

_KEPT = (
    "name",
    "seed",
    "precision",
    "trials",
    "repeats",
    "templates",
    "samplers",
    "degree",
    "density",
    "tasks",
    "judges",
    "composite",
    "views",
)
_OF_MODELS = ("name", "model", "revision", "api", "stream", "prices", "facets", "simulate", "measured")
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
    judging = {judge.get("model") for judge in config.get("judges") or () if isinstance(judge, Mapping)}
    models = []
    for model in config.get("models") or ():
        if not isinstance(model, Mapping) or model.get("name") not in measured | judging:
            continue
        one = {name: model[name] for name in _OF_MODELS if name in model}
        endpoint = model.get("endpoint", "")
        endpoint = str(endpoint[0] if isinstance(endpoint, list) and endpoint else endpoint)
        simulated = "sim:" if endpoint.startswith("sim:") else UNPUBLISHED
        one["endpoint"] = endpoint if endpoint in _HARMLESS else simulated
        models.append(one | ({} if model.get("name") in measured else {"measured": False}))
    tasks = kept.get("tasks")
    labels = {task.label for task in part.plan.tasks}
    if isinstance(tasks, Mapping):
        kept["tasks"] = {label: _without_folders(task) for label, task in tasks.items() if label in labels}
    rules = [
        {"models": [row.model], "templates": [row.template.name], "samplers": [row.sampler.name]}
        for row in rows
    ]
    return found | {"config": {**kept, "models": models, "evaluations": rules}}


def _without_folders(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same with data files named without their folders."""
    if isinstance(value, Mapping):
        return {
            name: PurePath(item).name if name == "file" and isinstance(item, str) else _without_folders(item)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_without_folders(item) for item in value]
    return value
