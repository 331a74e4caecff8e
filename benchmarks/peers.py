"""The same questions at the same server: evalcube, Inspect AI and lm-eval, with their defaults and tuned.

All three ask the rows of one file, "What is 17 plus 9?", at an endpoint that answers each request after a fixed time.
Requests are counted at the endpoint. CPU is user + system time of all processes of a tool, memory the sum of their
resident sets. For the last columns a tool is killed (SIGKILL) when half of the rows are answered, and its own way to
resume is used: the same command for evalcube and, with its cache of requests, for lm-eval; `inspect eval-retry` for
Inspect. "Asked twice" are the requests that both attempts sent together, less one for each row.

The other tools get environments of their own, at pinned versions, made in FOLDER when they are missing.

    python benchmarks/peers.py [--rows 1000 5000] [--latency 0.5] [--rounds 1] [--folder FOLDER] [--history FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from history import add_option, append

PINS = {"inspect": ["inspect-ai==0.3.285", "openai==3.57.0"], "lm-eval": ["lm-eval[api]==0.4.13"]}
"""Packages of the other tools' environments."""
CONNECTIONS = 64
"""Requests in flight of the tuned settings."""
QUESTION = re.compile(rb"What is (\d+) plus 9\?")
HEADS = ["tool", "rows", "seconds", "CPU s", "MB", "requests", "asked twice after a kill"]


@dataclass(frozen=True)
class Side:
    """One tool with one setting."""

    name: str
    start: Callable[[Path], list[str]]
    """Its command, from the folder that it works in."""
    resume: Callable[[Path], list[str]]
    """The command that goes on after a kill."""


@dataclass(frozen=True)
class Figures:
    """What one side took for one number of rows: medians over the rounds."""

    side: str
    rows: int
    seconds: float
    cpu: float
    megabytes: float
    requests: float
    """At the endpoint, of an undisturbed run."""
    asked_twice: float
    """Requests beyond one for each row, of a run that was killed half-way and resumed."""


def main() -> None:
    """Measure, print a Markdown table, and append the figures to the history."""
    options = _options()
    if options.serve:
        asyncio.run(_serve(options.serve, options.latency))
        return
    environments = {tool: _environment(options.folder, tool) for tool in PINS}
    rows = []
    with _endpoint(options.latency) as address:
        for count in options.rows:
            for side in _sides(address, environments):
                print(f"{side.name}, {count:,} rows ...", file=sys.stderr)
                rows.append(_measure(side, count, address, options.rounds))
    _print_table(rows)
    append("peers", {"latency": options.latency}, [asdict(row) for row in rows], options.history)


def _measure(side: Side, rows: int, address: str, rounds: int) -> Figures:
    runs, repeated = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            folder = _prepare(Path(scratch), rows)
            _counts(address, reset=True)
            began = time.perf_counter()
            cpu, megabytes = _watch(_start(side.start(folder), folder, address), lambda: False)
            seconds = time.perf_counter() - began
            counts = _counts(address)
            if counts["distinct"] != rows:
                raise SystemExit(_failure(side, folder, f"asked {counts['distinct']} of {rows} rows"))
            runs.append((seconds, cpu, megabytes, float(counts["requests"])))
        with tempfile.TemporaryDirectory() as scratch:
            folder = _prepare(Path(scratch), rows)
            _counts(address, reset=True)
            _watch(
                _start(side.start(folder), folder, address), lambda: _counts(address)["distinct"] >= rows / 2
            )
            _watch(_start(side.resume(folder), folder, address), lambda: False)
            counts = _counts(address)
            if counts["distinct"] != rows:
                raise SystemExit(_failure(side, folder, f"resumed to {counts['distinct']} of {rows} rows"))
            repeated.append(counts["requests"] - rows)
    return Figures(
        side.name, rows, *map(statistics.median, zip(*runs, strict=True)), statistics.median(repeated)
    )


def _failure(side: Side, folder: Path, problem: str) -> str:
    return f"{side.name} {problem}:\n{(folder / 'output.txt').read_text()[-3000:]}"


def _start(command: list[str], folder: Path, address: str) -> subprocess.Popen[bytes]:
    variables = {
        "LOCAL_API_KEY": "none",
        "LOCAL_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": "none",
        "HF_HUB_OFFLINE": "1",
        "INSPECT_DISPLAY": "plain",
    }
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdout=output,
            stderr=output,
            env={**os.environ, **variables},
            start_new_session=True,
        )


def _watch(process: subprocess.Popen[bytes], is_over: Callable[[], bool]) -> tuple[float, float]:
    """Wait for a process, or kill it with its children; their CPU seconds and greatest memory in megabytes."""
    parent = psutil.Process(process.pid)
    seconds: dict[int, float] = {}
    memory = 0.0
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
        memory = max(memory, resident / 1e6)
        if is_over():
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.05)
    return sum(seconds.values()), memory


def _prepare(folder: Path, rows: int) -> Path:
    """Write the questions, and what each tool needs to ask them."""
    lines = (json.dumps({"question": f"What is {i} plus 9?", "answer": str(i + 9)}) for i in range(rows))
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "task.py").write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.dataset import FieldSpec, json_dataset\n"
        "from inspect_ai.scorer import match\n"
        "from inspect_ai.solver import generate\n\n\n"
        "@task\n"
        "def sums():\n"
        "    rows = json_dataset('rows.jsonl', FieldSpec(input='question', target='answer'))\n"
        "    return Task(rows, solver=generate(), scorer=match(numeric=True))\n"
    )
    (folder / "tasks").mkdir()
    (folder / "tasks" / "sums.yaml").write_text(
        "task: sums\n"
        "dataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {folder / 'rows.jsonl'}}}}}\n"
        "test_split: test\n"
        "output_type: generate_until\n"
        'doc_to_text: "{{question}}"\n'
        'doc_to_target: "{{answer}}"\n'
        "generation_kwargs: {until: [], max_gen_toks: 64}\n"
        "filter_list: [{name: last, filter: [{function: regex, regex_pattern: '([0-9]+)', group_select: -1}, "
        "{function: take_first}]}]\n"
        "metric_list: [{metric: exact_match}]\n"
    )
    return folder


