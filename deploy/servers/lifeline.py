"""A child process's end of the rope: calls back when the parent that started it is gone."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable

CHECK_SECONDS = 1.0


def when_parent_dies(action: Callable[[], object]) -> threading.Thread:
    """Call `action` from a thread once standard input ends or this process gets another parent.

    Standard input is the pipe that `deploy.servers.managed` holds: it ends with the parent, even when that is
    killed. The second sign is for a parent that forked, so that a copy of the pipe lives on.
    """
    thread = threading.Thread(target=_wait, args=(sys.stdin.fileno(), os.getppid(), action), daemon=True)
    thread.start()
    return thread


def _wait(pipe: int, parent: int, action: Callable[[], object]) -> None:
    while os.getppid() == parent:
        readable, _, _ = select.select([pipe], [], [], CHECK_SECONDS)
        if readable and not os.read(pipe, 4096):
            break
    action()
