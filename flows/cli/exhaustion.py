"""Which resource of a machine has run out, as far as an exception shows it: that is no defect, and has a remedy."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator

_MEMORY = (
    "memory is used up, here or on a worker, or a limit for it (`ulimit -v`) is reached. Free some or raise the limit, "
    "give fewer workers (`evalcube run --workers`), or more memory for each on a cluster"
)
_THREADS = (
    "no thread or process can be started: a limit for them (`ulimit -u`, or that of a container) is reached, or one "
    "for memory (`ulimit -v`). Raise it, end other programs, or give fewer workers (`evalcube run --workers`)"
)
_FILES = (
    "no file or connection can be opened: the limit for open files (`ulimit -n`) is reached. Raise it, or lower "
    "`limits.connections`"
)
_FORKING = ("_execute_child", "_fork_exec", "_launch", "spawnv_passfds", "fork_exec")
"""Functions of the standard library that start processes; elsewhere the same error is a call that would wait."""
_NO_ROOM = ("failed to map segment", "cannot allocate memory", "not enough memory", "out of memory")
"""What linkers and compressors say of it, who have no error of their own for it."""


def exhaustion(error: BaseException) -> str | None:
    """What has run out and what to do, as a sentence without its end; None if nothing has."""
    for one in _behind(error):
        text = _of(one)
        if text is not None:
            return f"{text}; then run the same command again: what was recorded stays"
    return None


def _of(error: BaseException) -> str | None:
    code = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or code == errno.ENOMEM:
        return _MEMORY
    if isinstance(error, ImportError | RuntimeError) and any(text in str(error).lower() for text in _NO_ROOM):
        return _MEMORY
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _THREADS
    if code in (errno.EMFILE, errno.ENFILE):
        return _FILES
    if code == errno.EAGAIN:
        frames = traceback.extract_tb(error.__traceback__)
        return _THREADS if frames and frames[-1].name in _FORKING else None
    return None


def _behind(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that led to it."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
