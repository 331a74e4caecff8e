"""The process that runs code of others: it imports one door, and answers in forks of itself.

So no request leaves a trace, or none but in those few that one fork answers where their limits let it.
It is started by `evalcube.stages.generate.foreign.bounded` and says a line of JSON for each line of JSON it is told.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import random
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

_NEW_USER, _NEW_NET, _PDEATHSIG = 0x10000000, 0x40000000, 1
_BLOCK = 1 << 16
_REACHING_OUT = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"}
_LINUX = sys.platform == "linux"


def cut_off() -> str:
    """Leave the network, and say how: for an empty ``namespace`` of its own, else with sockets ``blocked``."""
    if _LINUX:
        unshare = getattr(ctypes.CDLL(None), "unshare", None)
        # Without privileges a process may do so as the root of a user namespace of its own, where the kernel lets it.
        if unshare is not None and (unshare(_NEW_NET) == 0 or unshare(_NEW_USER | _NEW_NET) == 0):
            return "namespace"

    def refuse(event: str, _: object) -> None:
        if event in _REACHING_OUT:
            raise PermissionError("graders have no network")

    sys.addaudithook(refuse)
    return "blocked"


def main(module: str, network: str) -> None:
    """Serve requests until nobody is left to make any."""
    # What others print must not come among the answers.
    output = os.dup(1)
    requests = os.dup(0)
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - a descriptor is what is needed
        for standard in (0, 1, 2):
            os.dup2(nothing.fileno(), standard)
    hello: dict[str, object] = {"network": "open" if network == "open" else cut_off()}
    try:
        door = importlib.import_module(module)
        door.warm()
    except Exception as error:  # noqa: BLE001 - whatever the import of others' code raises
        hello["failed"] = f"{type(error).__name__}: {error}"[:500]
    _say(output, hello)
    if "failed" in hello:
        return
    gc.freeze()  # what was imported stays shared with the forks
    fork: _Fork | None = None
    while line := _line(requests):
        request = json.loads(line)
        if fork and fork.left and fork.limits != request["limits"]:
            fork.end()
        if not (fork and fork.left):
            fork = _Fork(request["limits"], door, (requests, output))
        _say(output, fork.answer(request["given"]))


def _line(descriptor: int) -> bytes:
    """The next line, read without a buffer that would hide from `select` what comes after it; empty at the end."""
    parts = []
    while block := os.read(descriptor, _BLOCK):
        parts.append(block)
        if block.endswith(b"\n"):
            return b"".join(parts)
    return b""


def _say(descriptor: int, message: object) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(descriptor, data) :]


class _Fork:
    """A fork that answers requests of equal limits, until it fails to or has answered as many as they say."""

    def __init__(self, limits: dict[str, int], door: Any, ours: tuple[int, int]) -> None:  # noqa: ANN401
        self.limits, self.left = limits, limits["answers"]
        self._requests, self._signal = ours[0], 0
        asked, self._asks = os.pipe()
        self._hears, speaks = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            for descriptor in (self._asks, self._hears, *ours):
                os.close(descriptor)
            _work(asked, limits, door, speaks)
        os.close(asked)
        os.close(speaks)

    def answer(self, request: object) -> dict[str, object]:
        """What the fork makes of a request: ``{"said": ...}`` or ``{"failed": reason}``."""
        with suppress(BrokenPipeError):
            _say(self._asks, request)
        data, ended = _heard(self._hears, self._requests, self.limits)
        message: dict[str, object] = {"failed": ended} if ended else json.loads(data or "{}")
        self.left = self.left - 1 if "said" in message else 0
        if not self.left:
            self.end()
        number = self._signal
        if message:
            return message
        if number == signal.SIGXCPU:
            return {"failed": "ran out of time"}
        return {
            "failed": f"ended with signal {number}" if number else "ended without a word",
            "crashed": True,
        }

    def end(self) -> None:
        """End it with whatever it started, unless it has ended by a signal of its own."""
        self.left = 0
        os.close(self._asks)
        os.close(self._hears)
        with suppress(ProcessLookupError):
            os.killpg(self._child, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        _, status = os.waitpid(self._child, 0)
        self._signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _heard(pipe: int, requests: int, limits: dict[str, int]) -> tuple[bytes, str]:
    """The line that comes through a pipe, empty if none does before its end; and why it is not read."""
    deadline = time.monotonic() + limits["wall_seconds"]
    data = bytearray()
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([pipe, requests], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b"", "ran out of time"
        if requests in ready:  # nobody asks before the answer: whoever asked is gone
            return b"", "is not needed any more"
        block = os.read(pipe, _BLOCK)
        if not block:
            return b"", ""
        data += block
        if len(data) > limits["answer_bytes"]:
            return b"", f"said more than {limits['answer_bytes']} bytes"
    return bytes(data), ""


def _work(asked: int, limits: dict[str, int], door: Any, speaks: int) -> NoReturn:  # noqa: ANN401
    """Answer in a fork, which ends here."""
    try:
        os.setsid()
        _bound(limits)
        while line := _line(asked):
            # Of the processor, each answer may take as much as the first.
            used = round(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
            most = resource.getrlimit(resource.RLIMIT_CPU)[1]
            resource.setrlimit(resource.RLIMIT_CPU, (min(used + limits["cpu_seconds"], most), most))
            _say_answer(speaks, door, line)
    finally:
        os._exit(0)


def _say_answer(speaks: int, door: Any, line: bytes) -> None:  # noqa: ANN401
    try:
        random.seed(0)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(0)
        message = {"said": door.answer(json.loads(line))}
    except MemoryError:
        message = {"failed": "ran out of memory"}
    except BaseException as error:  # noqa: BLE001 - whatever others' code raises, SystemExit too
        message = {"failed": f"raised {type(error).__name__}: {error}"[:500]}
    try:
        _say(speaks, message)
    except (MemoryError, TypeError, ValueError, RecursionError):
        _say(speaks, {"failed": "said what is no JSON"})


def _bound(limits: dict[str, int]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, ((limits["cpu_seconds"] + 1) * limits["answers"],) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits["file_bytes"], limits["file_bytes"]))
    if _LINUX:
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        with open("/proc/self/statm", "rb") as pages:  # noqa: PTH123 - one read of a file of the kernel
            own = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (own + limits["memory"],) * 2)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
