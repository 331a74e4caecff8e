"""The process that worker processes are forked from: it imports what they need, while a run does other things."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker

_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""What Dask sets before it starts a worker, as these are read when numpy is imported; here that is earlier."""


@contextmanager
def interrupts_blocked(*signals: signal.Signals) -> Iterator[None]:
    """Block SIGINT and SIGHUP, or `signals`, in the threads and processes that are started meanwhile, and in theirs.

    The terminal sends Ctrl-C to every process of its group, and SIGHUP when it is closed, but the driver alone decides
    how a sweep ends. It gets the signal once the block is over.
    """
    # A mask is inherited by threads and across exec; a handler is not, and SIG_IGN would lose a Ctrl-C meant for us.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals or (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin(modules: Sequence[str] = ()) -> bool:
    """Start the process, unless it runs; it ends with this one."""
    # Python's documentation calls forks unsafe there: system libraries may start threads.
    if sys.platform == "darwin":
        return False
    # multiprocessing starts its tracker with the first process, and unblocks SIGINT then. The tracker ignores that,
    # and would die of a terminal that is closed.
    with interrupts_blocked(signal.SIGHUP):
        resource_tracker.ensure_running()
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Imported once there, and shared by all workers: a fork starts in milliseconds, an import takes seconds.
    multiprocessing.set_forkserver_preload([*modules])
    try:
        with interrupts_blocked():
            forkserver.ensure_running()
    except OSError:
        return False
    return True
