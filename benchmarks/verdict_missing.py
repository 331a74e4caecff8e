"""How often a verdict ships a treatment whose answers are missing selectively, and what the rule against it costs.

Two arms answer the same 80 units as in `verdict_operating.py`. "worst": of the treatment, the answers with the lowest
composites are missing, as when hard questions are cut or refused. "random": of both arms, any answers are missing.
"pairs only" is the verdict on the units that both arms have, which is what a paired test does by itself; "now" is the
verdict that is given, with its bounds.

    python benchmarks/verdict_missing.py [--simulations 400] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.verdict_operating import SHIFT, draw
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.verdict import verdict

UNITS, DRAWS = 80, 1000
SHARES = (0.0, 0.02, 0.04, 0.08, 0.2, 0.5)
NAMES = [f"u{place:03}" for place in range(UNITS)]


def main() -> None:
    options = _options()
    print(f"PROGRESS in {options.simulations} simulations, {UNITS} units")
    print(f"{'effect':8} {'missing':8} {'share':>6} {'pairs only':>11} {'now':>7}")
    for effect in SHIFT:
        for how in ("worst", "random"):
            for share in SHARES:
                rng = np.random.default_rng([options.seed, int(100 * share)])
                _print_line(effect, how, share, rng, options.simulations)


def _print_line(effect: str, how: str, share: float, rng: np.random.Generator, simulations: int) -> None:
    scores = draw(UNITS, simulations, SHIFT[effect], rng)
    before, now = 0, 0
    for own in scores.transpose(1, 0, 2, 3):
        layers = lost(own, how, share, rng)
        both = ~np.isnan(layers).all(axis=2).any(axis=0)
        kept = [name for name, here in zip(NAMES, both, strict=True) if here]
        before += verdict(layers[:, both], ["a", "b"], kept, draws=DRAWS).verdict == "PROGRESS"
        now += verdict(layers, ["a", "b"], NAMES, draws=DRAWS).verdict == "PROGRESS"
    line = f"{effect:8} {how:8} {share:6.0%} {before / simulations:11.1%} {now / simulations:7.1%}"
    print(line, flush=True)


def lost(scores: Floats, how: str, share: float, rng: np.random.Generator) -> Floats:
    """Scores (arm, unit, layer) of which a share of the units is missing."""
    layers = scores.copy()
    count = round(share * layers.shape[1])
    if how == "worst":
        layers[1, np.argsort(layers[1].mean(axis=1))[:count]] = np.nan
    else:
        for arm in layers:
            arm[rng.permutation(layers.shape[1])[:count]] = np.nan
    return layers


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
