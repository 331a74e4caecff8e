"""What finding an undeclared limit costs: share of requests that are refused and use of the limit, by kind of server.

The servers and the workers run on a clock of their own (`tests/stages/infer/limit_simulation.py`): minutes take a
moment, and figures are the same each time. The first minute is for finding the limit, two more are counted.

    python benchmarks/rate_limit.py [--workers 1 2 4] [--jitter 0.001]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.stages.infer.limit_simulation import (  # noqa: E402 - the checkout may not be installed
    Bucket,
    Changing,
    Concurrency,
    FixedWindow,
    Flaky,
    SlidingWindow,
    simulate,
)


def _varied(mean: float) -> Callable[[random.Random], float]:
    return lambda rng: mean * rng.lognormvariate(-0.32, 0.8)


def _full_speed(share: float, connections: int = 64) -> float:
    """Requests per second that are let through where all connections are always in use."""
    return connections * (1.0 - share) / ((1.0 - share) * 0.052 + share * 0.003)


_SERVERS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "nginx 20/s, no burst": (lambda: Bucket(20), {}),
    "the same, answers after about 1 s": (lambda: Bucket(20), {"latency": _varied(1.0)}),
    "the same, Retry-After: 1": (lambda: Bucket(20, retry_after=1.0), {}),
    "nginx 20/s, burst 5": (lambda: Bucket(20, 5), {}),
    "bucket 20/s, burst 100": (lambda: Bucket(20, 100), {}),
    "nginx 200/s, burst 2": (lambda: Bucket(200, 2), {}),
    "nginx 2/s, no burst": (lambda: Bucket(2), {}),
    "nginx 1/s, no burst": (lambda: Bucket(1), {}),
    "20 in any second": (lambda: SlidingWindow(20, 1.0), {}),
    "1200 in any minute": (lambda: SlidingWindow(1200), {}),
    "1200 in a clock's minute": (lambda: FixedWindow(1200), {}),
    "the same, Retry-After": (lambda: FixedWindow(1200, says=True), {}),
    "8 in flight, 0.5 s each": (lambda: Concurrency(8, 0.5), {"latency": 0.5}),
    "8 in flight, about 0.5 s": (lambda: Concurrency(8, 0.5), {"latency": _varied(0.5), "seconds": 300.0}),
    "20/s, after a minute 60/s": (
        lambda: Changing(Bucket(20, 5), Bucket(60, 5), 60.0),
        {"seconds": 300.0, "warm_up": 240.0},
    ),
    "60/s, after a minute 20/s": (
        lambda: Changing(Bucket(60, 5), Bucket(20, 5), 60.0),
        {"seconds": 240.0, "warm_up": 120.0},
    ),
    "no limit": (lambda: Flaky(0.0, 64 / 0.052), {"seconds": 20.0, "warm_up": 1.0}),
    **{
        f"no limit, {share:.0%} fail with 503": (
            lambda share=share: Flaky(share, _full_speed(share)),
            {"seconds": 30.0, "warm_up": 10.0, "status": 503},
        )
        for share in (0.02, 0.1, 0.2, 0.3)
    },
    "the last, 8 connections": (
        lambda: Flaky(0.3, _full_speed(0.3, 8)),
        {"seconds": 180.0, "warm_up": 60.0, "status": 503, "connections": 8},
    ),
}


def main() -> None:
    """Simulate and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--jitter", type=float, default=0.001, help="most seconds by which a request is late")
    options = parser.parse_args()
    head = "".join(f"{f'{count} workers':>22}" for count in options.workers)
    print(f"{'refused / use of the limit':38}{head}")
    for name, (make, settings) in _SERVERS.items():
        cells = []
        for workers in options.workers:
            server = make()
            _, after = simulate(server, workers=workers, jitter=options.jitter, **settings)
            cells.append(f"{after.refused_share:13.1%} / {after.use(server.rate):5.0%} ")
        print(f"{name:38}{''.join(cells)}")


if __name__ == "__main__":
    main()
