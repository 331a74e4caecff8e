"""The command line: arguments in, one call of `flows`, its result printed. Exit codes: see `EPILOG`."""

from __future__ import annotations

import sys

from flows.cli.output import Code, complain

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from flows.cli.app import main as run

        run()
    except KeyboardInterrupt:  # before any command began
        complain("stopped at once; run the same command again to resume")
        sys.exit(Code.STOPPED)
