"""What knows nothing scores nothing, at every point of the shipped suites.

The trials are always the same, so that a point that passes here passes everywhere. Of the smallest suite every other
point is held here, and of the larger ones every eightieth; `benchmarks/floors.py` runs through all of them with as
many trials as one likes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache

import pytest

from evalcube.flows.config.models import Sweep
from evalcube.flows.config.recipes import recipe_names, suite_names
from evalcube.flows.config.suites import load_suite
from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.manifold import expand
from tests.stages.generate.no_work import excess_of_no_work
from tests.strategies import params_with

pytestmark = pytest.mark.long

TRIALS = 400
ALLOWED = 0.02
"""Above the declared guess chance."""


@cache
def suites() -> dict[str, Sweep]:
    """Those with questions of ours: gym30 has others', and measured floors."""
    names = [suite for suite in suite_names() if suite not in (*recipe_names(), "gym30")]
    return {suite: load_suite(suite, ["sim:"]) for suite in names}


def cells(name: str) -> Iterator[Cell]:
    """Of a task: every other point of the smallest suite, every eightieth of the others."""
    seen = set()
    for suite, config in suites().items():
        for label in config.tasks:
            used, entries = config.manifold(label)
            # m15 has the points of m12
            if used == name and (suite == "quick" or label not in seen):
                points = [*expand(TASKS[name], entries)]
                seen.add(label)
                yield from (
                    Cell(TASKS[name], point.params, config.seed)
                    for point in points[:: 2 if suite == "quick" else 80]
                )


@pytest.mark.parametrize("name", TASKS)
def test_suites__no_work_gains_no_more_than_guessing(name: str) -> None:
    for cell in cells(name):
        guess = cell.trial(0).guess_chance
        # the best of some dozens of strategies is that much above its true share at times
        noise = 3.6 * math.sqrt(max(guess, ALLOWED) * (1 - guess) / (TRIALS / 2))

        excess, strategy = excess_of_no_work(cell, TRIALS)

        assert excess <= ALLOWED + noise, (strategy, cell.plain_params)


@pytest.mark.parametrize("prob_not", [0, 0.3, 1])
@pytest.mark.parametrize(
    ("length", "max_depth"), [(3, 0), (8, 0), (24, 0), (40, 0), (8, 2), (24, 4), (40, 8)]
)
def test_boolean__declares_what_copying_the_commonest_value_gains(
    length: int, max_depth: int, prob_not: float
) -> None:
    task = TASKS["boolean"]
    cell = Cell(task, params_with(task, length=length, max_depth=max_depth, prob_not=prob_not), 3)
    trials = [cell.trial(i) for i in range(TRIALS)]
    right = 0.0
    for trial in trials:
        words = re.findall("True|False", trial.prompt.split("\n\n")[1])
        lead = words.count("True") - words.count("False")
        right += 0.5 if lead == 0 else (lead > 0) == (trial.answer == "true")

    copied = max(right / TRIALS, 1 - right / TRIALS)

    assert abs(copied - trials[0].guess_chance) < ALLOWED + 3.6 * 0.5 / math.sqrt(TRIALS)
