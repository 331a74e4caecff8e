"""What 75 models lose to one whose endpoint sends what costs little to send and much to read.

All ask at once over one engine, as in a worker; the endpoints are another process. Each kind of hostile reply is
measured in turns with a neighbour that is silent: requests per second of the others, the CPU that each of these took,
when the hostile model's requests end beside their timeout, and how long it takes to close the engine meanwhile.

    python benchmarks/hostile_neighbour.py [--only TEXT] [--seconds 6] [--rounds 2] [--models 76] [--latency 0.02]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import threading
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evalcube.stages.infer.endpoint import Batching, Endpoint  # noqa: E402 - the checkout may not be installed
from evalcube.stages.infer.engine import Engine  # noqa: E402 - the checkout may not be installed
from evalcube.stages.infer.jobs import Job  # noqa: E402 - the checkout may not be installed

KEY = "sk-proj-aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9dE2fG4hJ6kL8mN1pQ3rS5tU7vW9xY"
TIMEOUT = 5.0
CONNECTIONS = 8
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "The answer is 42.\n" * 10}}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 50},
    }
).encode()
SILENT = "silence"


def reply(body: bytes, kind: str = "application/json", *headers: str) -> bytes:
    """A whole HTTP response."""
    lines = "".join(f"{header}\r\n" for header in headers)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    return head.encode() + body


def packed(piece: bytes, times: int) -> bytes:
    """A piece many times over, as gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    many = max(1, (1 << 20) // len(piece))
    whole, rest = divmod(times, many)
    parts = [packer.compress(piece * many) for _ in range(whole)]
    return b"".join([*parts, packer.compress(piece * rest), packer.flush()])


def hostile_replies() -> dict[str, bytes]:
    """By name, what the hostile endpoint answers to a question."""
    events, gzip = "text/event-stream", "Content-Encoding: gzip"
    start = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"'
    end = b'"}}]}'
    pieces = (KEY[20:27] + "." + KEY[30:42] + " ").encode()
    escaped = "".join(f"\\u{ord(character):04x}" for character in KEY).encode()
    return {
        "60 M comments": reply(packed(b":\n", 60_000_000), events, gzip),
        "60 M blank lines": reply(packed(b"\n", 60_000_000), events, gzip),
        "8 M events without data": reply(packed(b"event: x\n\n", 8_000_000), events, gzip),
        "8 M empty events": reply(packed(b"data: {}\n\n", 8_000_000), events, gzip),
        "events of a megabyte": reply(packed(b"data: [" + b"[]," * 300_000 + b"0]\n\n", 50), events, gzip),
        "4 MB of pieces of the key": reply(start + pieces * (3_900_000 // len(pieces)) + end),
        "4 MB of the key, escaped": reply(start + escaped * (3_900_000 // len(escaped)) + end),
        "4 MB of values": reply(b"[" + b"0," * 1_900_000 + b"0]"),
    }


def batch_files() -> dict[str, bytes]:
    """By name, what the file of a batch's answers holds."""
    gzip = "Content-Encoding: gzip"
    return {
        "10 M lines": reply(packed(b"{}\n", 10_000_000), "application/jsonl", gzip),
        "10 M blank lines": reply(packed(b"\n", 10_000_000), "application/jsonl", gzip),
    }


class Waited:
    """The longest that a hostile reply was read; a value of several processes has the same field."""

    value = 0.0


class Server(asyncio.Protocol):
    """Answers what its port says: the first one in good faith, each of the others in its own way."""

    def __init__(self, answer: bytes | None, file: bytes | None, latency: float, longest: Waited) -> None:
        self._answer, self._file, self._latency, self._longest = answer, file, latency, longest
        self._received = b""

        self._asked = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the way back."""
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Answer a request once it is whole."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line[:15].lower() == b"content-length:"), 0
        )
        if found and len(body) >= length:
            self._received, self._asked = b"", time.monotonic()
            answer = self._choose(head.split(b" ", 2)[1])
            if answer is not None:
                asyncio.get_running_loop().call_later(self._latency, self._transport.write, answer)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the interface of protocols
        """Note how long the other side has waited for a reply that it gives up."""
        self._longest.value = max(self._longest.value, time.monotonic() - self._asked if self._asked else 0.0)

    def _choose(self, path: bytes) -> bytes | None:
        if self._file is None:
            return self._answer
        if path.endswith(b"/content"):
            return self._file
        if path.endswith(b"/files"):
            return reply(b'{"id":"file-1"}')
        name = uuid.uuid4().hex
        return reply(
            json.dumps({"id": name, "status": "completed", "output_file_id": f"out-{name}"}).encode()
        )


def serve(pipe: Connection, latency: float, longest: Waited) -> None:
    """Serve until the process is ended; sends the port of each kind, and notes how long a hostile reply is read."""

    async def main() -> None:
        loop, ports = asyncio.get_running_loop(), {}
        answers = {"good": (reply(ANSWER), None), SILENT: (None, None)}
        answers |= {name: (body, None) for name, body in hostile_replies().items()}
        answers |= {name: (None, body) for name, body in batch_files().items()}
        for name, (answer, file) in answers.items():
            seconds, own = (latency, Waited()) if name == "good" else (0.0, longest)
            server = await loop.create_server(
                lambda answer=answer, file=file, seconds=seconds, own=own: Server(answer, file, seconds, own),
                "127.0.0.1",
            )
            ports[name] = server.sockets[0].getsockname()[1]
        pipe.send(ports)
        await asyncio.Event().wait()

    asyncio.run(main())


class Discard:
    """A store that keeps nothing."""

    def put_all(self, records: Sequence[object]) -> None:
        """Take records."""

    def commit(self) -> None:
        """Nothing to be made durable."""


class Notes:
    """Notes of batches, in memory."""

    def __init__(self) -> None:
        self._notes: dict[str, bytes] = {}
        self.tokens = lambda: tuple(self._notes)
        self.read = self._notes.get
        self.write = self._notes.__setitem__

    def remove(self, token: str) -> None:
        """Forget one."""
        self._notes.pop(token, None)

    def records(self, digests: Sequence[str]) -> list[None]:
        """None is stored."""
        return [None] * len(digests)


def jobs(count: int) -> list[Job]:
    """So many requests that differ."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "What is 6 x 7?"}]}).encode()
    return [Job(uuid.uuid4().hex * 2, body) for _ in range(count)]


@contextmanager
def asking(engine: Engine, models: Sequence[str], ended: list[str]) -> Iterator[None]:
    """Have models asked without an end; the hostile one's requests tell how they ended."""
    over = threading.Event()

    def ask(model: str) -> None:
        while not over.is_set():
            results = engine.run(model, jobs(2 * CONNECTIONS if model != "hostile" else CONNECTIONS))
            if model == "hostile":
                ended.extend(result.cause or result.kind for result in results)

    threads = [threading.Thread(target=ask, args=(model,), daemon=True) for model in models]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()


def measure(ports: dict[str, int], kind: str, models: int, seconds: float, longest: Waited) -> dict[str, Any]:
    """What the others get beside one kind of neighbour."""
    good = [f"model-{number}" for number in range(models - 1)]
    terms = Batching(poll=0.1, patience=0.0) if kind in batch_names() else None
    endpoints = {
        name: Endpoint(
            name, f"http://127.0.0.1:{ports['good']}/{name}/v1", connections=CONNECTIONS, timeout=TIMEOUT
        )
        for name in good
    }
    endpoints["hostile"] = Endpoint(
        "hostile",
        f"http://127.0.0.1:{ports[kind]}/v1",
        connections=CONNECTIONS,
        timeout=TIMEOUT,
        retries=0,
        key_env="HOSTILE_KEY",
        stream="event" in kind or "comment" in kind or kind == "60 M blank lines",
        batch=terms,
    )
    ended: list[str] = []
    longest.value = 0.0
    engine = Engine(endpoints, Discard(), workers=1, batches=Notes())
    with asking(engine, [*good, "hostile"], ended):
        time.sleep(1.0)
        begun, before, cpu = time.monotonic(), answered(engine), time.process_time()
        time.sleep(seconds)
        taken, count = time.monotonic() - begun, answered(engine) - before
        cpu, late = time.process_time() - cpu, longest.value
        begun = time.monotonic()
    engine.close()
    return {
        "rate": count / taken,
        "cpu": cpu / max(count, 1),
        "close": time.monotonic() - begun,
        "late": late,
        "causes": sorted(set(ended) - {"skipped"}),
    }


def batch_names() -> tuple[str, ...]:
    """Kinds that are batches."""
    return "10 M lines", "10 M blank lines"


def answered(engine: Engine) -> int:
    """Replies to the others so far."""
    return sum(count for model, count in engine.stats.answered.items() if model != "hostile")


def main() -> None:
    """Print a row for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--models", type=int, default=76)
    parser.add_argument("--latency", type=float, default=0.02)
    arguments = parser.parse_args()
    longest: Any = multiprocessing.Value("d", 0.0)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs, arguments.latency, longest), daemon=True)
    server.start()
    ports = ours.recv()
    print(f"{'neighbour':28} {'requests/s':>10} {'of silent':>9} {'CPU ms':>7} {'of silent':>9}", end="")
    print(f" {'ends s':>7} {'close s':>8}  as")
    for kind in (name for name in ports if name not in ("good", SILENT) and arguments.only in name):
        rows: dict[str, list[dict[str, Any]]] = {SILENT: [], kind: []}
        for _ in range(arguments.rounds):
            for name, row in rows.items():
                row.append(measure(ports, name, arguments.models, arguments.seconds, longest))
        silent, hostile = (
            {key: mean(row[key] for row in rows[name]) for key in ("rate", "cpu")} for name in (SILENT, kind)
        )
        late, close = (max(row[key] for row in rows[kind]) for key in ("late", "close"))
        causes = ", ".join(sorted({cause for row in rows[kind] for cause in row["causes"]}))
        print(
            f"{kind:28} {hostile['rate']:10.0f} {hostile['rate'] / silent['rate']:9.1%} {1e3 * hostile['cpu']:7.3f}"
            f" {hostile['cpu'] / silent['cpu']:9.1%} {late:7.2f} {close:8.2f}  {causes}",
            flush=True,
        )
    server.terminate()


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    import os

    os.environ["HOSTILE_KEY"] = KEY
    main()
