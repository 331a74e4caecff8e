"""What a trial costs: CPU seconds per 1 000 trials of a whole sweep, beside a raw aiohttp loop, in one run.

Both sides ask the same simulated endpoint, a process of its own that is not counted. CPU is user + system time of
every process of a side: for a sweep the command line, the scheduler and all workers. A sweep has a fixed cost to
start (imports, processes), so it is run at two sizes: the slope is the cost of a trial, the rest is the start.

    python benchmarks/end_to_end.py [--trials N] [--latency 0 0.05] [--connections 64] [--history FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from history import add_option, append, previous

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evalcube.deploy.simulator.profile import Profile  # noqa: E402
from evalcube.deploy.simulator.truth import HEADER, Truth, encode  # noqa: E402
from tests.simulator.managed import Simulator  # noqa: E402 - the checkout may not be installed


@dataclass(frozen=True)
class Cost:
    """One side at one latency."""

    side: str
    latency: float
    """Seconds that the endpoint waits before it answers."""
    cpu_per_1000: float
    """CPU seconds per 1 000 trials."""
    per_second: float
    """Trials per second of wall time, start-up left out."""
    start_cpu: float = 0.0
    """CPU seconds that do not depend on the number of trials."""


def main() -> None:
    """Measure, print a table, and append the figures to the history."""
    options = _options()
    with Simulator() as simulator, tempfile.TemporaryDirectory() as scratch:
        costs = []
        for latency in options.latency:
            print(f"latency {latency * 1000:g} ms ...", file=sys.stderr)
            costs.append(measure_raw(simulator, latency, options))
            costs.append(measure_sweep(simulator, latency, options, Path(scratch)))
    print_table(costs)
    settings = {"trials": options.trials, "connections": options.connections, "latency": options.latency}
    before = previous("end_to_end", settings, options.history)
    if before is not None:
        _print_change(before, costs)
    append("end_to_end", settings, [asdict(cost) for cost in costs], options.history)


def measure_raw(simulator: Simulator, latency: float, options: argparse.Namespace) -> Cost:
    """A bare aiohttp loop in a process of its own: the least that Python and aiohttp can do."""
    model = _profile(latency).model_name("bench")
    small, large = (
        _timed(
            [sys.executable, __file__, "--raw", simulator.base_url, model, str(n), str(options.connections)]
        )
        for n in (options.trials // 5, options.trials)
    )
    return _cost("raw aiohttp loop", latency, small, large, options)


def measure_sweep(simulator: Simulator, latency: float, options: argparse.Namespace, scratch: Path) -> Cost:
    """The command line's own `run`, as a user types it, with its default cluster."""
    timings = []
    for n in (options.trials // 5, options.trials):
        folder = scratch / f"{latency}-{n}"
        folder.mkdir()
        config = folder / "sweep.json"
        document = sweep_config(simulator.base_url, _profile(latency), n, options.connections, folder)
        config.write_text(json.dumps(document))
        timings.append(_timed(run_command(config)))
    return _cost("evalcube run", latency, *timings, options)


def sweep_config(
    base_url: str, profile: Profile, trials: int, connections: int, folder: Path
) -> dict[str, object]:
    """A sweep of so many trials of cheap tasks by one simulated model; cube and cache in a folder."""
    points = [{"length": n} for n in (3, 4, 5, 6, 8)]
    return {
        "name": "bench",
        "trials": trials // 10,
        "cube": str(folder / "cube.zarr"),
        "cache": str(folder / "cache"),
        "models": [
            {
                "name": "bench",
                "endpoint": f"sim:{base_url}",  # so that it knows the answers, as it does of the raw loop
                "simulate": {
                    "ability": profile.ability,
                    "tokens": profile.tokens,
                    "latency": profile.latency,
                },
                "limits": {"connections": connections},
            }
        ],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 16384}},
        "tasks": {
            "arithmetic": {"manifold": [{"points": points, "tiers": ["easy"]}]},
            "boolean": {"manifold": [{"points": points, "tiers": ["easy"]}]},
        },
    }


