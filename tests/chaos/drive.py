"""The command line with regions written every second, so that even a short sweep is struck while it writes them."""

import functools

from tests.chaos import clock

clock.install()

from evalcube.flows.cli import main  # noqa: E402 - after the clock
from evalcube.flows.run import processes, sweep  # noqa: E402

FLUSH_SECONDS = 1.0

if __name__ == "__main__":
    # Here and not outside: a worker process runs this module too, under another name.
    # What workers are forked from runs it before its other imports, too.
    processes._IMPORTED = ("tests.chaos.drive", *processes._IMPORTED)
    sweep.run = functools.partial(sweep.run, flush_seconds=FLUSH_SECONDS)
    main()
