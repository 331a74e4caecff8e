"""The raw ``views`` of a config -> findings about coordinates and labels that the sweep does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from flows.config.findings import Finding, Path, did_you_mean
from flows.config.manifold import DEFAULT_TIERS
from flows.config.raw import items, mapping
from flows.config.secrecy import show
from stages.generate import Task


def check_views(raw: Mapping[str, object], tasks: Mapping[str, Task]) -> list[Finding]:
    """Check what views ask for against what the sweep has.

    Parameters
    ----------
    raw
        The config; any part of it may be wrong.
    tasks
        Label -> task, where the task is known.
    """
    labels = _labels(raw)
    texts = {coordinate: known for coordinate, known in labels.items() if known}
    others = {*_facets(raw), *(name for task in tasks.values() for name in _numbers(task))}
    found: list[Finding] = []
    for name, view in mapping(raw.get("views")).items():
        for coordinate, value in mapping(mapping(view).get("where")).items():
            path = ("views", name, "where", coordinate)
            if coordinate in texts:
                found += _label_findings(path, coordinate, value, texts[coordinate])
            elif coordinate not in others and coordinate not in labels:
                known = [*labels, *sorted(others)]
                remedy = did_you_mean(coordinate, known, "Coordinates")
                rule = f"unknown coordinate {show(coordinate)}"
                found.append(Finding(path, rule, remedy=remedy, at_key=True))
    return found


def _label_findings(path: Path, coordinate: str, value: object, known: list[str]) -> Iterator[Finding]:
    if isinstance(value, Mapping) or (None in items(value)):
        yield Finding(path, f"{coordinate} is a label, so that it has no range", remedy="List its values")
        return
    listed = isinstance(value, (list, tuple))
    for place, item in [((i,), item) for i, item in enumerate(items(value))] if listed else [((), value)]:
        if item in known:
            continue
        remedy = did_you_mean(str(item), known, "Known")
        yield Finding((*path, *place), f"unknown {coordinate} {show(item)}", remedy=remedy)


def _labels(raw: Mapping[str, object]) -> dict[str, list[str]]:
    """Coordinates of text -> their values in this sweep."""
    names = [mapping(model).get("name") for model in items(raw.get("models"))]
    return {
        "task": [str(label) for label in mapping(raw.get("tasks"))],
        "tier": list(dict.fromkeys(_tiers(raw))),
        "model_name": [name for name in names if isinstance(name, str)],
        "template": [str(name) for name in mapping(raw.get("templates", {"plain": None}))],
        "sampler": [str(name) for name in mapping(raw.get("samplers"))],
    }


def _tiers(raw: Mapping[str, object]) -> Iterator[str]:
    for task in mapping(raw.get("tasks")).values():
        for entry in items(mapping(task).get("manifold", [{}])):
            tiers = mapping(entry).get("tiers", DEFAULT_TIERS)
            yield from (str(tier) for tier in (tiers if isinstance(tiers, Mapping) else items(tiers)))


def _facets(raw: Mapping[str, object]) -> set[str]:
    return {str(name) for model in items(raw.get("models")) for name in mapping(mapping(model).get("facets"))}


def _numbers(task: Task) -> Iterator[str]:
    """The coordinates that a task's params become; a param that is a text becomes none."""
    for name, info in task.Params.model_fields.items():
        if _holds_number(info.annotation):
            yield f"param_{name}"


def _holds_number(annotation: Any) -> bool:  # noqa: ANN401 - any type
    if annotation in (int, float, bool) or isinstance(annotation, (int, float)):
        return True
    return any(map(_holds_number, get_args(annotation)))