def run_command(config: Path) -> list[str]:
    """The command line that runs a sweep, as a user types it."""
    return [sys.executable, "-m", "evalcube", "run", str(config), "--quiet", "--json"]


def control(simulator: Simulator, what: str, data: bytes | None = None) -> bytes:
    """What the simulator says of itself, such as its ``stats``; with data it is told something."""
    address = f"{simulator.base_url.removesuffix('/v1')}/control/{what}"
    with urllib.request.urlopen(urllib.request.Request(address, data=data), timeout=30) as reply:  # noqa: S310
        answer: bytes = reply.read()
    return answer


def _profile(latency: float) -> Profile:
    return Profile(ability=3.0, tokens=40, latency=latency)


def _cost(
    side: str,
    latency: float,
    small: tuple[float, float],
    large: tuple[float, float],
    options: argparse.Namespace,
) -> Cost:
    extra = options.trials - options.trials // 5
    slope = (large[0] - small[0]) / extra
    wall = (large[1] - small[1]) / extra
    return Cost(
        side, latency, slope * 1000, 1 / wall if wall > 0 else float("inf"), large[0] - slope * options.trials
    )


def _timed(command: list[str]) -> tuple[float, float]:
    """(CPU seconds of the command and all its descendants, wall seconds)."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"benchmark: {' '.join(command[:5])} ... ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - begun


async def raw_loop(base_url: str, model: str, count: int, connections: int) -> None:
    """Send `count` requests over `connections` connections and read the replies as JSON."""
    import aiohttp

    url, left = f"{base_url}/chat/completions", iter(range(count))

    async def carry(session: aiohttp.ClientSession) -> None:
        for index in left:
            messages = [
                {"role": "user", "content": f"What is {index} + 1? End with a last line Answer: <integer>"}
            ]
            body = json.dumps({"model": model, "messages": messages, "temperature": 0, "max_tokens": 16384})
            headers = {
                "Content-Type": "application/json",
                HEADER: encode(Truth(str(index + 1), difficulty=6.0)),
            }
            async with session.post(url, data=body, headers=headers) as reply:
                document = await reply.json()
                if "choices" not in document:
                    raise SystemExit("the simulator gave no answer")

    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(carry(session) for _ in range(connections)))


def print_table(costs: list[Cost]) -> None:
    """Print the figures, and the ratio of each sweep to the raw loop beside it."""
    raw = {cost.latency: cost for cost in costs if cost.side.startswith("raw")}
    print(f"{'':18}{'latency':>9}{'CPU s / 1 000':>15}{'ratio':>8}{'trials/s':>10}{'start CPU s':>13}")
    for cost in costs:
        ratio = cost.cpu_per_1000 / raw[cost.latency].cpu_per_1000
        print(
            f"{cost.side:18}{cost.latency * 1000:6.0f} ms{cost.cpu_per_1000:15.3f}{ratio:8.2f}"
            f"{cost.per_second:10.0f}{cost.start_cpu:13.1f}"
        )


def _print_change(before: dict[str, Any], costs: list[Cost]) -> None:
    """Print the ratio to the raw loop beside that of the run before, as seconds differ from hour to hour."""
    then = [Cost(**figures) for figures in before["figures"]]
    for latency in sorted({cost.latency for cost in costs}):
        now, old = _ratio(costs, latency), _ratio(then, latency)
        when = f"{before['date']} ({before['commit']})"
        print(f"at {latency * 1000:g} ms: {now:.2f} times the raw loop; {old:.2f} on {when}")


def _ratio(costs: list[Cost], latency: float) -> float:
    raw, sweep = (cost.cpu_per_1000 for cost in costs if cost.latency == latency)
    return sweep / raw


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=10_000, help="of the larger of the two runs")
    parser.add_argument("--latency", type=float, nargs="+", default=[0.0, 0.05], help="seconds")
    parser.add_argument("--connections", type=int, default=64)
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--raw"]:
        url, name, number, width = sys.argv[2:]
        asyncio.run(raw_loop(url, name, int(number), int(width)))
    else:
        main()
