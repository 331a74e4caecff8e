"""Ask code of others about replies, in a process of its own with limits, which runs `bounded_child`."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import IO

from evalcube.stages.generate.errors import CodeError, TaskError
from evalcube.stages.generate.recent import Recent

_HERE = __name__.rpartition(".")[0]
DOORS = {
    "math": (f"{_HERE}.maths_door", "math"),
    "gym": (f"{_HERE}.gym_door", "gym"),
    "lm-eval": (f"{_HERE}.lm_eval_door", "lm-eval"),
}
"""Name -> module with `warm` and `answer`, and the extra that it needs: never a name from data."""

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Variables of the environment that say nothing secret, and without which some Pythons do not start."""
_FETCHING = tuple("HOME HF_HOME HF_ENDPOINT HF_TOKEN HF_HUB_OFFLINE HF_DATASETS_CACHE HTTPS_PROXY".split())
"""... and those with which data are fetched, by a process that has the network and sees no reply."""
_STARTING = 120.0
"""Seconds that the imports of a door may take."""
_GRACE = 1.0
_TRIES = 3
"""Processes that are started for one request."""
_REMEMBERED = 10_000
"""Answers that are remembered: a reply is graded again for judges, for a second reading and to be shown."""
_REMEMBERED_LENGTH = 2_000
"""Bytes of the longest of them, as it came."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What one request may take."""

    cpu_seconds: int = 5
    """Of the processor: it does not depend on what else the machine does, so that neither does the grade."""
    wall_seconds: int = 120
    """For who waits without working."""
    memory: int = 1 << 30
    """Bytes beyond what the imports take."""
    answer_bytes: int = 1 << 20
    file_bytes: int = 0
    """Size of the largest file that may be written."""
    answers: int = 1
    """Requests with these limits that one process may answer, each of which then sees what those before it left."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no answer."""

    reason: str
    """Such as "grader ran out of time"."""


def ask(
    door: str, given: Mapping[str, object], limits: ProcessLimits | None = None, *, fetches: bool = False
) -> object:
    """What the code behind a door says of a request. Threads may share it.

    The same for the same request, but where it crashed or used up its time on the wall's clock: that may be the
    machine's doing, so that it is tried anew.
    """
    request = json.dumps({"given": given, "limits": asdict(limits or ProcessLimits())}).encode() + b"\n"
    return _child(door, fetches).ask(request)


def version_of(package: str) -> str:
    """Version of an installed package; empty if it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


class _Child:
    """A process behind one door, started when it is first needed."""

    def __init__(self, door: str, *, fetches: bool) -> None:
        self._module, self._extra = DOORS[door]
        self._door = door
        self._fetches = fetches
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.hello: dict[str, object] = {}
        """What the process said of itself: its ``network`` is ``open``, a ``namespace`` of its own, or ``blocked``."""
        self._known: Recent[bytes, tuple[object]] = Recent(_REMEMBERED)

    def ask(self, request: bytes) -> object:
        with self._lock:
            key = sha256(request).digest()
            if (remembered := self._known.get(key)) is not None:
                return remembered[0]
            wall: float = json.loads(request)["limits"]["wall_seconds"]
            began = time.monotonic()
            message, length = self._answer(request, wall)
            answer: object = (
                Failure(f"grader {message['failed']}") if "failed" in message else message["said"]
            )
            lasting = "crashed" not in message and ("said" in message or time.monotonic() - began < wall)
            if lasting and length <= _REMEMBERED_LENGTH and not self._fetches:
                self._known.put(key, (answer,))
            return answer

    def _answer(self, request: bytes, wall: float) -> tuple[dict[str, object], int]:
        """What the process says, in how many bytes; one that dies is started again, a bounded number of times."""
        heard: tuple[dict[str, object], int] | None = None
        ending = ""
        for _ in range(_TRIES):
            heard = self._exchange(request, wall + 60)
            if heard is None:
                ending = self.close(_GRACE)
            elif "crashed" not in heard[0]:
                return heard
        if heard is None:
            raise TaskError(
                f"the process that runs {self._door} died {_TRIES} times: it {ending}; "
                "look whether the machine has memory left"
            )
        return heard  # it did so whenever it was tried

    def _exchange(self, request: bytes, seconds: float) -> tuple[dict[str, object], int] | None:
        """What the process says, started if there is none; None if it dies, at its start or later."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._launch()
            hello = _line(self._process.stdout, _STARTING)
            if hello is None:
                return None
            self.hello = hello[0]
            if "failed" in self.hello:
                self.close()
                raise CodeError(
                    f"the process that runs {self._door} cannot be started ({self.hello['failed']}); where a package "
                    f"is missing: pip install 'evalcube[{self._extra}]'"
                )
        assert self._process.stdin is not None  # noqa: S101 - a pipe, as it was started
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
            return _line(self._process.stdout, seconds)
        except (OSError, ValueError):
            return None

    def _launch(self) -> subprocess.Popen[bytes]:
        names = _PASSED_ON + (_FETCHING if self._fetches else ())
        environment = {name: os.environ[name] for name in names if name in os.environ} | {
            "PYTHONHASHSEED": "0",
            "PYTHONUTF8": "1",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        program = f"-P -s -m {_HERE}.bounded_child {self._module}".split()
        try:
            return subprocess.Popen(
                [sys.executable, *program, "open" if self._fetches else ""],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,  # Ctrl-C is for who asked
            )
        except OSError as error:
            raise CodeError(
                f"the process that runs {self._door} cannot be started: {error.strerror}. Free memory, or raise the "
                "limit of open files (ulimit -n), and run again"
            ) from error

    def close(self, grace: float = 0.0) -> str:
        """End the process, which may be started again; returns how it ended by itself, if it did within `grace`."""
        process, self._process = self._process, None
        if process is None:
            return ""
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):  # its output may end a moment before itself
            status = process.wait(grace)
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        process.wait()
        if status is None:
            return "gave no answer in time"
        return (
            f"was ended by signal {-status} ({signal.strsignal(-status)})"
            if status < 0
            else f"ended with status {status}"
        )


def _line(stream: IO[bytes] | None, seconds: float) -> tuple[dict[str, object], int] | None:
    """The next line of JSON and its length in bytes; None if none comes, or not in time."""
    if stream is None:
        return None
    deadline = time.monotonic() + seconds
    parts: list[bytes] = []
    poll = select.poll()  # not select, whose descriptors end at 1024: a worker has that many connections
    poll.register(stream, select.POLLIN)
    while True:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        block = os.read(stream.fileno(), 1 << 16) if ready else b""
        if not block:
            return None
        parts.append(block)
        if block.endswith(b"\n"):
            line = b"".join(parts)
            return json.loads(line), len(line)


_children: dict[tuple[str, bool], _Child] = {}
_lock = threading.Lock()


def _child(door: str, fetches: bool) -> _Child:
    with _lock:
        return _children.setdefault((door, fetches), _Child(door, fetches=fetches))


@atexit.register
def end() -> None:
    """End all processes; they end by themselves when this one does, however it ends."""
    for child in list(_children.values()):
        child.close()


def _forget() -> None:
    global _lock  # noqa: PLW0603 - it may be held by a thread that the fork has not
    _lock = threading.Lock()
    _children.clear()


os.register_at_fork(after_in_child=_forget)  # a fork has pipes of its own to no process
