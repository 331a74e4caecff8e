"""What comes of `connections: auto`, with nothing configured: use, refusals and what is in flight, by kind of server.

The servers and the workers of the table run on a clock of their own (`tests/stages/infer/limit_simulation.py`), with
twenty seeds each. Then a sweep asks a server over sockets, wall to wall; beside it what Inspect AI does by default,
where it is installed.

    python benchmarks/concurrency.py [--only TEXT] [--seeds 20] [--prompts 2000] [--no-sockets | --no-simulation]
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import importlib.util
import itertools
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.stages.infer.limit_simulation import simulate  # noqa: E402 - the checkout may not be installed
from tests.stages.infer.limits import (  # noqa: E402 - the checkout may not be installed
    Bucket,
    Changing,
    Concurrency,
    FixedWindow,
    Flaky,
    SlidingWindow,
)

MOST, TIMEOUT = 256, 600.0


@dataclass
class Serving:
    """Lets everything in; works on so many at once, and slower from a knee on; the others wait in a queue."""

    slots: float = math.inf
    knee: float = math.inf
    _queue: deque[tuple[float, Callable[[], None]]] = field(default_factory=deque)
    _jobs: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: Any = field(default_factory=itertools.count)
    _done: float = 0.0
    """Seconds of work that each of those had that were there from the beginning."""
    _at: float = 0.0
    _plan: int = 0

    def asked(self, now: float, in_flight: int) -> bool:  # noqa: ARG002 - what other limits depend on
        """Whether a request is let in."""
        return True

    def serve(self, seconds: float, done: Callable[[], None], world: Any) -> None:  # noqa: ANN401
        """Work on a request that takes so long alone."""
        self._advance(world.now)
        if len(self._jobs) < self.slots:
            heapq.heappush(self._jobs, (self._done + seconds, next(self._order), done))
            self._next(world)
        else:
            self._queue.append((seconds, done))

    def _speed(self) -> float:
        return min(1.0, self.knee / max(len(self._jobs), 1))

    def _advance(self, now: float) -> None:
        self._done += (now - self._at) * self._speed()
        self._at = now

    def _next(self, world: Any) -> None:  # noqa: ANN401
        self._plan += 1
        plan = self._plan
        if self._jobs:
            due = world.now + max(self._jobs[0][0] - self._done, 0.0) / self._speed()
            world.at(due, lambda: self._finish(plan, world))

    def _finish(self, plan: int, world: Any) -> None:  # noqa: ANN401
        if plan != self._plan:
            return
        self._advance(world.now)
        _, _, done = heapq.heappop(self._jobs)
        if self._queue:
            seconds, waiting = self._queue.popleft()
            heapq.heappush(self._jobs, (self._done + seconds, next(self._order), waiting))
        self._next(world)
        done()


@dataclass
class Tokens(Bucket):
    """So many tokens a second, in means of an answer: what a long one takes, those that come next have to wait for."""

    _random: random.Random = field(default_factory=lambda: random.Random(2))

    def asked(self, now: float, in_flight: int) -> bool:
        """Whether a request is let in."""
        taken = super().asked(now, in_flight)
        self._level -= taken * (self._random.lognormvariate(-0.72, 1.2) - 1.0)
        return taken


@dataclass
class Down:
    """Nobody is there from some time on until another, as where a server is started again."""

    at: float
    until: float
    rate: float = math.nan

    def asked(self, now: float, in_flight: int) -> bool:  # noqa: ARG002 - what other limits depend on
        """Whether a request is let in."""
        return not self.at <= now < self.until

    def pause(self, now: float) -> float:  # noqa: ARG002 - what other limits depend on
        """Seconds that a refusal asks to wait."""
        return 0.0


@dataclass
class Failing(Flaky):
    """A limit, in front of which some requests fail whatever the rate."""

    limit: Any = None

    def asked(self, now: float, in_flight: int) -> bool:
        """Whether a request is let in."""
        return super().asked(now, in_flight) and self.limit.asked(now, in_flight)


class Row(NamedTuple):
    """A server, and what is the best at it."""

    make: Callable[[], Any]
    best: float
    """Answers per second."""
    latency: Any = 0.5
    seconds: float = 180.0
    warm_up: float = 30.0
    workers: tuple[int, ...] = (1,)
    status: int = 429
    turn: float = 0.0
    """Seconds for which one worker after another has nothing to ask."""


def _varied(mean_seconds: float) -> Callable[[random.Random], float]:
    return lambda rng: mean_seconds * rng.lognormvariate(-0.72, 1.2)


def _thinking(rng: random.Random) -> float:
    return float(10.0 * 12.0 ** rng.random())


ALL = (1, 2, 4)
ROWS: dict[str, Row] = {
    "never full, 50 ms": Row(lambda: Flaky(0.0), MOST / 0.052, 0.05, 12.0, 2.0, (1, 4)),
    "never full, 500 ms": Row(lambda: Flaky(0.0), MOST / 0.502, 0.5, 60.0, 5.0, ALL),
    "never full, 5 s": Row(lambda: Flaky(0.0), MOST / 5.0, 5.0, 300.0, 40.0, (1, 4)),
    "never full, one worker in turn has no work": Row(
        lambda: Flaky(0.0), MOST / 0.502, _varied(0.5), 180.0, 30.0, (2, 4), turn=15.0
    ),
    "4 slots and a queue": Row(lambda: Serving(4), 8.0, warm_up=60.0, workers=ALL),
    "32 slots and a queue": Row(lambda: Serving(32), 64.0, warm_up=60.0, workers=ALL),
    "256 slots and a queue": Row(lambda: Serving(256), 512.0, seconds=90.0),
    "4 slots, answers of 60 s": Row(lambda: Serving(4), 4 / 60, 60.0, 12_000.0, 4000.0),
    "4 slots, answers of 150 s": Row(lambda: Serving(4), 4 / 150, 150.0, 30_000.0, 10_000.0),
    "batching, knee at 64": Row(lambda: Serving(knee=64), 128.0, warm_up=60.0),
    "batching, knee at 64, log-normal": Row(lambda: Serving(knee=64), 128.0, _varied(0.5), 400.0, 100.0),
    "32 slots, log-normal": Row(lambda: Serving(32), 6.4, _varied(5.0), 1200.0, 300.0),
    "thinking models, 10 to 120 s, knee at 64": Row(
        lambda: Serving(knee=64), 64 / 44.3, _thinking, 6000.0, 1500.0
    ),
    "429 at 10/s": Row(lambda: Bucket(10, 10), 10.0, workers=ALL),
    "429 at 10/s, Retry-After": Row(lambda: Bucket(10, 10, 1.0), 10.0, workers=ALL),
    "429 at 10/s, log-normal 5 s": Row(lambda: Bucket(10, 10), 10.0, _varied(5.0), 600.0),
    "429 at 600/min without burst": Row(lambda: Bucket(10), 10.0, workers=ALL),
    "429 at 2/s without burst": Row(lambda: Bucket(2), 2.0, seconds=600.0, warm_up=60.0, workers=(1, 4)),
    "429 at 600 in any minute": Row(lambda: SlidingWindow(600), 10.0, seconds=600.0, warm_up=60.0),
    "429 at 600 in a clock's minute": Row(lambda: FixedWindow(600), 10.0, seconds=600.0, warm_up=60.0),
    "429 at 500 in a clock's minute, log-normal 20 s": Row(
        lambda: FixedWindow(500), 500 / 60, _varied(20.0), seconds=1500.0, warm_up=300.0, workers=(1, 4)
    ),
    "429 at 600 in a clock's minute, Retry-After": Row(
        lambda: FixedWindow(600, says=True), 10.0, seconds=600.0, warm_up=60.0, workers=(1, 4)
    ),
    "429 by tokens, 10/s on average": Row(
        lambda: Tokens(10, 600), 10.0, seconds=900.0, warm_up=240.0, workers=(1, 4)
    ),
    "429 by tokens, Retry-After": Row(
        lambda: Tokens(10, 600, 1.0), 10.0, seconds=900.0, warm_up=240.0, workers=(1, 4)
    ),
    "429 at 100/s": Row(lambda: Bucket(100, 100), 100.0, workers=(1, 4)),
    "429 at 32 in flight": Row(lambda: Concurrency(32, 0.5), 64.0, workers=ALL),
    "429 at 32 in flight, log-normal": Row(lambda: Concurrency(32, 0.5), 64.0, _varied(0.5), workers=ALL),
    **{
        f"{share:.0%} of 503s": Row(
            lambda share=share: Flaky(share),
            MOST * (1 - share) / ((1 - share) * 0.502 + share * 0.003),
            seconds=90.0,
            workers=(1, 4),
            status=503,
        )
        for share in (0.1, 0.3)
    },
    **{
        f"{share:.0%} of 503s under 10/s": Row(
            lambda share=share: Failing(share, limit=Bucket(10, 10)), 10.0, status=503
        )
        for share in (0.1, 0.3)
    },
    "503 while a server restarts, 60 to 90 s": Row(
        lambda: Down(60.0, 90.0), MOST / 0.502, warm_up=100.0, workers=(1, 4), status=503
    ),
    "20/s, after 100 s 10/s": Row(
        lambda: Changing(Bucket(20, 20), Bucket(10, 10), 100.0), 10.0, warm_up=110.0
    ),
    "10/s, after 100 s 20/s": Row(
        lambda: Changing(Bucket(10, 10), Bucket(20, 20), 100.0), 20.0, seconds=300.0, warm_up=130.0
    ),
}


def _simulated(work: tuple[str, int, int]) -> tuple[float, float, float, float, float]:
    """Use, share refused, in flight, part of the timeout that is waited, and time-outs, of one seed."""
    name, workers, seed = work
    row = ROWS[name]
    _, after = simulate(
        row.make(),
        latency=row.latency,
        workers=workers,
        connections=MOST,
        start=16,
        seconds=row.seconds,
        warm_up=row.warm_up,
        seed=seed,
        status=row.status,
        turn=row.turn,
    )
    return after.use(row.best), after.refused_share, after.in_flight, after.waited / TIMEOUT, after.overdue


def _simulate(only: str, seeds: int) -> None:
    print("| server | workers | used (worst) | refused (worst) | in flight | waited / timeout | time-outs |")
    print("|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor() as pool:
        for name, row in ROWS.items():
            if only not in name:
                continue
            for workers in row.workers:
                works = [(name, workers, seed) for seed in range(seeds)]
                used, refused, in_flight, waited, late = zip(*pool.map(_simulated, works), strict=True)
                print(
                    f"| {name} | {workers} | {mean(used):.0%} ({min(used):.0%}) | {mean(refused):.1%} "
                    f"({max(refused):.1%}) | {mean(in_flight):.0f} | {mean(waited):.3f} | {mean(late):.1f} |",
                    flush=True,
                )


# Over sockets

SOCKETS = {
    "500 ms, never full": "free",
    "500 ms, 4 slots and a queue": "slots",
    "500 ms, 429 at 10/s": "rate",
}
PARTS = {"free": 1.0, "slots": 0.1, "rate": 0.2}
"""Of the prompts that are asked at each."""


async def _serve(kind: str) -> None:
    """A server of chat completions on a free port, which it prints; ends with its standard input."""
    from aiohttp import web

    slots, bucket = asyncio.Semaphore(4 if kind == "slots" else 10**6), Bucket(10, 10)
    loop, counts = asyncio.get_running_loop(), {"answered": 0, "refused": 0, "in_flight": 0, "most": 0}
    body = {"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop", "index": 0}

    async def answer(_: web.Request) -> web.Response:
        if kind == "rate" and not bucket.asked(loop.time(), 0):
            counts["refused"] += 1
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        counts["in_flight"] += 1
        counts["most"] = max(counts["most"], counts["in_flight"])
        async with slots:
            await asyncio.sleep(0.5)
        counts["in_flight"] -= 1
        counts["answered"] += 1
        usage = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
        made = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
        return web.json_response({**made, "choices": [body], "usage": usage})

    async def told(_: web.Request) -> web.Response:
        return web.json_response(counts)

    application = web.Application()
    application.add_routes([web.post("/v1/chat/completions", answer), web.get("/counts", told)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def _evalcube(url: str, prompts: int, folder: Path) -> list[str]:
    config = {
        "cube": str(folder / "cube.zarr"),
        "cache": str(folder / "cache"),
        "trials": prompts,
        "models": [{"name": "m", "endpoint": url}],
        "tasks": {"arithmetic": {"manifold": [{"points": [{"length": 8}]}]}},
    }
    path = folder / "sweep.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return [sys.executable, "-m", "evalcube", "run", str(path)]


def _inspect(url: str, prompts: int, folder: Path) -> list[str]:
    path = folder / "task.py"
    path.write_text(
        "from inspect_ai import Task, eval\n"
        "from inspect_ai.dataset import Sample\n"
        "from inspect_ai.scorer import match\n"
        f"samples = [Sample(input=f'{{n}} + 1 =', target='42') for n in range({prompts})]\n"
        f"eval(Task(dataset=samples, scorer=match()), model='openai-api/here/m', display='none',\n"
        f"     log_dir={str(folder)!r}, model_base_url={url!r}, model_args={{'api_key': 'none'}})\n",
        encoding="utf-8",
    )
    return [sys.executable, str(path)]


def _over_sockets(only: str, prompts: int) -> None:
    import urllib.request

    askers = {"evalcube": _evalcube}
    if importlib.util.find_spec("inspect_ai") is not None:
        askers["Inspect AI"] = _inspect
    print("\n| server | prompts | asked by | seconds | answered | refused | most in flight |")
    print("|---|---|---|---|---|---|---|")
    for (name, kind), (asker, make) in itertools.product(SOCKETS.items(), askers.items()):
        if only not in name:
            continue
        number = max(int(prompts * PARTS[kind]), 1)
        command = [sys.executable, __file__, "--serve", kind]
        with (
            tempfile.TemporaryDirectory() as scratch,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        ):
            listening, ending = server.stdout, server.stdin
            url = f"http://127.0.0.1:{int(listening.readline()) if listening else 0}"
            asking = make(f"{url}/v1", number, Path(scratch))
            begun = time.monotonic()
            done = subprocess.run(asking, capture_output=True, text=True, check=False)
            seconds = time.monotonic() - begun
            with urllib.request.urlopen(f"{url}/counts") as reply:  # noqa: S310 - our own server
                counts = json.load(reply)
            if ending:
                ending.close()
        if done.returncode:
            raise SystemExit(f"benchmark: {asker} ended with {done.returncode}: {done.stderr[-2000:]}")
        columns = [counts[key] for key in ("answered", "refused", "most")]
        print(
            f"| {name} | {number} | {asker} | {seconds:.1f} | {' | '.join(map(str, columns))} |", flush=True
        )


def main() -> None:
    """Simulate, ask over sockets, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose name contains it")
    parser.add_argument("--seeds", type=int, default=20, help="of each simulated row")
    parser.add_argument("--prompts", type=int, default=2000, help="asked over sockets")
    parser.add_argument("--simulation", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--sockets", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--serve", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(options.serve))
        return
    if options.simulation:
        _simulate(options.only, options.seeds)
    if options.sockets:
        _over_sockets(options.only, options.prompts)


if __name__ == "__main__":
    main()
