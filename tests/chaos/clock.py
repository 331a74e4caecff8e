"""A file with seconds in; a wall clock that is ahead of the real one by as much, in this process, out.

A driver installs it before anything takes a reference to the clock, and so does what its worker processes are forked
from, which imports the same module.
"""

import os
import time
from pathlib import Path

VARIABLE = "EVALCUBE_CHAOS_CLOCK"

_real = time.time


def _ahead():
    try:
        return _real() + float(Path(os.environ[VARIABLE]).read_text())
    except (OSError, ValueError):
        return _real()


def install():
    """Use that clock from now on."""
    if VARIABLE in os.environ and time.time is _real:
        time.time = _ahead
        time.time_ns = lambda: int(_ahead() * 1e9)
