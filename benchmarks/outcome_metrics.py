"""Outcome metrics of one large matrix, beside scorio where that is installed: seconds and ratios, in one run.

scorio (MIT) is no dependency of the project: install it into an environment of its own and run this with it.

    python benchmarks/outcome_metrics.py [--questions 1000000] [--samples 64] [--k 8] [--repeats 3] [--quick]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evalcube import stats as outcomes
from evalcube.stages.analyze.formulas.outcomes.table import METRICS, metric_table

SLOW = ("max_at_k_ci",)
"""Minutes in the reference: called once, and not with --quick."""


def main() -> None:
    """Time every metric alone, then all together from one pass."""
    options = _options()
    rng = np.random.default_rng(0)
    rates = rng.random((options.questions, 1), dtype=np.float32)
    matrix = (rng.random((options.questions, options.samples), dtype=np.float32) < rates).astype(np.int8)
    reference = _reference()
    names = [name for name in METRICS if not (options.quick and name in SLOW)]
    print(
        f"{options.questions} questions × {options.samples} samples, int8, k = {options.k}; seconds, best of runs"
    )
    print(f"{'metric':30} {'evalcube':>10} {'scorio':>10} {'ratio':>8}")
    total = 0.0
    for name in names:
        ours = _best(_call(outcomes, name, matrix, options.k), options.repeats)
        theirs = None
        if reference is not None:
            runs = 1 if name in SLOW else min(2, options.repeats)
            theirs = _best(_call(reference, name, matrix, options.k), runs)
            total += theirs
        _print(name, ours, theirs)
    extra = {
        name: {metric.required: _required(metric.required, options.k)}
        for name, metric in METRICS.items()
        if metric.required
    }
    together = _best(lambda: metric_table(matrix, names, options.k, options=extra), options.repeats)
    _print(f"all {len(names)} together", together, total if reference is not None else None)


def _call(module: ModuleType, name: str, matrix: np.ndarray, k: int) -> Callable[[], Any]:
    metric = METRICS[name]
    function = getattr(module, name)
    arguments = {metric.required: _required(metric.required, k)} if metric.required else {}
    if metric.takes_k:
        return lambda: function(matrix, k, **arguments)
    return lambda: function(matrix)


def _required(name: str, k: int) -> float | np.ndarray:
    return 0.6 if name == "tau" else np.full(k, 0.9 / k)


def _best(call: Callable[[], Any], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _print(name: str, ours: float, theirs: float | None) -> None:
    beside = f"{theirs:10.3f} {theirs / ours:8.1f}" if theirs is not None else f"{'-':>10} {'-':>8}"
    print(f"{name:30} {ours:10.4f} {beside}", flush=True)


def _reference() -> ModuleType | None:
    try:
        return importlib.import_module("scorio").eval  # type: ignore[no-any-return]
    except ImportError:
        print("scorio is not installed here: no ratios", file=sys.stderr)
        return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--questions", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help=f"leave out {', '.join(SLOW)}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
