"""Where the command line begins: streams and open files are in order before anything else is imported."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_ENOUGH_FILES = 65_536
"""Open files from which on more are no use."""


def main() -> None:
    """Run the command line."""
    _open_standard_streams()
    _raise_limit_of_files()
    from evalcube.flows.cli import main as run

    run()


def _raise_limit_of_files() -> None:
    with suppress(
        ImportError, OSError, ValueError
    ):  # no such limits, or it is forbidden, as in some sandboxes
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= soft < _ENOUGH_FILES:
            enough = _ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


def _open_standard_streams() -> None:
    """Open those of standard input, output and error that are closed (``>&-``), on nothing.

    Otherwise the next file that is opened, a cube's or a connection, would have such a number, and get what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # Those below are open, so that this is the lowest number that is free, which is what it gets.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            stream = open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()
