"""A folder for a cluster's own files out; those that killed drivers left behind are removed first."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "evalcube-cluster-"
_YOUNGEST_SECONDS = 60.0
"""Age below which a folder without an owner may be one that is just being made."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder, locked as long as it is in use and removed afterwards."""
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        descriptor = _lock(folder)
        try:
            yield Path(folder)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _sweep(parent: Path) -> None:
    """Remove folders whose drivers are gone; what cannot be removed, as it is another user's, stays."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not folder.is_dir() or time.time() - folder.stat().st_mtime < _YOUNGEST_SECONDS:
                continue
            descriptor = _lock(folder)
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def _lock(folder: str | Path) -> int | None:
    """An open descriptor that holds the folder's lock; None if another process has it, or there are no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
