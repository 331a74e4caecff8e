"""How much of an endpoint a sweep uses, and what CPU a request costs meanwhile, beside a raw aiohttp loop.

Both sides ask the same simulated endpoint in turn. It is looked at twenty times a second from outside; what counts is
the time between the first fifth and the last fifth of the requests, so that neither start nor end is in it. The CPU is
that of all processes of a side, and the bound is connections ÷ seconds to an answer. A case that ends in ``-data`` asks
the questions of a file, others made-up ones.

    python benchmarks/saturation.py [--seconds N] [--cases 64x0 64x50 64x50-data ...] [--history FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import end_to_end
import psutil
from end_to_end import ROOT, Simulator, control, run_command
from history import add_option, append

from evalcube.deploy.simulator.profile import Profile

_CASES = ["64x0", "64x0-data", "256x0", "64x50", "64x50-data", "256x50"]
_DATA = "-data"


@dataclass(frozen=True)
class Case:
    """Connections, and how long the endpoint takes."""

    name: str
    connections: int
    profile: Profile

    @classmethod
    def parse(cls, name: str) -> Case:
        """Read ``<connections>x<milliseconds>``, with or without ``-data``."""
        connections, _, milliseconds = name.removesuffix(_DATA).partition("x")
        profile = Profile(ability=3.0, tokens=40, latency=float(milliseconds) / 1000)
        return cls(name, int(connections), profile)

    def requests(self, seconds: float) -> int:
        """How many are enough for a measurement of about so long, in whole hundreds."""
        return max(2000, round(min(self.bound, 3000.0) * seconds, -2).__int__())

    @property
    def bound(self) -> float:
        """As many answers a second as so many connections can get; infinite where an answer takes no time."""
        return self.connections / self.profile.latency if self.profile.latency else math.inf


@dataclass(frozen=True)
class Use:
    """What one side made of an endpoint."""

    case: str
    side: str
    per_second: float
    in_flight: float
    """Share of the connections that had a request at the endpoint, on average."""
    cpu_per_1000: float
    """CPU seconds per 1 000 requests."""
    of_bound: float
    """Requests per second ÷ as many as so many connections can make; NaN where answers take no time."""


class Look(NamedTuple):
    """What was seen at one moment."""

    at: float
    requests: int
    in_flight: int
    cpu: float
    """Seconds of all processes so far."""


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
    if case.name.endswith(_DATA):
        document |= {"tasks": _questions(folder / "questions.jsonl", count), "trials": count}
    config.write_text(json.dumps(document))
    return run_command(config)


def _questions(file: Path, count: int) -> dict[str, object]:
    """The task that asks so many questions of a file."""
    rows = (
        {"question": f"{index}: {'what is left of it? ' * 20}", "answer": index} for index in range(count)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    grid = {"file": [str(file)], "prompt": ["question"], "kind": ["number"]}
    return {"dataset": {"manifold": [{"grid": grid, "tiers": ["easy"]}]}}


def _measure(simulator: Simulator, case: Case, side: str, command: list[str], count: int) -> Use:
    control(simulator, "reset", data=b"")
    seen: list[Look] = []
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.Error):  # one that has just ended
            stats = json.loads(control(simulator, "stats"))
            cpu = sum(sum(each.cpu_times()[:2]) for each in (watched, *watched.children(recursive=True)))
            seen.append(Look(time.perf_counter(), stats["requests"], stats["in_flight"], cpu))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"benchmark: {' '.join(command[:5])} ... ended with {process.returncode}")
    return summarise(case, side, seen, count)


def summarise(case: Case, side: str, seen: Sequence[Look], count: int) -> Use:
    """Rate, use of the connections and CPU from what was seen."""
    middle = [look for look in seen if 0.2 * count <= look.requests - look.in_flight <= 0.8 * count]
    if len(middle) < 3:
        raise SystemExit(f"benchmark: {case.name} was over before it could be looked at; give more --seconds")
    first, last = middle[0], middle[-1]
    seconds, requests = last.at - first.at, last.requests - first.requests
    busy = sum((b.at - a.at) * (a.in_flight + b.in_flight) / 2 for a, b in itertools.pairwise(middle))
    rate = requests / seconds
    cpu = (last.cpu - first.cpu) / requests * 1000
    of_bound = rate / case.bound if case.profile.latency else math.nan
    return Use(case.name, side, rate, busy / seconds / case.connections, cpu, of_bound)


def print_table(uses: list[Use]) -> None:
    """Print the figures, and how each sweep compares with the raw loop."""
    raw = {use.case: use for use in uses if use.side.startswith("raw")}
    print(
        f"{'connections x ms':18}{'':18}{'requests/s':>11}{'of raw':>8}{'of bound':>10}{'at work':>9}"
        f"{'CPU s / 1 000':>15}{'x raw':>7}"
    )
    for use in uses:
        beside = raw[use.case]
        print(
            f"{use.case:18}{use.side:18}{use.per_second:11.0f}{use.per_second / beside.per_second:8.1%}"
            f"{use.of_bound:10.1%}{use.in_flight:9.1%}{use.cpu_per_1000:15.3f}"
            f"{use.cpu_per_1000 / beside.cpu_per_1000:7.2f}"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement, about")
    parser.add_argument("--cases", nargs="+", default=_CASES, help="<connections>x<milliseconds>")
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
