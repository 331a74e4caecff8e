"""The process that runs code of others: it imports one door, and forks for each request, so that none leaves a trace.

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
from typing import NoReturn

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
    said = os.dup(1)
    told = os.dup(0)
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - a descriptor is what is needed
        for standard in (0, 1, 2):
            os.dup2(nothing.fileno(), standard)
    hello: dict[str, object] = {"network": "open" if network == "open" else cut_off()}
    try:
        door = importlib.import_module(module)
        door.warm()
    except Exception as error:  # noqa: BLE001 - whatever the import of others' code raises
        hello["failed"] = f"{type(error).__name__}: {error}"[:500]
    _say(said, hello)
    if "failed" in hello:
        return
    gc.freeze()  # what was imported stays shared with the forks
    with os.fdopen(told, "rb") as requests:
        while line := _line(requests.fileno()):
            request = json.loads(line)
            _say(said, _forked(request, door.answer, (told, said)))


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


def _forked(request: dict[str, object], answer: object, ours: tuple[int, int]) -> dict[str, object]:
    """What a fork makes of a request: ``{"said": ...}`` or ``{"failed": reason}``."""
    limits: dict[str, int] = request["limits"]  # type: ignore[assignment]  # from our own side
    heard, speaks = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)
        for descriptor in ours:
            os.close(descriptor)
        _work(request["given"], limits, answer, speaks)
    os.close(speaks)
    try:
        data, ended = _heard(heard, ours[0], limits)
    finally:
        os.close(heard)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with whatever it started
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if ended:
        return {"failed": ended}
    if data:
        found: dict[str, object] = json.loads(data)
        return found
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGXCPU:
        return {"failed": "ran out of time"}
    return {"failed": f"ended with signal {number}" if number else "ended without a word", "crashed": True}


def _heard(pipe: int, told: int, limits: dict[str, int]) -> tuple[bytes, str]:
    """All that comes through a pipe until its end, and why that is not all."""
    deadline = time.monotonic() + limits["wall_seconds"]
    data = bytearray()
    while True:
        ready, _, _ = select.select([pipe, told], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b"", "ran out of time"
        if told in ready:  # nobody asks before the answer: whoever asked is gone
            return b"", "is not needed any more"
        block = os.read(pipe, _BLOCK)
        if not block:
            return bytes(data), ""
        data += block
        if len(data) > limits["answer_bytes"]:
            return b"", f"said more than {limits['answer_bytes']} bytes"


def _work(given: object, limits: dict[str, int], answer: object, speaks: int) -> NoReturn:
    """Answer in a fork, which ends here."""
    try:
        os.setsid()
        _bound(limits)
        random.seed(0)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(0)
        found = {"said": answer(given)}  # type: ignore[operator]  # a door's
    except MemoryError:
        found = {"failed": "ran out of memory"}
    except BaseException as error:  # noqa: BLE001 - whatever others' code raises, SystemExit too
        found = {"failed": f"raised {type(error).__name__}: {error}"[:500]}
    try:
        _say(speaks, found)
    except (MemoryError, TypeError, ValueError, RecursionError):
        _say(speaks, {"failed": "said what is no JSON"})
    finally:
        os._exit(0)


def _bound(limits: dict[str, int]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_seconds"], limits["cpu_seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits["file_bytes"], limits["file_bytes"]))
    if _LINUX:
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        with open("/proc/self/statm", "rb") as pages:  # noqa: PTH123 - one read of a file of the kernel
            own = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (own + limits["memory"],) * 2)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
