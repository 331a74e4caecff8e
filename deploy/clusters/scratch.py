"""Temporary folders for the files of local clusters, and the removal of those that killed drivers left behind."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "evalcube-cluster-"
_YOUNGEST_SECONDS = 60.0
"""Age below which an unlocked folder may be one whose driver is about to lock it."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A context with a temporary folder, which is locked while in use and removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        descriptor = _lock(folder)
        try:
            # Nothing runs in a driver that is killed, so the next one cleans up after it. What time it is the new
            # folder says: this process's clock may differ from the one that gives folders their times.
            _sweep(Path(folder).parent, Path(folder).stat().st_mtime)
            yield Path(folder)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _sweep(parent: Path, now: float) -> None:
    """Remove folders whose drivers are gone; what cannot be removed, such as another user's, stays."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not folder.is_dir() or now - folder.stat().st_mtime < _YOUNGEST_SECONDS:
                continue
            descriptor = _lock(folder)
            if descriptor is not None:
                # Removed under the lock, so that of two drivers that clean up at once only one does it.
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def _lock(folder: str | Path) -> int | None:
    """An open descriptor that holds the folder's lock; None if another process has it, or there are no locks."""
    if sys.platform == "win32":
        return None  # nobody knows there whether a folder is in use, so none is ever removed
    import fcntl

    # The kernel gives up a lock when its process ends, however it ends; a file with a process id would go stale. The
    # descriptor is not inherited by programs started from here, so workers that live on do not keep the lock.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
