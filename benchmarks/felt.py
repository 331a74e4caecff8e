"""The seconds that people feel: a small sweep from its command to its end, and the commands that read a cube.

All are given in seconds and as ratios to a Python that imports what no sweep can do without (xarray, distributed,
zarr), measured in turns with them: machines differ and are shared. The sweep asks the rows of a file, at an endpoint
that answers after a fixed time, in a process that is not counted. CPU is user + system time of all processes of a
command, memory the sum of their resident sets.

    python benchmarks/felt.py [--trials N] [--connections N] [--rounds N] [--history FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from history import add_option, append, previous

IMPORTS = [sys.executable, "-c", "import xarray, dask.distributed, zarr"]
EVALCUBE = [sys.executable, "-m", "evalcube"]
LATENCY = 0.05
"""Seconds until the endpoint answers."""


@dataclass(frozen=True)
class Felt:
    """What one thing takes: medians over the rounds."""

    what: str
    seconds: float
    cpu: float
    """CPU seconds."""
    ratio: float
    """Seconds as a multiple of those of the imports."""
    cpu_ratio: float


def main() -> None:
    """Measure, print a table, and append the figures to the history."""
    options = _options()
    if options.serve:
        asyncio.run(_serve(options.serve))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found, memory = _measure(folder, options)
    imports = found.pop("the imports alone")
    rows = [
        _felt("the imports alone", imports, imports),
        *(_felt(what, each, imports) for what, each in found.items()),
    ]
    settings = {"trials": options.trials, "connections": options.connections}
    before = previous("felt", settings, options.history)
    _print_table(rows, memory, before)
    append("felt", settings, [*map(asdict, rows), {"what": "memory", "megabytes": memory}], options.history)


Measured = dict[str, list[tuple[float, float]]]
"""Seconds and CPU seconds of each round, by what was measured."""


def _measure(folder: Path, options: argparse.Namespace) -> tuple[Measured, float]:
    cube = str(folder / "cube.zarr")
    commands = {
        "the imports alone": IMPORTS,
        "import evalcube": [sys.executable, "-c", "import evalcube"],
        "--version": [*EVALCUBE, "--version"],
        "--help": [*EVALCUBE, "--help"],
        "tasks": [*EVALCUBE, "tasks"],
        "plan": [*EVALCUBE, "plan", "felt.yaml"],
        "status": [*EVALCUBE, "status", cube],
        "show": [*EVALCUBE, "show", cube, "--task", "sums", "--trial", "7"],
        "leaderboard": [*EVALCUBE, "leaderboard", cube],
        "table": [*EVALCUBE, "table", cube],
        "metrics": [*EVALCUBE, "metrics", cube],
        "analyze cost": [*EVALCUBE, "analyze", "cost", cube],
        "report": [*EVALCUBE, "report", cube, "-o", "report.html"],
        "run, nothing to do": [*EVALCUBE, "run", "felt.yaml", "--quiet"],
    }
    found: Measured = {}
    memory = 0.0
    with _endpoint() as address:
        _write_sweep(folder, address, options)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds} ...", file=sys.stderr)
            memory = max(memory, _measure_sweep(folder, address, options, found))
            for what, command in commands.items():
                found.setdefault(what, []).append(_timed(command, folder))
    return found, memory


def _measure_sweep(folder: Path, address: str, options: argparse.Namespace, found: Measured) -> float:
    """Add the parts of a whole sweep; its greatest memory in megabytes."""
    for name in ("cube.zarr", "cache"):
        shutil.rmtree(folder / name, ignore_errors=True)
    before = _answers(address)["count"]
    began = time.time()
    with (folder / "out.txt").open("w") as out:
        process = subprocess.Popen([*EVALCUBE, "run", "felt.yaml"], cwd=folder, stdout=out, stderr=out)
        cpu, memory = _watch(process)
    ended = time.time()
    answers = _answers(address)
    count = answers["count"] - before
    if process.returncode or count != options.trials:
        text = (folder / "out.txt").read_text()
        raise SystemExit(f"the sweep ended with {process.returncode} after {count} requests:\n{text}")
    first, last = answers["first"], answers["last"]
    at_first, at_last, total = (_cpu_at(cpu, moment) for moment in (first, last, ended))
    parts = {
        "command to first request": (first - began, at_first),
        "asking": (last - first, at_last - at_first),
        "last reply to end": (ended - last, total - at_last),
        "whole sweep": (ended - began, total),
    }
    for what, part in parts.items():
        found.setdefault(what, []).append(part)
    return memory


def _watch(process: subprocess.Popen[bytes]) -> tuple[list[tuple[float, float]], float]:
    """CPU seconds of a process and its children at moments in time; their greatest memory in megabytes."""
    parent = psutil.Process(process.pid)
    seconds: dict[int, float] = {}
    moments, memory = [], 0.0
    while process.poll() is None:
        resident = 0
        try:
            processes = [parent, *parent.children(recursive=True)]
        except psutil.Error:
            processes = []
        for each in processes:
            try:
                times = each.cpu_times()
                resident += each.memory_info().rss
            except psutil.Error:
                continue
            seconds[each.pid] = times.user + times.system
        moments.append((time.time(), sum(seconds.values())))
        memory = max(memory, resident / 1e6)
        time.sleep(0.02)
    return moments, memory


def _cpu_at(moments: list[tuple[float, float]], moment: float) -> float:
    return min(moments, key=lambda each: abs(each[0] - moment))[1]


def _timed(command: list[str], folder: Path) -> tuple[float, float]:
    before, began = os.times(), time.perf_counter()
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, os.times()
    if told.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {told.returncode}:\n{told.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu


def _write_sweep(folder: Path, address: str, options: argparse.Namespace) -> None:
    rows = (
        {"id": f"q{i}", "question": f"What is {i} plus 9?", "answer": str(i + 9)}
        for i in range(options.trials)
    )
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    config = {
        "name": "felt",
        "models": [
            {"name": "m", "endpoint": f"{address}/v1", "limits": {"connections": options.connections}}
        ],
        "tasks": {
            "sums": {"task": "dataset", "params": {"file": "rows.jsonl", "id": "id", "prompt": "question"}}
        },
        "trials": options.trials,
        "samplers": {"greedy": {"max_tokens": 64}},
        "cube": "cube.zarr",
        "cache": "cache",
    }
    (folder / "felt.yaml").write_text(json.dumps(config))  # YAML has JSON in it


@contextmanager
def _endpoint() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "port"
        server = subprocess.Popen([sys.executable, __file__, "--serve", str(note)])
        try:
            deadline = time.monotonic() + 30
            while not note.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield f"http://127.0.0.1:{note.read_text()}"
        finally:
            server.kill()
            server.wait()


def _answers(address: str) -> dict[str, float]:
    """How many requests the endpoint answered; when the first since the last such question came, and the last left."""
    with urllib.request.urlopen(f"{address}/times", timeout=10) as answer:  # noqa: S310 - our own server
        return dict(json.load(answer))


async def _serve(note: str) -> None:
    """Answer every POST after `LATENCY` with one and the same completion: as little CPU as Python can do with."""
    times = {"first": 0.0, "last": 0.0, "count": 0}
    loop = asyncio.get_running_loop()
    content = "I add them.\nAnswer: 42"
    usage = {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28}
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    completion = _answer({"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport, self.received = transport, b""

        def data_received(self, data: bytes) -> None:
            self.received += data
            while b"\r\n\r\n" in self.received:
                head, _, rest = self.received.partition(b"\r\n\r\n")
                length = _body_length(head)
                if len(rest) < length:
                    return
                self.received = rest[length:]
                if head.startswith(b"GET"):
                    self.transport.write(_answer(times))
                    times["first"] = 0.0
                    continue
                times["first"] = times["first"] or time.time()
                loop.call_later(LATENCY, self.reply)

        def reply(self) -> None:
            self.transport.write(completion)
            times["count"] += 1
            times["last"] = time.time()

    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    _leave(note, str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


def _leave(note: str, text: str) -> None:
    draft = Path(f"{note}.draft")
    draft.write_text(text)
    draft.rename(note)


def _body_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def _answer(document: object) -> bytes:
    body = json.dumps(document).encode()
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )


def _felt(what: str, rounds: list[tuple[float, float]], imports: list[tuple[float, float]]) -> Felt:
    seconds, cpu = (statistics.median(each) for each in zip(*rounds, strict=True))
    base, base_cpu = (statistics.median(each) for each in zip(*imports, strict=True))
    return Felt(what, seconds, cpu, seconds / base, cpu / base_cpu)


def _print_table(rows: list[Felt], memory: float, before: dict[str, object] | None) -> None:
    earlier = {}
    if before is not None:
        figures = before["figures"]
        earlier = {each["what"]: each.get("cpu_ratio") for each in figures}  # type: ignore[attr-defined]
    print(f"{'':<26} {'seconds':>8} {'CPU s':>7} {'ratio':>6} {'CPU ratio':>9} {'before':>6}")
    for row in rows:
        was = earlier.get(row.what)
        shown = f"{was:6.2f}" if was else "     –"
        print(
            f"{row.what:<26} {row.seconds:8.2f} {row.cpu:7.2f} {row.ratio:6.2f} {row.cpu_ratio:9.2f} {shown}"
        )
    print(f"greatest memory of the sweep: {memory:.0f} MB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=5000, help="rows of the file")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", metavar="NOTE", help=argparse.SUPPRESS)
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
