"""Stores of cubes that are made by recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.state.store import SweepStore, open_store
from tests.flows.read.merged.generated import Recipe, config_of, make_cube


def plan_of(recipe: Recipe, **changes: Any) -> Any:
    return build_plan(from_mapping({**config_of(recipe), **changes}))


def store_of(folder: Path, recipe: Recipe, **changes: Any) -> SweepStore:
    """The cube of a recipe, opened with its own config or a changed one."""
    url = folder / "c.zarr"
    return open_store(plan_of(recipe, **changes), make_cube(url, recipe).url)


def work_of(opened: SweepStore, model: int = 0) -> dict[tuple[int, int], Any]:
    return {(work.window.region.trial, work.window.region.repeat): work for work in opened.unfinished(model)}


RECIPE = Recipe(models=("alpha", "beta"), failed=0.3, repeats=2)
