"""The parts into which a sweep is cut to be submitted: each is a sweep of one model, with a cube of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalcube.deploy.clusters.slurm.script import slug
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.storage.urls import absolute


@dataclass(frozen=True)
class Part:
    """A sweep of one of a sweep's models."""

    name: str
    """As a part of file and job names; unique in the sweep."""
    model: str
    config: Mapping[str, Any]
    """Its config, as JSON values."""
    cube: str


def cut(settings: Sweep) -> list[Part]:
    """Cut a sweep into parts, one for each model that is measured.

    Two drivers never write one cube: so each part has its own, and they are merged when all are complete. A sweep of
    one model works on the sweep's cube itself.

    Parameters
    ----------
    settings
        The sweep's config.

    Raises
    ------
    SweepError
        If a bound of spending would hold for each part.
    """
    models = list(dict.fromkeys(model.name for model, _, _ in settings.combinations()))
    if len(models) > 1 and settings.spend is not None:
        raise SweepError(
            "spend: each of several jobs would spend as much",
            "Submit a config for each model, or take the bound out",
        )
    cube = absolute(settings.cube)
    if len(models) == 1:
        return [_part(settings, slug(models[0]), models[0], cube)]
    stem = cube.rstrip("/").removesuffix(".zarr")
    names = _names([slug(model) for model in models])
    return [
        _part(settings, name, model, f"{stem}.parts/{name}.zarr")
        for name, model in zip(names, models, strict=True)
    ]


def _names(names: Sequence[str]) -> list[str]:
    """The names, with numbers where several would be the same."""
    return [name if names.count(name) == 1 else f"{name}-{index + 1}" for index, name in enumerate(names)]


def _part(settings: Sweep, name: str, measured: str, cube: str) -> Part:
    fields = settings.model_dump(mode="json", exclude_unset=True, exclude={"cluster"})
    judging = {judge.model for judge in settings.judges}
    by_name = {model["name"]: model for model in fields["models"]}
    fields["models"] = [
        {**model, "measured": label == measured}
        for label, model in by_name.items()
        if label == measured or label in judging
    ]
    if settings.evaluations is not None:
        fields["evaluations"] = [
            {**rule, "models": [measured]}
            for rule in fields["evaluations"]
            if measured in (rule.get("models") or [measured])
        ]
    fields |= {"name": settings.name, "cube": cube, "cache": absolute(settings.cache)}
    return Part(name, measured, fields, cube)
