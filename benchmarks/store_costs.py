"""Requests that sweeps with their cube, and with their cache, on an object store need, and what they would cost.

Two sweeps of different size run against a server of S3 behind a proxy that counts. Their difference is what a region
costs; the rest is what a run costs, whatever its size.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalcube.flows.run.sweep import run
from evalcube.storage.cube.cube import Cube
from tests.storage.support.buckets import ProxiedStore, proxied

PUT_USD, GET_USD = 5e-6, 4e-7
"""Of one request to S3 Standard in us-east-1, autumn 2026; a list costs as much as a put, a delete nothing."""


def config(models: int, trials: int, cube: str, cache: str) -> dict[str, Any]:
    """A sweep of ten points against simulated models."""
    return {
        "name": "costs",
        "trials": trials,
        "cube": cube,
        "cache": cache,
        "models": [
            {"name": f"model-{i}", "endpoint": "sim:", "simulate": {"ability": 3.0, "tokens": 20}}
            for i in range(models)
        ],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 96}},
        "tasks": {"arithmetic": {"manifold": [{"grid": {"length": list(range(3, 13))}, "tiers": ["easy"]}]}},
    }


def counted(store: ProxiedStore, settings: Mapping[str, Any]) -> tuple[dict[str, int], int, int]:
    """Requests of one run by kind, regions of its cube, and its trials."""
    store.reset()
    summary = run(dict(settings))
    if summary.reason != "complete":
        raise SystemExit(f"the sweep ended as {summary.reason}")
    counts = store.counts()
    found = {
        "puts": counts.get("PUT", 0) + counts.get("LIST", 0) + counts.get("POST", 0),
        "gets": counts.get("GET", 0) + counts.get("HEAD", 0),
        "deletes": counts.get("DELETE", 0),
    }
    return found, len(list(Cube.open(settings["cube"]).regions())), summary.sent


def main() -> None:
    """Run the sweeps and print what they need."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name, proxied() as store:
        os.environ.update(store.environment)
        local = str(Path(name) / "cache")
        small, few, _ = counted(store, config(2, 64, f"{store.url}/small.zarr", local))
        large, many, _ = counted(store, config(6, 128, f"{store.url}/large.zarr", local))
        again, _, _ = counted(store, config(6, 128, f"{store.url}/large.zarr", local))
        per_region = {kind: (large[kind] - small[kind]) / (many - few) for kind in large}
        per_run = {kind: small[kind] - few * per_region[kind] for kind in small}
        print(f"a run of any size: {per_run}; run again, with nothing left: {again}")
        print(f"a region: {per_region}")
        price = per_region["puts"] * PUT_USD + per_region["gets"] * GET_USD
        for points in (10, 100, 1000):
            regions = 1e6 / (32 * points)
            print(
                f"| {points:5d} | {32 * points:6d} | {regions * per_region['puts']:8.0f} | "
                f"{regions * per_region['gets']:8.0f} | {regions * price:6.2f} |"
            )
        there, _, trials = counted(store, config(2, 64, f"{store.url}/other.zarr", f"{store.url}/cache"))
        puts, gets = ((there[kind] - small[kind]) / trials for kind in ("puts", "gets"))
        print(f"a reply in a cache there: {puts:.2f} puts, {gets:.2f} gets, ", end="")
        print(f"{1e6 * (puts * PUT_USD + gets * GET_USD):.2f} USD per million")


if __name__ == "__main__":
    main()
