"""The state of a sweep's cube: what its counters hold of what is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.state.store import open_store
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import Recipe, config_of, make_cube


def test_stale__names_evaluations_whose_counters_are_behind_the_ledger(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha", "beta"))
    url = make_cube(tmp_path / "c.zarr", recipe).url
    plan = build_plan(from_mapping(config_of(recipe)))
    assert open_store(plan, url).stale() == []

    Cube.open(url, writable=True).write_counters({1: np.zeros_like(Cube.open(url).read_counters()[1])})

    assert open_store(plan, url).stale() == [1]
