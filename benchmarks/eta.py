"""How well displays foretell the end of a run: records the events of real runs, and replays them with another clock.

The runs ask simulated models that answer slowly: models of uneven speed, a run that goes on after another one, one with
part of its answers in the cache, and endpoints that refuse requests and want pauses. The tests replay what is kept in
``tests/data/progress``.

    python benchmarks/eta.py [--record FOLDER]
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalcube.flows.run.events import Asked, BlockDone, Event, Extended, Finished, Started, Traffic
from evalcube.flows.run.progress import Progress
from evalcube.flows.run.summary import Tracker
from evalcube.flows.run.sweep import run
from tests.simulator.managed import Simulator

KEPT = Path(__file__).parents[1] / "tests" / "data" / "progress"
LOOK = 0.5
_TRAFFIC = ("sent", "replies", "in_flight", "completion_tokens", "usage", "answered", "waiting", "worker")
_BLOCK = ("key", "model", "trials", "cached", "transport", "missing")


class Recorder:
    """A subscriber that keeps events with their times."""

    def __init__(self) -> None:
        self._begun = 0.0
        self.lines: list[str] = []

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        if isinstance(event, Started):
            self._begun = time.monotonic()
            fields: dict[str, Any] = {
                name: getattr(event, name) for name in ("trials", "done", "models", "recorded", "prices")
            } | {"asked": [asdict(one) for one in event.asked]}
        elif isinstance(event, Traffic):
            fields = {name: getattr(event, name) for name in _TRAFFIC}
        elif isinstance(event, BlockDone):
            fields = {name: getattr(event, name) for name in _BLOCK}
        elif isinstance(event, Finished):
            fields = {"reason": event.reason}
        else:
            return
        at = round(time.monotonic() - self._begun, 3)
        self.lines.append(json.dumps([at, type(event).__name__, fields]))


def replayed(lines: Iterator[str] | list[str]) -> Iterator[tuple[float, Event]]:
    """The events of a recording with their times."""
    kinds: dict[str, Callable[..., Event]] = {
        "Traffic": Traffic,
        "BlockDone": BlockDone,
        "Extended": Extended,
        "Finished": Finished,
    }
    for line in lines:
        at, kind, fields = json.loads(line)
        if kind == "Started":
            asked = tuple(Asked(**one) for one in fields.pop("asked"))
            yield at, Started("recorded", "cube", asked=asked, **fields)
        else:
            yield at, kinds[kind](**fields)


def foretold(
    lines: Iterator[str] | list[str],
) -> tuple[float, list[tuple[float, float | None, float | None]]]:
    """When a recorded run ended, and what was foretold at each look: time, seconds left, USD at the end."""
    now = 0.0
    progress = Progress(Tracker(lambda: now))
    looks, found, end = 0.0, [], 0.0
    for at, event in replayed(lines):
        while looks <= at:
            now = looks
            progress.look()
            state = progress.now()
            found.append((now, state.eta, state.usd_at_end))
            looks += LOOK
        now = at
        progress(event)
        if isinstance(event, BlockDone):
            end = at
    return end, [one for one in found if one[0] <= end]


def _model(name: str, server: Simulator, latency: float, tokens: int, **limits: float) -> dict[str, Any]:
    return {
        "name": name,
        "endpoint": f"sim:{server.base_url}",
        "simulate": {"ability": 3.0, "tokens": tokens, "latency": latency, "speed": 60},
        "limits": {"connections": 4, "timeout": 60, **limits},
        "prices": {"prompt": 1.0, "completion": 2.0},
    }


def _config(folder: Path, models: list[dict[str, Any]], trials: int) -> dict[str, Any]:
    tasks = {
        name: {"manifold": [{"grid": {"length": [3, 5]}, "tiers": ["easy"]}]}
        for name in ("arithmetic", "boolean")
    }
    return {
        "name": "eta",
        "trials": trials,
        "cube": str(folder / "cube.zarr"),
        "cache": str(folder / "cache"),
        "models": models,
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 200}},
        "tasks": tasks,
    }


def record(name: str, folder: Path) -> list[str]:
    """Run a scenario and return its events."""
    recorder = Recorder()
    with ExitStack() as stack:
        refuses = {"kind": "status", "status": 429, "retry_after": "1", "share": 0.06, "first": 1}
        faults = ("[]", json.dumps([refuses]) if name == "limits" else "[]", "[]")
        servers = [stack.enter_context(Simulator(faults=one)) for one in faults]
        models = [
            _model("fast", servers[0], 0.05, 5),
            _model("middle", servers[1], 0.3, 15),
            _model("slow", servers[2], 0.6, 40),
        ]
        if name == "limits":
            strict = _model("strict", servers[0], 0.1, 10, requests_per_minute=240)
            refusing = _model("refusing", servers[1], 0.3, 15)
            models = [strict, refusing]
        config = _config(folder, models, 64 if name == "limits" else 32)
        if name == "resumed":
            run(config, trials="12")
        if name == "cached":
            run(config, trials="12")
            shutil.rmtree(config["cube"])
        run(config, subscribers=[recorder])
    return recorder.lines


SCENARIOS = ("uneven", "resumed", "cached", "limits")


def main() -> None:
    """Record if asked to, replay, and print by how much the end was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, help="record the scenarios anew into this folder")
    parser.add_argument("--only", choices=SCENARIOS, help="this scenario alone")
    options = parser.parse_args()
    folder = options.record or KEPT
    for name in (options.only,) if options.only else SCENARIOS:
        path = folder / f"{name}.jsonl.gz"
        if options.record:
            with tempfile.TemporaryDirectory() as scratch:
                lines = record(name, Path(scratch))
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
        end, looks = foretold(gzip.decompress(path.read_bytes()).decode().splitlines())
        late = [(at, eta) for at, eta, _ in looks if at > end / 3]
        misses = [(at + (eta or 0.0)) / end - 1 for at, eta in late]
        middle, silent = statistics.median(map(abs, misses)), sum(eta is None for _, eta in late)
        print(
            f"{name:8} {end:5.1f} s; of the whole, missed by {100 * min(misses):+.0f} to {100 * max(misses):+.0f} %, "
            f"median {100 * middle:.0f} %; {silent} looks without a word"
        )


if __name__ == "__main__":
    main()
