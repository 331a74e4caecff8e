"""How much of an endpoint a sweep uses: requests per second and connections at work, beside a raw aiohttp loop.

Both sides ask the same simulated endpoint in turn. It is looked at twenty times a second from outside; what counts is
the time between the first fifth and the last fifth of the requests, so that neither start nor end is in it. Answers of
``tails`` have a log-normal latency with a standard deviation of 1.5 of its logarithm: one in a thousand takes 30 times
the mean.

    python benchmarks/saturation.py [--seconds N] [--cases 64x0 64x50 64xtails ...] [--history FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import end_to_end
from end_to_end import ROOT, Simulator, control, run_command
from history import add_option, append

from evalcube.deploy.simulator.profile import Profile

_CASES = ["64x0", "256x0", "64x50", "256x50", "64xtails", "256xtails"]
_SPREAD = 1.5
_TAILS_MEAN = {64: 0.05, 256: 0.2}
"""Seconds; so that a machine with few cores can keep up."""


@dataclass(frozen=True)
class Case:
    """Connections, and how long the endpoint takes."""

    name: str
    connections: int
    profile: Profile
    mean: float
    """Seconds to an answer, on average."""

    @classmethod
    def parse(cls, name: str) -> Case:
        """Read ``<connections>x<milliseconds>`` or ``<connections>xtails``."""
        connections, _, kind = name.partition("x")
        if kind != "tails":
            mean = float(kind) / 1000
            return cls(name, int(connections), Profile(ability=3.0, tokens=40, latency=mean), mean)
        mean = _TAILS_MEAN.get(int(connections), 0.2)
        speed = 10 * math.exp(_SPREAD**2 / 2) / mean
        profile = Profile(ability=3.0, tokens=10, growth=0.0, spread=_SPREAD, speed=speed)
        return cls(name, int(connections), profile, mean)

    def requests(self, seconds: float) -> int:
        """How many are enough for a measurement of about so long, in whole hundreds."""
        rate = min(self.connections / self.mean if self.mean else math.inf, 3000.0)
        return max(2000, round(rate * seconds, -2).__int__())


@dataclass(frozen=True)
class Use:
    """What one side made of an endpoint."""

    case: str
    side: str
    per_second: float
    in_flight: float
    """Share of the connections that had a request at the endpoint, on average."""


def main() -> None:
    """Measure, print a table, and append the figures to the history."""
    options = _options()
    uses = []
    with Simulator() as simulator, tempfile.TemporaryDirectory() as scratch:
        for case in map(Case.parse, options.cases):
            print(f"{case.name} ...", file=sys.stderr)
            count = case.requests(options.seconds)
            uses.append(_measure(simulator, case, "raw aiohttp loop", _raw(simulator, case, count), count))
            uses.append(
                _measure(
                    simulator, case, "evalcube run", _sweep(simulator, case, count, Path(scratch)), count
                )
            )
    print_table(uses)
    append("saturation", {"seconds": options.seconds}, [asdict(use) for use in uses], options.history)


def _raw(simulator: Simulator, case: Case, count: int) -> list[str]:
    model = case.profile.model_name(case.name)
    script = str(Path(end_to_end.__file__))
    return [sys.executable, script, "--raw", simulator.base_url, model, str(count), str(case.connections)]


def _sweep(simulator: Simulator, case: Case, count: int, scratch: Path) -> list[str]:
    folder = scratch / case.name
    folder.mkdir()
    config = folder / "sweep.json"
    document = end_to_end.sweep_config(simulator.base_url, case.profile, count, case.connections, folder)
    config.write_text(json.dumps(document))
    return run_command(config)


def _measure(simulator: Simulator, case: Case, side: str, command: list[str], count: int) -> Use:
    control(simulator, "reset", data=b"")
    seen: list[tuple[float, int, int]] = []
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(simulator, seen, over))
    watch.start()
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    finally:
        over.set()
        watch.join()
    return summarise(case, side, seen, count)


def summarise(case: Case, side: str, seen: list[tuple[float, int, int]], count: int) -> Use:
    """Rate and use of the connections from looks of (time, requests so far, requests in flight)."""
    middle = [look for look in seen if 0.2 * count <= look[1] - look[2] <= 0.8 * count]
    if len(middle) < 3:
        raise SystemExit(f"benchmark: {case.name} was over before it could be looked at; give more --seconds")
    (begin, before, _), (end, after, _) = middle[0], middle[-1]
    busy = sum((b[0] - a[0]) * (a[2] + b[2]) / 2 for a, b in itertools.pairwise(middle))
    return Use(case.name, side, (after - before) / (end - begin), busy / (end - begin) / case.connections)


def _watch(simulator: Simulator, seen: list[tuple[float, int, int]], over: threading.Event) -> None:
    while not over.wait(0.05):
        stats = json.loads(control(simulator, "stats"))
        seen.append((time.perf_counter(), stats["requests"], stats["in_flight"]))


def print_table(uses: list[Use]) -> None:
    """Print the figures, and what of the raw loop's rate each sweep reaches."""
    raw = {use.case: use for use in uses if use.side.startswith("raw")}
    print(f"{'connections x ms':18}{'':18}{'requests/s':>11}{'of raw':>9}{'connections at work':>21}")
    for use in uses:
        ratio = use.per_second / raw[use.case].per_second
        print(f"{use.case:18}{use.side:18}{use.per_second:11.0f}{ratio:9.1%}{use.in_flight:21.1%}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement, about")
    parser.add_argument("--cases", nargs="+", default=_CASES, help="<connections>x<milliseconds or tails>")
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
