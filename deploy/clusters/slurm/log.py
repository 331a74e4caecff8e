"""The last lines of a job's log, for people."""

from __future__ import annotations

import os
from pathlib import Path

from evalcube.deploy.clusters.slurm.queue import printable

_BYTES = 4096


def last_lines(log: Path, most: int) -> list[str]:
    """The last lines of a log that are not empty, safe to be shown.

    Parameters
    ----------
    log
        The file, of which only the end is read.
    most
        How many.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _BYTES))
        text = file.read(_BYTES).decode(errors="replace")
    return [printable(line) for line in [line for line in text.splitlines() if line.strip()][-most:]]
