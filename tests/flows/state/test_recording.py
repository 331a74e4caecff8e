"""How what is recorded is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.state.store import open_store
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import Recipe, config_of, make_cube
from tests.flows.state.stores import RECIPE, plan_of, store_of


def test_stale__names_evaluations_whose_counters_are_behind_the_ledger(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha", "beta"))
    url = make_cube(tmp_path / "c.zarr", recipe).url
    plan = build_plan(from_mapping(config_of(recipe)))
    assert open_store(plan, url).stale() == []

    Cube.open(url, writable=True).write_counters({1: np.zeros_like(Cube.open(url).read_counters()[1])})

    assert open_store(plan, url).stale() == [1]


def test_counters__have_the_costs_of_todays_prices(tmp_path: Path) -> None:
    recipe = Recipe(models=("alpha", "beta"))
    dear = replace(recipe, price=30.0)
    opened = store_of(tmp_path, recipe)
    repriced = open_store(plan_of(dear), opened.cube.url)

    counters, labels = repriced.counters(), list(COUNTERS).index
    cost, tokens, prompt = (
        counters[..., labels(name)] for name in ("cost_sum", "tokens_sum", "prompt_tokens_sum")
    )

    np.testing.assert_allclose(cost, (prompt + 30 * tokens) / 1e6)
    assert (cost > opened.counters()[..., labels("cost_sum")]).any()
    assert (opened.stale(), repriced.stale()) == ([], [0, 1])
    assert repriced.behind() == ([0, 1], [])


def test_counters__that_cannot_be_read_are_counted_from_the_regions(tmp_path: Path) -> None:
    opened = store_of(tmp_path, RECIPE)
    expected = opened.counters()
    for chunk in Path(opened.cube.url).glob("counters/c*"):
        chunk.write_bytes(b"not a chunk")

    np.testing.assert_allclose(open_store(plan_of(RECIPE), opened.cube.url).counters(), expected)


def test_behind__names_tasks_and_evaluations_of_questions_that_were_not_compared(tmp_path: Path) -> None:
    opened = store_of(tmp_path, Recipe(models=("alpha", "beta")))
    assert opened.behind() == ([], [])
    flags = opened.cube.read_duplicates()
    flags[1, 0, 7] = 255

    opened.cube.write_duplicates(1, flags[1])
    assert opened.behind() == ([0, 1], [1])

    flags[1, 2] = 255  # there is no such point
    flags[1, 0, 7] = 0
    opened.cube.write_duplicates(1, flags[1])
    assert opened.behind() == ([], [])
