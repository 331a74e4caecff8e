"""How a child process notices that the process which started it is gone, even when that was killed."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable

CHECK_SECONDS = 1.0
"""Seconds between two checks of the parent's id."""


def when_parent_dies(action: Callable[[], object]) -> threading.Thread:
    """The started thread that calls `action` once standard input ends or this process gets another parent.

    Standard input has to be the pipe that `evalcube.deploy.servers.managed` holds. The kernel closes it with the
    parent, whatever ended that. A parent that forked leaves a copy of the pipe open, so the parent's id is checked as
    well.

    Parameters
    ----------
    action
        Called once, from the thread.
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
        if readable and not os.read(
            pipe, 4096
        ):  # what is written into the pipe means nothing; only its end does
            break
    action()
