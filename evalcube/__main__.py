"""Where the command line begins: streams and open files are in order before anything else is imported."""

from __future__ import annotations

import math
import os
import sys

_FEWEST_FILES, _ENOUGH_FILES = 32, 65_536
"""Open files below which nothing works, and from which on more are no use."""


def main() -> None:
    """Run the command line."""
    _open_standard_streams()
    files = _most_open_files()
    if files < _FEWEST_FILES:
        # With fewer, libraries written in C may abort the process where they cannot open one.
        sys.stderr.write(
            f"evalcube: no more than {files} files may be open, and {_FEWEST_FILES} are needed at least: raise the"
            " limit (`ulimit -n`)\n"
        )
        sys.exit(2)
    from evalcube.flows.cli import main as run

    run()


def _most_open_files() -> float:
    """How many files may be open; raised before, as far as the system allows it and no library minds."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return math.inf
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # forbidden, as in some sandboxes
            return soft
        return wanted
    return math.inf if soft == resource.RLIM_INFINITY else soft


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
