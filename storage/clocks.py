"""Clocks: what may decide something, and what is only shown to people.

The time of day differs between machines, is set by hand and jumps. So nothing that two processes must agree on follows
from it: a process waits by its own monotonic clock, and takes the age of a file by the clock of the file system alone,
which wrote both of the times that are compared.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

LAST_YEAR = 253_370_764_800  # the year 9999 begins, seconds since the epoch: later ones are in no calendar


def elapsed_seconds() -> float:
    """Seconds by a clock that nobody sets, and that goes on while the machine sleeps where there is such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def file_clock(folder: Path) -> float:
    """What time it is by the clock that a folder's file system gives files their times by.

    On a network mount that is the server's. Where nothing can be written it is this machine's, which will do for a
    count; whoever deletes can write.
    """
    probe = folder / f".{secrets.token_hex(8)}.clock.partial"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return time.time()
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        probe.unlink(missing_ok=True)


def older_files(paths: Iterable[Path], folder: Path, seconds: float, *, sure: bool) -> Iterator[Path]:
    """Those of some files that were written longer ago than that; files that are gone meanwhile are left out."""
    now: float | None = None
    for path in paths:
        with suppress(FileNotFoundError):
            modified = path.stat().st_mtime
            # Asked after the file was seen, and only if there is one: most folders have none.
            now = now or (file_clock(folder) if sure else time.time())
            if now - modified > seconds:
                yield path


def sweep_old_files(paths: Iterable[Path], folder: Path, seconds: float, *, delete: bool) -> int:
    """Count, or delete, files of such an age; see `older_files`."""
    count = 0
    for path in older_files(paths, folder, seconds, sure=delete):
        with suppress(FileNotFoundError):  # its writer lives and has removed it, or another one sweeps
            if delete:
                path.unlink()
            count += 1
    return count
