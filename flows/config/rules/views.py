"""Rules about views: they ask for coordinates and labels that the sweep has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from evalcube.flows.config.findings import Finding, Path, unknown_name
from evalcube.flows.config.manifold import DEFAULT_TIERS
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.rules.models import names_of
from evalcube.stages.generate import Task


def coordinates(config: Sweep, tasks: Mapping[str, Task]) -> Iterator[Finding]:
    """What views ask for is there.

    Parameters
    ----------
    tasks
        Label -> task, where the task is known.
    """
    labels: dict[str, list[str]] = {
        "task": list(config.tasks),
        "tier": list(dict.fromkeys(_tiers(config))),
        "model_name": names_of(config),
        "template": list(config.templates),
        "sampler": list(config.samplers),
    }
    others = {name for model in config.models for name in model.facets}
    others |= {name for task in tasks.values() for name in _numbers(task)}
    for name, view in config.views.items():
        path: Path = ("views", name, "where")
        for coordinate, value in view.where.items():
            if coordinate in labels:
                yield from _label(path, coordinate, value, labels[coordinate])
            elif coordinate not in others and not (
                coordinate.startswith("param_") and len(tasks) < len(config.tasks)
            ):
                # it may be of a task that is not known
                names = [*labels, *sorted(others)]
                at = (*path, coordinate)
                yield unknown_name(at, "coordinate", coordinate, names, "Coordinates", at_key=True)


def _label(path: Path, coordinate: str, value: object, names: list[str]) -> Iterator[Finding]:
    """What is wrong with a criterion of a label."""
    if isinstance(value, Mapping) or (isinstance(value, list) and None in value):
        rule = f"{coordinate} is a label, so that it has no range"
        yield Finding((*path, coordinate), rule, remedy="List its values")
        return
    items: list[tuple[Path, object]] = [((coordinate,), value)]
    if isinstance(value, list):
        items = [((coordinate, index), item) for index, item in enumerate(value)]
    for place, item in items:
        if item not in names:
            yield unknown_name((*path, *place), coordinate, item, names, "Known")


def _tiers(config: Sweep) -> Iterator[str]:
    for task in config.tasks.values():
        if task.manifold is None:
            yield from DEFAULT_TIERS
        for entry in task.manifold or ():
            yield from entry.tiers


def _numbers(task: Task) -> Iterator[str]:
    """The coordinates that a task's params become; a param that is a text becomes none."""
    for name, info in task.Params.model_fields.items():
        if _holds_number(info.annotation):
            yield f"param_{name}"


def _holds_number(annotation: Any) -> bool:  # noqa: ANN401 - any type
    if annotation in (int, float, bool) or isinstance(annotation, (int, float)):
        return True
    return any(map(_holds_number, get_args(annotation)))
