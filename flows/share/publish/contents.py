"""What a publication has of a cube: all of its results, and of its notes what others may know."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from evalcube.flows.plan.spec import described_base, filled_base
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.merged.union import Place, Union
from evalcube.flows.state.records import PACKAGES
from evalcube.stages.generate.dataset.hub.address import bare_name, shareable


def whole_cube(url: str) -> Joined:
    """Return a cube as if it was merged alone, its axes in their order, its data files named without their folders."""
    source = Input(url)
    described = described_base(source.described, source.sizes["params"])
    # Whoever opens the copy with xarray has the weights of points that came later, too.
    source.base = filled_base(source.base, described, source.sizes["model"])
    spec: dict[str, Any] = copy.deepcopy(dict(source.cube.attrs["spec"]))
    for task in spec["tasks"]:
        for point in task["points"]:
            point["params"] = shareable(point["params"])
    tasks = source.spec.tasks
    place = Place(
        tuple(range(len(source.spec.evaluations))),
        tuple(range(len(tasks))),
        tuple(tuple(range(len(task.points))) for task in tasks),
        tuple(range(len(source.spec.judges))),
    )
    return Joined([source], union=Union(spec, (place,)))


UNPUBLISHED = "https://unpublished.invalid/v1"
"""In the place of an endpoint: a name that leads nowhere, so that whoever goes on has to say whom to ask."""

_SHARED = (
    "name seed precision trials repeats templates samplers degree density tasks evaluations judges composite views"
).split()
_OF_MODELS = "name model revision api stream prices facets simulate measured".split()
_HARMLESS = ("sim:", "local:smollm2")


def shared_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes of a copy: a name, and the config as far as it says what is measured."""
    shared: dict[str, Any] = {"name": notes["name"]} if isinstance(notes.get("name"), str) else {}
    if isinstance(notes.get(PACKAGES), Mapping):
        shared[PACKAGES] = {str(task): str(package) for task, package in notes[PACKAGES].items()}
    config = notes.get("config")
    if not isinstance(config, Mapping):
        return shared
    models = config.get("models")
    return shared | {
        "config": {
            **_without_folders({name: config[name] for name in _SHARED if name in config}),
            "models": [
                {**{name: model[name] for name in _OF_MODELS if name in model}, "endpoint": _endpoint(model)}
                for model in (models if isinstance(models, list) else [])
                if isinstance(model, Mapping)  # anyone may have noted it
            ],
        }
    }


def _endpoint(model: Mapping[str, Any]) -> str:
    """Return a model's endpoint if it is the same for everybody."""
    noted = model.get("endpoint", "")
    endpoint = str(noted[0] if isinstance(noted, list) and noted else noted)
    simulated = "sim:" if endpoint.startswith("sim:") else UNPUBLISHED
    return endpoint if endpoint in _HARMLESS else simulated


def _without_folders(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the same with data files named without their folders."""
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
