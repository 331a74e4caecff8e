"""The parent of a server that knows nothing of us: starts it, and ends it with all its processes when the run is gone.

A model server does not notice that whoever started it was killed, and would keep its GPU. This small process does: its
standard input ends with the run, and it takes the server's whole process group with it. Other children notice in the
same way, by `when_parent_dies`.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

CHECK_SECONDS = 1.0
"""Seconds between two checks of the parent's id."""


def when_parent_dies(action: Callable[[], object]) -> threading.Thread:
    """The started thread that calls `action` once standard input ends or this process gets another parent.

    Standard input has to be the pipe that `evalcube.deploy.servers.managed` holds. The kernel closes it with the
    parent, whatever ended that. A parent that forked leaves a copy of the pipe open, so the parent's id is checked as
    well.
    """
    # The parent's id is read here and not in the thread, which may run only after the parent is gone. A parent that
    # ended even before this line is noticed by the pipe.
    thread = threading.Thread(target=_wait, args=(sys.stdin.fileno(), os.getppid(), action), daemon=True)
    thread.start()
    return thread


def _wait(pipe: int, parent: int, action: Callable[[], object]) -> None:
    while os.getppid() == parent:
        # Not `sys.stdin`: its buffer has a lock, which the interpreter needs at exit while this thread waits in it.
        readable, _, _ = select.select([pipe], [], [], CHECK_SECONDS)
        # What is written into the pipe means nothing; only its end does.
        if readable and not os.read(pipe, 4096):
            break
    action()


GRACE_SECONDS = 10.0
"""That a server has to end by itself: it frees a GPU."""
OUTER_PATH = "EVALCUBE_SERVER_PYTHONPATH"
"""Variable with what the server gets as ``PYTHONPATH``, as the guard may need another one."""
NOT_STARTED = 127
"""Exit code where there is no such program, as shells have it."""
_SET_PARENT_DEATH_SIGNAL = 1
_POLL_SECONDS = 0.05


def main(command: Sequence[str] | None = None) -> int:
    """Exit code of the server: its own, or 128 and the signal's number where a signal ended it."""
    words = list(sys.argv[1:] if command is None else command)
    stop = threading.Event()
    when_parent_dies(stop.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread beside the main one
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {words[0]}: {error.strerror}\n")
        return NOT_STARTED
    while server.poll() is None and not stop.wait(_POLL_SECONDS):
        pass
    code = server.poll()
    # Also where the server has ended by itself: processes that it left behind would hold memory and ports.
    _end_group(server)
    if code is None:
        return 0
    return 128 - code if code < 0 else code


def _environment() -> dict[str, str]:
    """Variables for the server: those of this process, but not the path on which this module was found."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", OUTER_PATH)}
    outer = os.environ.get(OUTER_PATH, "")
    return {**variables, "PYTHONPATH": outer} if outer else variables


def _end_group(server: subprocess.Popen[bytes]) -> None:
    """End a server with all processes of its session: at first politely."""
    deadline = time.monotonic() + GRACE_SECONDS
    _signal(server.pid, signal.SIGTERM)
    while _has_members(server) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    _signal(server.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        server.wait(GRACE_SECONDS)


def _has_members(server: subprocess.Popen[bytes]) -> bool:
    server.poll()  # a process that was not waited for stays a member
    try:
        os.killpg(server.pid, 0)
    except OSError:
        return False
    return True


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(OSError):  # it may have gone by itself
        os.killpg(group, number)


def _die_with_parent() -> None:
    """Runs in the child: have the kernel end it if this guard is killed itself; only Linux can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
