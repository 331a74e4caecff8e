"""What a trial costs to make: trials per second of each task on one core, at three sizes, and far into a cell.

    python benchmarks/generators.py [--seconds 0.3] [TASK ...]

A rate is the median of several spells of CPU time; the smallest and largest cells have every numeric param at that
end of its range. The mean over the family is total trials by total time with equal trials of each task, which is the
harmonic mean of the rates: a slow task weighs as much as it does in a sweep.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evalcube.stages.generate import TASKS, Cell, Task, TaskParams

SPELLS = 5
FAR = 100_000
SIZES = ("smallest", "middle", "largest")

MIDDLE: Mapping[str, Mapping[str, object]] = {
    "arithmetic": {"length": 16, "max_depth": 2, "prob_dewhitespace": 0.5},
    "boolean": {"length": 16, "max_depth": 2},
    "brackets": {"length": 16, "max_depth": 8},
    "cars": {"cars": 6, "moves": 8, "confounders": 2, "reference": "relative"},
    "dates": {"level": 3, "offset": 30, "format": "long"},
    "jsonpath": {"depth": 4, "width": 4, "wildcards": 1},
    "letters": {"target_letters": 2, "target_words": 8, "confounder_words": 4},
    "movies": {"reference_count": 3, "choice_count": 6},
    "objects": {"target_items": 4, "target_groups": 2, "max_count": 20, "distractor_count": 8},
    "sequence": {"rules": 3, "terms": 4, "max_constant": 20},
    "shapes": {"choices": 10, "rotation": 90, "scale": 10, "offset": 100},
    "shuffle": {"length": 6, "swaps": 8, "confounders": 2, "anchors": "numbers"},
    "sort": {"length": 16, "run_length": 3, "prob_mutation": 0.2, "prob_duplication": 0.1},
    "tables": {"rows": 20, "columns": 5, "conditions": 2},
}
"""A cell from the middle of a sweep, for each bundled task."""


@dataclass(frozen=True)
class Rate:
    """Speed of one cell."""

    per_second: float
    """Trials per CPU second."""
    far: float
    """Cost of trials from 100 000 on, relative to that of the first ones."""
    characters: int
    """Mean length of a prompt."""


def main() -> None:
    """Measure every task and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(MIDDLE)}; default: all")
    parser.add_argument("--seconds", type=float, default=0.3, help="of CPU time for each cell and place")
    options = parser.parse_args()
    if unknown := set(options.tasks) - set(MIDDLE):
        parser.error(f"no such task: {', '.join(sorted(unknown))}")
    names = options.tasks or list(MIDDLE)
    table = {
        name: [measure(Cell(TASKS[name], params_of(TASKS[name], size), 1), options.seconds) for size in SIZES]
        for name in names
    }
    print_table(table)


def params_of(task: Task, size: str) -> TaskParams:
    """Every numeric param at the lower or upper end of its range, or the cell from the middle."""
    if size == "middle":
        return task.Params(**MIDDLE[task.name])
    values = {}
    for name, field in task.Params.model_fields.items():
        limits = {k: getattr(rule, k) for rule in field.metadata for k in ("ge", "le") if hasattr(rule, k)}
        if limits and name != "target_tokens":  # which stands for another number of rows
            values[name] = limits["ge" if size == "smallest" else "le"]
    if "min_number" in values:  # the ends of a range: it is widest when the lower one is lowest
        values |= (
            {"min_number": -999, "max_number": 999}
            if size == "largest"
            else {"max_number": 9, "min_number": -9}
        )
    return task.Params(**values)


def measure(cell: Cell, seconds: float) -> Rate:
    """Time spells at the beginning of a cell and far into it by turns, so that a noisy machine hits both."""
    lengths = [len(cell.trial(i).prompt) for i in range(20)]
    spells = [(_spell(cell, 0, seconds / SPELLS), _spell(cell, FAR, seconds / SPELLS)) for _ in range(SPELLS)]
    near, far = (statistics.median(costs) for costs in zip(*spells, strict=True))
    return Rate(1 / near, far / near, round(statistics.fmean(lengths)))


def _spell(cell: Cell, index: int, seconds: float) -> float:
    """CPU seconds of a trial from `index` on."""
    start = time.process_time()
    made = 0
    while (spent := time.process_time() - start) < seconds:
        for _ in range(10):
            cell.trial(index + made)
            made += 1
    return spent / made


def print_table(table: Mapping[str, Sequence[Rate]]) -> None:
    """Rates by task and size, and the mean over the tasks."""
    print("trials per CPU second on one core (characters of a prompt)\n")
    head = "".join(f"{size:>20}" for size in SIZES)
    print(f"{'task':12}{head}   trial {FAR} / trial 0, middle")
    for name, rates in table.items():
        cells = "".join(f"{rate.per_second:>10,.0f} {f'({rate.characters:,})':>9}" for rate in rates)
        print(f"{name:12}{cells}{rates[SIZES.index('middle')].far:>12.2f}")
    means = [
        statistics.harmonic_mean([rates[i].per_second for rates in table.values()]) for i in range(len(SIZES))
    ]
    print(
        f"{'mean':12}"
        + "".join(f"{mean:>10,.0f}          " for mean in means)
        + "  total trials / total time"
    )


if __name__ == "__main__":
    main()
