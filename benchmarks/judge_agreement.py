"""Which measure of agreement blocks bad pairs of judges and lets good ones pass, also near the top of the scale.

Outputs have a quality, drawn around a mean; a judge reads it with an error of its own, rounds, and stays within 1 to 5.
"alike": both read the same quality. "unrelated": each reads another one with the same distribution. "opposed": one
reads the quality upside down. "offset": one is stricter by a point, which an A/B comparison by the same judges does not
notice. A rate is how often judges of 40 outputs are said to disagree: by Pearson < .4 alone (the reference), by Gwet's
AC2 < .6 alone, and by both together (the rule of the default engine).

    python benchmarks/judge_agreement.py [--simulations 2000] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evalcube.stages.analyze.verdict.agreement import Agreement, judge_agreement
from evalcube.stages.analyze.verdict.rules import Thresholds, dissents

UNITS = 40
QUALITY = {"wide": (3.0, 1.2), "high": (4.0, 0.8), "near top": (4.5, 0.6), "top": (5.2, 0.4)}
JUDGES = ("alike .3", "alike .6", "offset .3", "alike 1.0", "unrelated .3", "unrelated 1.0", "opposed .3")


def main() -> None:
    options = _options()
    limits = Thresholds()
    print(f"said to disagree, {options.simulations} simulations of {UNITS} outputs")
    print(f"{'quality':9} {'judges':14} {'distance':>8} {'AC2':>5} {'Pearson':>8} {'AC2':>7} {'both':>7}")
    for quality, (mean, spread) in QUALITY.items():
        for judges in JUDGES:
            rng = np.random.default_rng([options.seed, *judges.encode()])
            found = [_agreement(mean, spread, judges, rng) for _ in range(options.simulations)]
            ac2 = np.mean([one.ac2 for one in found])
            distance = np.mean([one.mad for one in found])
            rates = (
                np.mean([one.pearson < limits.dissent for one in found]),
                np.mean([one.ac2 < limits.apart for one in found]),
                np.mean([dissents(one, limits.dissent, limits.apart) for one in found]),
            )
            told = f"{rates[0]:8.0%} {rates[1]:7.0%} {rates[2]:7.0%}"
            print(f"{quality:9} {judges:14} {distance:8.2f} {ac2:5.2f} {told}", flush=True)


def _agreement(mean: float, spread: float, judges: str, rng: np.random.Generator) -> Agreement:
    kind, error = judges.split()
    first = rng.normal(mean, spread, UNITS)
    second = {
        "alike": lambda: first,
        "offset": lambda: first - 1.0,
        "unrelated": lambda: rng.normal(mean, spread, UNITS),
        "opposed": lambda: 2 * mean - first,
    }[kind]()
    both = np.stack([first, second], axis=1)
    read = np.clip(np.rint(both + rng.normal(0.0, float(error), both.shape)), 1, 5)
    found = judge_agreement(read)
    if found is None:
        raise RuntimeError("two judges of 40 outputs have an agreement")
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
