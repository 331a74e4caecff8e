"""What a scheduler costs with hundreds of workers: its CPU for an idle second and for a block of trials.

A scheduler in a process of its own serves workers of which some share a process, so that a thousand fit on one
machine: they are Dask's own, with their heartbeats and the reports that a sweep's workers send. Blocks
are real ones, their three tasks only wait. So many workers of one machine are slower than they would be on machines of
their own; the scheduler is not.

    python benchmarks/scheduler.py [--workers 10 100 1000] [--blocks 3000]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import numpy as np
from distributed import Client, Scheduler, Worker, as_completed

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evalcube.deploy.clusters.local import SETTINGS  # noqa: E402 - the checkout may not be installed
from evalcube.flows.events import BlockDone, Traffic, as_message  # noqa: E402
from evalcube.flows.plan.targets import Block, Window  # noqa: E402
from evalcube.storage.cube.regions import Region  # noqa: E402

_IN_ONE_PROCESS = 125
_BLOCK = 1024
_IDLE_SECONDS = 10.0
_REPORT_SECONDS = 0.5
_MOST_REPORTS = 200
"""Per second, of all workers; see `evalcube.flows.run.worker.plugin`."""


def main() -> None:
    """Measure and print a table."""
    options = _options()
    print(f"{'workers':>8}{'idle CPU':>10}{'ms / block':>12}{'trials/s of a core':>20}{'MB':>7}")
    for count in options.workers:
        idle, block, megabytes = measure(count, options.blocks)
        print(f"{count:8}{idle:10.1%}{block * 1000:12.2f}{_BLOCK * (1 - idle) / block:20.0f}{megabytes:7.0f}")


def measure(count: int, blocks: int) -> tuple[float, float, float]:
    """(share of a core of an idle second, CPU seconds of a block, megabytes) of a scheduler with so many workers."""
    with _process("--scheduler") as (address, scheduler), contextlib.ExitStack() as stack:
        for begin in range(0, count, _IN_ONE_PROCESS):
            here = min(_IN_ONE_PROCESS, count - begin)
            pause = max(_REPORT_SECONDS, count / _MOST_REPORTS)
            stack.enter_context(_process("--farm", address, str(here), str(pause)))
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=300)
            client.subscribe_topic("bench", lambda _: None)
            time.sleep(3.0)
            before, begun = _cpu(scheduler), time.perf_counter()
            time.sleep(_IDLE_SECONDS)
            idle = (_cpu(scheduler) - before) / (time.perf_counter() - begun)
            before, begun = _cpu(scheduler), time.perf_counter()
            _work(client, blocks, in_flight=4 * count)
            spent, seconds = _cpu(scheduler) - before, time.perf_counter() - begun
            return idle, max(spent - idle * seconds, 0.0) / blocks, _megabytes(scheduler)


def _work(client: Client, blocks: int, in_flight: int) -> None:
    """Send blocks as a driver does: never more than so many under way."""
    window = Window(Region(0, 0, 0), (14, 128, 128, 1), 0, 0)
    numbers = iter(range(blocks))

    def chain(number: int) -> object:
        block = Block(window, 0, number, np.arange(_BLOCK))
        first = client.submit(generate, block, key=("generate", number), pure=False)
        second = client.submit(infer, block, first, key=("infer", number), pure=False)
        return client.submit(process, block, second, key=("process", number), priority=10, pure=False)

    waiting = as_completed(
        [chain(n) for n, _ in zip(numbers, range(in_flight), strict=False)], loop=client.loop
    )
    for _ in waiting:
        for number in numbers:
            waiting.add(chain(number))
            break


def generate(block: Block) -> np.ndarray:
    """What must be asked: everything."""
    return np.arange(block.size, dtype=np.int32)


def infer(block: Block, order: np.ndarray) -> int:  # noqa: ARG001 - a task's inputs
    """Nobody is asked here."""
    return len(order)


def process(block: Block, delivery: int) -> dict[str, np.ndarray]:  # noqa: ARG001 - a task's inputs
    """A graded block, which stays on its worker; and the report of it."""
    from distributed import get_worker

    report = BlockDone(block.key, 0, block.size, 0, 0, 0)
    get_worker().log_event("bench", as_message(report))
    return {name: np.zeros(block.size, np.float32) for name in "abcdefg"}


@contextlib.contextmanager
def _process(*arguments: str) -> Iterator[tuple[str, int]]:
    """A process of this script: (what it says when it is ready, its id)."""
    command = [sys.executable, __file__, *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        said = process.stdout.readline() if process.stdout else ""
        yield said.strip(), process.pid
    finally:
        process.kill()
        process.wait()


async def _schedule() -> None:
    async with Scheduler(port=0, host="127.0.0.1", dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()


async def _farm(address: str, count: int, pause: float) -> None:
    """So many workers in this process, each reporting as a sweep's workers do."""
    report = as_message(Traffic(sent=1, usage={"m": (1.0, 1.0)}, models={"m": {"requests": 1.0}}, worker="w"))
    with tempfile.TemporaryDirectory() as scratch:
        workers = [
            Worker(
                address,
                nthreads=1,
                memory_limit=0,
                dashboard=False,
                local_directory=scratch,
                host="127.0.0.1",
            )
            for _ in range(count)
        ]
        for worker in workers:
            await worker
        print("ready", flush=True)
        while True:
            await asyncio.sleep(pause)
            for worker in workers:
                worker.log_event("bench", report)


def _cpu(pid: int) -> float:
    """User and system seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    resident = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(resident) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--blocks", type=int, default=3000)
    return parser.parse_args()


if __name__ == "__main__":
    with dask.config.set(SETTINGS):
        if sys.argv[1:2] == ["--scheduler"]:
            asyncio.run(_schedule())
        elif sys.argv[1:2] == ["--farm"]:
            asyncio.run(_farm(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
        else:
            main()
