"""What grows with a sweep, and what does not: a sweep of 100 000 trials beside one of a million, in one run.

For each size: seconds until the first request, the most memory of the driver, the time to resume the finished sweep
(which must ask nothing), and the time to plan it anew.

    python benchmarks/scale.py [--trials 100000 1000000] [--connections 64] [--history FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from end_to_end import ROOT, Simulator, control, run_command, sweep_config
from history import add_option, append

from evalcube.deploy.simulator.profile import Profile

_MEGABYTE = 1024


@dataclass(frozen=True)
class Growth:
    """One size of a sweep."""

    trials: int
    first_request: float
    """Seconds from the command to the first request at the endpoint."""
    seconds: float
    """From the command to its end."""
    driver_megabytes: int
    """Most resident memory of the driver, which holds the scheduler, too."""
    tasks: int
    """Dask tasks, about: three of each block, and two of each region."""
    resume: float
    """Seconds of the same command again."""
    asked_again: int
    """Requests that it sent."""
    plan: float
    """Seconds of a plan of the same sweep with another seed, of which nothing is done."""
    worker_megabytes: int
    """Most resident memory of a process that the driver has started; 0 where it works by itself."""
    cube: tuple[int, int, int]
    """Files, folders and bytes."""
    cache: tuple[int, int, int]


def main() -> None:
    """Measure, print a table, and append the figures to the history."""
    options = _options()
    with Simulator() as simulator, tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        grown = [measure(simulator, n, options.connections, Path(scratch)) for n in options.trials]
    print_table(grown)
    append("scale", {"connections": options.connections}, [asdict(each) for each in grown], options.history)


def measure(simulator: Simulator, trials: int, connections: int, scratch: Path) -> Growth:
    """Run, resume and plan a sweep of so many trials."""
    print(f"{trials} trials ...", file=sys.stderr)
    folder = scratch / str(trials)
    folder.mkdir()
    profile = Profile(ability=3.0, tokens=40)
    document = sweep_config(simulator.base_url, profile, trials, connections, folder)
    config, other = folder / "sweep.json", folder / "other.json"
    config.write_text(json.dumps(document))
    other.write_text(json.dumps({**document, "seed": 7, "cube": str(folder / "other.zarr")}))
    before, events = _requests(simulator), folder / "events.jsonl"

    begun = time.perf_counter()
    first, most, worker = 0.0, 0, 0
    command = [*run_command(config), "--log", str(events)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    while process.poll() is None:
        first = first or (time.perf_counter() - begun if _requests(simulator) > before else 0.0)
        most = max(most, _peak(process.pid))
        worker = max(worker, *map(_peak, _descendants(process.pid)), 0)
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"benchmark: the sweep of {trials} trials ended with {process.returncode}")
    seconds = time.perf_counter() - begun
    told = [json.loads(line)["event"] for line in events.read_text().splitlines()]
    asked = _requests(simulator)
    resume = _timed(run_command(config))
    return Growth(
        trials,
        first,
        seconds,
        most // _MEGABYTE,
        3 * told.count("block") + 2 * told.count("region"),
        resume,
        _requests(simulator) - asked,
        _timed([sys.executable, "-m", "evalcube", "plan", str(other)]),
        worker // _MEGABYTE,
        _weighed(folder / "cube.zarr"),
        _weighed(folder / "cache"),
    )


def _timed(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - begun


def _requests(simulator: Simulator) -> int:
    count: int = json.loads(control(simulator, "stats"))["requests"]
    return count


def _peak(pid: int) -> int:
    """Most resident memory that a process ever had, in KiB."""
    try:
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that they have."""
    try:
        started = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [each for child in map(int, started) for each in (child, *_descendants(child))]


def _weighed(folder: Path) -> tuple[int, int, int]:
    paths = [*folder.rglob("*")]
    sizes = [path.stat().st_size for path in paths if path.is_file()]
    return len(sizes), len(paths) - len(sizes), sum(sizes)


def print_table(grown: list[Growth]) -> None:
    """Print a row for each size."""
    print(
        f"{'trials':>10}{'first request':>15}{'seconds':>9}{'trials/s':>10}{'driver MB':>11}{'trials/task':>13}"
        f"{'resume':>8}{'asked again':>13}{'plan':>7}{'worker MB':>11}  files, folders, bytes of cube, of cache"
    )
    for each in grown:
        print(
            f"{each.trials:10}{each.first_request:13.1f} s{each.seconds:9.0f}{each.trials / each.seconds:10.0f}"
            f"{each.driver_megabytes:11}{each.trials / max(each.tasks, 1):13.0f}{each.resume:6.1f} s"
            f"{each.asked_again:13}{each.plan:5.1f} s{each.worker_megabytes:11}  {each.cube}, {each.cache}"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument(
        "--folder", type=Path, help="for cubes and caches, about 1 GB; default: the temporary one"
    )
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