def _sides(address: str, environments: dict[str, Path]) -> Iterator[Side]:
    for name, limits in (("", {}), (f", {CONNECTIONS} connections", {"connections": CONNECTIONS})):
        command = _evalcube(address, limits)
        yield Side(f"evalcube{name}", command, command)
    inspect = str(environments["inspect"] / "bin" / "inspect")
    for name, flags in (("", []), (f", {CONNECTIONS} connections", ["--max-connections", str(CONNECTIONS)])):
        yield Side(
            f"Inspect AI{name}",
            lambda _, flags=flags: [inspect, "eval", "task.py", "--model", "openai-api/local/m", *flags],
            lambda folder, flags=flags: [inspect, "eval-retry", str(_log(folder)), *flags],
        )
    lm_eval = str(environments["lm-eval"] / "bin" / "lm_eval")
    for name, concurrent in (("", 1), (f", {CONNECTIONS} connections", CONNECTIONS)):
        arguments = (
            f"model=m,base_url={address}/v1/chat/completions,num_concurrent={concurrent},max_retries=3,"
            "tokenized_requests=False"
        )
        command = [
            *(lm_eval, "--model", "local-chat-completions", "--model_args", arguments),
            *("--tasks", "sums", "--include_path", "tasks", "--apply_chat_template"),
            *("--use_cache", "requests", "--output_path", "out"),
        ]
        yield Side(f"lm-eval{name}", lambda _, command=command: command, lambda _, command=command: command)


def _evalcube(address: str, limits: dict[str, int]) -> Callable[[Path], list[str]]:
    def command(folder: Path) -> list[str]:
        sweep = {
            "name": "peers",
            "models": [{"name": "m", "endpoint": f"{address}/v1", "limits": limits}],
            "tasks": {"sums": {"task": "dataset", "params": {"file": "rows.jsonl", "prompt": "question"}}},
            "trials": sum(1 for _ in (folder / "rows.jsonl").open()),
            "samplers": {"greedy": {"max_tokens": 64}},
        }
        (folder / "peers.yaml").write_text(json.dumps(sweep))  # JSON is YAML
        return [sys.executable, "-m", "evalcube", "run", "peers.yaml"]

    return command


def _log(folder: Path) -> Path:
    return next((folder / "logs").glob("*.eval"))


def _environment(folder: Path, tool: str) -> Path:
    """Make the environment of a tool, unless it is there."""
    path = folder / tool
    if not (path / "installed").exists():
        print(f"installing {', '.join(PINS[tool])} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", path], check=True)
        subprocess.run([path / "bin" / "pip", "install", "--quiet", *PINS[tool]], check=True)
        (path / "installed").touch()
    return path


@contextmanager
def _endpoint(latency: float) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "port"
        command = [sys.executable, __file__, "--serve", str(note), "--latency", str(latency)]
        server = subprocess.Popen(command)
        try:
            deadline = time.monotonic() + 30
            while not note.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield f"http://127.0.0.1:{note.read_text()}"
        finally:
            server.kill()
            server.wait()


def _counts(address: str, *, reset: bool = False) -> dict[str, int]:
    """How many requests came, and for how many different rows, since the last reset."""
    with urllib.request.urlopen(f"{address}/{'reset' if reset else 'counts'}", timeout=10) as answer:  # noqa: S310 - our own server
        return dict(json.load(answer))


async def _serve(note: str, latency: float) -> None:
    """Answer each question after `latency`, and count."""
    asked: dict[bytes, int] = {}
    loop = asyncio.get_running_loop()

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport, self.received = transport, b""

        def data_received(self, data: bytes) -> None:
            self.received += data
            while b"\r\n\r\n" in self.received:
                head, _, tail = self.received.partition(b"\r\n\r\n")
                length = _body_length(head)
                if len(tail) < length:
                    return
                self.received = tail[length:]
                self.answer(head, tail[:length])

        def answer(self, head: bytes, body: bytes) -> None:
            question = QUESTION.search(body)
            if question is None:
                if head.startswith(b"GET /reset"):
                    asked.clear()
                self.transport.write(_reply({"requests": sum(asked.values()), "distinct": len(asked)}))
                return
            asked[question[1]] = asked.get(question[1], 0) + 1
            loop.call_later(latency, self.transport.write, _completion(int(question[1]) + 9))

    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    _leave(note, str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


def _leave(note: str, text: str) -> None:
    """Write a file that is complete whenever it is there."""
    draft = Path(f"{note}.draft")
    draft.write_text(text)
    draft.rename(note)


def _body_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def _completion(total: int) -> bytes:
    message = {"role": "assistant", "content": f"I add them.\nAnswer: {total}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28}
    return _reply(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
    )


def _reply(document: object) -> bytes:
    body = json.dumps(document).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


def _print_table(rows: list[Figures]) -> None:
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for row in rows:
        print(
            f"| {row.side} | {row.rows:,} | {row.seconds:.1f} | {row.cpu:.1f} | {row.megabytes:.0f} "
            f"| {row.requests:,.0f} | {row.asked_twice:,.0f} |"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--latency", type=float, default=0.5, help="seconds until the endpoint answers")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, default=Path("results/peers"), help="where environments are made"
    )
    parser.add_argument("--serve", metavar="NOTE", help=argparse.SUPPRESS)
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
