"""Rules about views: they ask for coordinates and labels that the sweep has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from evalcube.flows.config.findings import Finding, Path, unknown_name
from evalcube.flows.config.manifold import DEFAULT_TIERS
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.config.partial import each, keys, listed
from evalcube.flows.config.rules.models import names_of
from evalcube.stages.generate import Task


def coordinates(config: SweepConfig, tasks: Mapping[str, Task]) -> Iterator[Finding]:
    """What views ask for is there.

    Parameters
    ----------
    tasks
        Label -> task, where the task is known.
    """
    labels = _labels(config)
    others = {
        *listed(lambda: _facets(config)),
        *(name for task in tasks.values() for name in _numbers(task)),
    }
    all_known = len(tasks) == len(listed(lambda: keys(config.tasks)))
    for name, where in each(config.views, lambda view: view.where):
        path: Path = ("views", name, "where")
        for coordinate in keys(where):
            if coordinate.startswith("param_") and not all_known:
                continue  # it may be of a task that is not known
            if coordinate not in labels and coordinate not in others:
                names = [*labels, *sorted(others)]
                at = (*path, coordinate)
                yield unknown_name(at, "coordinate", coordinate, names, "Coordinates", at_key=True)
        for coordinate, value in each(where):
            if labels.get(coordinate):
                yield from _label(path, coordinate, value, labels[coordinate])


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


def _labels(config: SweepConfig) -> dict[str, list[str]]:
    """Coordinates of text -> their values in this sweep; none where they are not known."""
    return {
        "task": listed(lambda: keys(config.tasks)),
        "tier": listed(lambda: dict.fromkeys(_tiers(config))),
        "model_name": listed(lambda: names_of(config)),
        "template": listed(lambda: keys(config.templates)),
        "sampler": listed(lambda: keys(config.samplers)),
    }


def _tiers(config: SweepConfig) -> Iterator[str]:
    for _, manifold in each(config.tasks, lambda task: task.manifold):
        if manifold is None:
            yield from DEFAULT_TIERS
        for _, tiers in each(manifold, lambda entry: entry.tiers):
            yield from keys(tiers) if isinstance(tiers, Mapping) else (tier for _, tier in each(tiers))


def _facets(config: SweepConfig) -> set[str]:
    return {name for _, facets in each(config.models, lambda model: model.facets) for name in keys(facets)}


def _numbers(task: Task) -> Iterator[str]:
    """The coordinates that a task's params become; a param that is a text becomes none."""
    for name, info in task.Params.model_fields.items():
        if _holds_number(info.annotation):
            yield f"param_{name}"


def _holds_number(annotation: Any) -> bool:  # noqa: ANN401 - any type
    if annotation in (int, float, bool) or isinstance(annotation, (int, float)):
        return True
    return any(map(_holds_number, get_args(annotation)))
