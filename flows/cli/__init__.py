"""The command line: arguments in, one call of `flows`, its result printed. Exit codes: see `EPILOG`."""

from __future__ import annotations

from flows.cli.app import main

__all__ = ["main"]
