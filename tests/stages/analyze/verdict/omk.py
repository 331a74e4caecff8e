"""Numbers that oh-my-knowledge 0.54 (omk) gave for known inputs, and these inputs in our form."""

import json
import math
from pathlib import Path

import numpy as np

from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.analyze.verdict.inputs import checked_scores
from tests.oracles import omk054 as rules

GOLDEN = json.loads((Path(__file__).parents[3] / "data" / "omk_verdict.json").read_text(encoding="utf-8"))


def number(value):
    """None stands for absent or undefined."""
    return math.nan if value is None else value


def scores_of(case):
    """`verdict_end_to_end` input -> checked scores."""
    runs, variants, units = case["runs"], case["variants"], case["samples"]
    names = sorted({name for row in _rows(case) for name in row.get("judges", {})})
    shape = (len(runs), len(variants), len(units))
    layers, ok, entries = np.full((*shape, 3), np.nan), np.zeros(shape, bool), np.zeros(shape, bool)
    readings = np.full((*shape, len(names)), np.nan)
    for place in np.ndindex(*shape):
        row = runs[place[0]][variants[place[1]]][place[2]]
        if row is None:
            continue
        entries[place], ok[place] = True, row.get("ok", True)
        layers[place] = [number(row.get(layer)) for layer in LAYERS]
        readings[place] = [number(row.get("judges", {}).get(name)) for name in names]
    return checked_scores(layers, variants, units, judges=readings if names else None, ok=ok, entries=entries)


def _rows(case):
    return [row for run in case["runs"] for rows in run.values() for row in rows if row is not None]


def report_of(case):
    """`verdict_rules` input -> the numbers that the rules read."""
    options = case.get("options", {})
    return rules.Report(
        variants=case["variants"],
        samples=case["n_samples"],
        means={
            name: {k: v for k, v in means.items() if v is not None}
            for name, means in case["layer_means"].items()
        },
        pairs=[_pair(pair) for pair in case.get("pairs", [])],
        pearson={name: number(value) for name, value in case.get("judge_pearson", {}).items()},
        runs=case.get("runs", 1),
        run_stats={
            name: (stats["mean"], stats["stddev"]) for name, stats in case.get("run_stats", {}).items()
        },
        saturation={
            name: rules.Curve(curve["saturated"], curve["confidence"], curve["atN"])
            for name, curve in case.get("saturation", {}).items()
        },
        holdout={
            name: rules.Part(
                *(part[k] for k in ("trainScore", "holdoutScore", "trainScorable", "holdoutScorable"))
            )
            for name, part in case.get("holdout", {}).get("perVariant", {}).items()
        },
        threshold=options.get("gateThreshold", 3.5),
        trivial=options.get("triviallySmallDiff", 0.1),
    )


def _pair(pair):
    ci = pair.get("ci")
    interval = (
        None if ci is None else rules.Bootstrap(ci["low"], ci["high"], ci["estimate"], ci["significant"])
    )
    return rules.Pair(pair["control"], pair["treatment"], interval, pair.get("alpha", 0.05))
