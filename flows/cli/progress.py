"""One line on a terminal that says how far a long command is, and sizes for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcube.flows.cubes.ticker import Ticker

_REDRAW_SECONDS = 0.2


@contextmanager
def progress() -> Iterator[Ticker]:
    """One line on standard error that says how far a long command is; nothing where that is no terminal."""
    last = time.monotonic()
    drawn = False

    def tick(what: str, count: int) -> None:
        nonlocal last, drawn
        now = time.monotonic()
        if now - last < _REDRAW_SECONDS or not sys.stderr.isatty():
            return
        last, drawn = now, True
        sys.stderr.write(f"\r\x1b[K{count} {what}")
        sys.stderr.flush()

    try:
        yield tick
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def size_text(count: int) -> str:
    """A number of bytes for people."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if count >= 1000**power:
            return f"{count / 1000**power:.1f} {unit}"
    return f"{count} B"
