"""The parts into which a sweep is cut to be submitted: each is a sweep of some models, with a cube of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalcube.deploy.clusters.slurm.script import slug
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.errors import SweepError
from evalcube.storage.urls import absolute


@dataclass(frozen=True)
class Part:
    """A sweep of some of a sweep's models."""

    name: str
    """As a part of file and job names; unique in the sweep."""
    models: tuple[str, ...]
    config: Mapping[str, Any]
    """Its config, as JSON values."""
    cube: str


def cut(settings: SweepConfig, groups: Sequence[Sequence[str]] = (), *, together: bool = False) -> list[Part]:
    """Cut a sweep into parts: one for each group of models, and one for each model that is in none.

    Two drivers never write one cube: so each part has its own, and they are merged when all are complete. A sweep of
    one part works on the sweep's cube itself.

    Parameters
    ----------
    settings
        The sweep's config.
    groups
        Names of models that go together.
    together
        All models in one part.

    Raises
    ------
    SweepError
        If a group names what is not measured or what another has, or a bound of spending would hold for each part.
    """
    measured = list(dict.fromkeys(model.name for model, _, _ in settings.combinations()))
    if together and groups:
        raise SweepError("`together` excludes `groups`", "Give one of them")
    seen: set[str] = set()
    for name in (name for group in groups for name in group):
        if name not in measured or name in seen:
            what = "is in two groups" if name in seen else "is none of the models that are measured"
            raise SweepError(f"`groups`: '{name}' {what}", f"Models: {', '.join(measured)}")
        seen.add(name)
    chosen = [measured] if together else [*map(list, groups), *([one] for one in measured if one not in seen)]
    if len(chosen) > 1 and settings.spend is not None:
        raise SweepError(
            "spend: each of several jobs would spend as much",
            "Give `together`, or take the bound out of the config",
        )
    names = _names([slug(group[0]) for group in chosen])
    cube = absolute(settings.cube)
    if len(chosen) == 1:
        return [_part(settings, names[0], chosen[0], cube)]
    stem = cube.rstrip("/").removesuffix(".zarr")
    return [
        _part(settings, name, group, f"{stem}.parts/{name}.zarr")
        for name, group in zip(names, chosen, strict=True)
    ]


def _names(names: Sequence[str]) -> list[str]:
    """The names, with numbers where several would be the same."""
    return [name if names.count(name) == 1 else f"{name}-{index + 1}" for index, name in enumerate(names)]


def _part(settings: SweepConfig, name: str, models: Sequence[str], cube: str) -> Part:
    fields = settings.model_dump(mode="json", exclude_unset=True, exclude={"cluster"})
    judging = {judge.model for judge in settings.judges}
    by_name = {model["name"]: model for model in fields["models"]}
    fields["models"] = [
        {**model, "measured": label in models}
        for label, model in by_name.items()
        if label in models or label in judging
    ]
    if settings.evaluations is not None:
        rules = [
            {**rule, "models": [label for label in rule.get("models") or models if label in models]}
            for rule in fields["evaluations"]
        ]
        fields["evaluations"] = [rule for rule in rules if rule["models"]]
    if settings.on_end is not None:
        # A job that stops at its walltime is followed by another: that is no end of anything.
        when = [ending for ending in settings.on_end.when if ending != "stopped"]
        fields["on_end"] = {**fields["on_end"], "when": when}
        if not when:
            del fields["on_end"]
    fields |= {"name": settings.name, "cube": cube, "cache": absolute(settings.cache)}
    return Part(name, tuple(models), fields, cube)
