"""The command line: arguments in, one call of `flows`, its result printed. Exit codes: see `OWN_CODES`."""

from __future__ import annotations

import atexit
import gc
import sys

from evalcube.flows.cli.output import ExitStatus, complain

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # A tenth of a command's time each: imports make objects by the hundred thousand, and all of them stay; and at the
    # end they go with the process, without being looked through.
    gc.set_threshold(50_000, 20, 100)
    atexit.register(gc.freeze)
    try:
        from evalcube.flows.cli.app import main as run

        run()
    except KeyboardInterrupt:  # before any command began
        complain("stopped at once; run the same command again to resume")
        sys.exit(ExitStatus.STOPPED)
