"""Shares of right answers of those who read nothing, at every point of the shipped suites.

    python -m benchmarks.floors --trials 2000 [TASK ...]

Prints the points at which the best of some dozens of strategies (constants, positions, echoes of the input) is right
more often than the declared guess chance and 2 points; chance alone lifts the best of so many by two standard errors
or three.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from evalcube.flows.config.recipes import recipe_names, suite_names
from evalcube.flows.config.suites import load_suite
from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.manifold import expand
from tests.stages.generate.no_work import excess_of_no_work


def main() -> None:
    """Print each task's worst point, and every point that is worse than the noise of that many trials allows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("tasks", nargs="*")
    given = parser.parse_args()
    for suite in sorted(set(suite_names()) - {*recipe_names(), "gym30"}):
        config = load_suite(suite, ["sim:"])
        for label in config.tasks:
            if given.tasks and label not in given.tasks:
                continue
            name, entries = config.manifold(label)
            cells = [Cell(TASKS[name], point.params, config.seed) for point in expand(TASKS[name], entries)]
            found = [(*excess_of_no_work(cell, given.trials), cell) for cell in cells]
            worst = max(found, key=lambda each: each[0])
            print(f"{suite:6} {label:11} {len(cells):3} points, worst {worst[0]:+.3f} ({worst[1]})")
            for excess, strategy, cell in found:
                guess = cell.trial(0).guess_chance
                noise = 3 * math.sqrt(max(guess, 0.02) * (1 - guess) / (given.trials / 2))
                if excess > 0.02 + noise:
                    print(f"    {excess:+.3f} {strategy}: {cell.plain_params}")


if __name__ == "__main__":
    main()
