"""The state of a sweep's cube: what its counters hold of what is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.growth import Contradiction
from evalcube.flows.state import store
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


@pytest.mark.parametrize(("count", "more"), [(6, ""), (7, "; and 1 more"), (9, "; and 3 more")])
def test_other_sweep__names_six_contradictions_and_each_remedy_once(count: int, more: str) -> None:
    remedies = ("Run evalcube forget CUBE first", "Use another cube")
    found = [Contradiction(f"no {number}", remedies[number % 2]) for number in range(count)]

    error = store._other_sweep("my cube", found)

    assert error.message.endswith(f"no 0; no 1; no 2; no 3; no 4; no 5{more}")
    assert error.remedy == "Run evalcube forget 'my cube' first. Use another cube"
