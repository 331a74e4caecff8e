"""Where the command line begins: outside of our packages, one of which a folder of the user's may hide."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; if a module of the user's hides one of ours, say so, with exit code 2."""
    _open_standard_streams()
    try:
        import evalcube  # noqa: F401 - it looks for such modules
    except ImportError as error:
        sys.stderr.write(f"evalcube: {error}\n")
        sys.exit(2)
    from flows.cli import main as run

    run()


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
