"""What knows nothing scores nothing, at every point of the shipped suites.

The trials are always the same, so that a point that passes here passes everywhere. Of the larger suite every
seventh point is held here; `benchmarks/floors.py` runs through all of them with as many trials as one likes.
"""

from __future__ import annotations

import math

import pytest

from evalcube.flows.config.suites import load_suite, suite_names
from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.manifold import expand
from tests.stages.generate.no_work import excess_of_no_work

TRIALS = 400
ALLOWED = 0.02
"""Above the declared guess chance."""


def cells(suite: str, task: str) -> list[Cell]:
    config = load_suite(suite, ["sim:"])
    name, entries = config.manifold(task)
    return [Cell(TASKS[name], point.params, config.seed) for point in expand(TASKS[name], entries)]


PAIRS = [(suite, task) for suite in suite_names() for task in load_suite(suite, ["sim:"]).tasks]


@pytest.mark.parametrize(("suite", "task"), PAIRS)
def test_suites__no_work_gains_no_more_than_guessing(suite: str, task: str) -> None:
    for cell in cells(suite, task)[:: 1 if suite == "quick" else 7]:
        guess = cell.trial(0).guess_chance
        # the best of some dozens of strategies is that much above its true share at times
        noise = 3.6 * math.sqrt(max(guess, ALLOWED) * (1 - guess) / (TRIALS / 2))

        excess, strategy = excess_of_no_work(cell, TRIALS)

        assert excess <= ALLOWED + noise, (strategy, cell.plain_params)
