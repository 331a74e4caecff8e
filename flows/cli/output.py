"""What commands share: exit codes, JSON, messages."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from evalcube.flows.read.trials.escaped import jsonable, visible

if TYPE_CHECKING:
    from evalcube.flows.read.outputs import Ticker


class Code(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    INCOMPLETE = 1
    REFUSED = 2
    BUG = 70
    STOPPED = 130


EXIT_CODES = {
    Code.OK: "done",
    Code.INCOMPLETE: "the sweep ended with transport errors left, run it again to resume",
    Code.REFUSED: "refused or failed for a reason that is told (config, cube, disk, memory, cluster, key)",
    Code.BUG: "failed by a defect of evalcube, told with a traceback",
    Code.STOPPED: "stopped by Ctrl-C, by `evalcube stop` or at the bound under spend:, run it again to resume",
}


class Output(io.FileIO):
    """Standard output that remembers why it could not be written."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        """Write, as `io.FileIO` does."""
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise

    @classmethod
    def install(cls) -> Output:
        """Put one in the place of `sys.stdout`; characters that its encoding lacks are escaped."""
        before = sys.stdout
        output = cls(before.fileno(), "w", closefd=False)
        sys.stdout = _as_text(output, before.encoding, by_line=output.isatty())
        return output


class Messages(io.FileIO):
    """Standard error that may be full, or read by nobody any more: no run ends for want of a reader of its messages."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        """Write, as `io.FileIO` does, or lose what cannot be written."""
        try:
            return super().write(data)
        except OSError:
            return len(data)

    @classmethod
    def install(cls) -> None:
        """Put one in the place of `sys.stderr`."""
        before = sys.stderr
        sys.stderr = _as_text(cls(before.fileno(), "w", closefd=False), before.encoding, by_line=True)


def _as_text(stream: io.FileIO, encoding: str, *, by_line: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(stream), encoding=encoding, errors="backslashreplace", line_buffering=by_line
    )


@contextmanager
def outlived() -> Iterator[None]:
    """Print what may find no reader, as in ``evalcube run … | head -1``: the command goes on to its own exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        output = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
        if not isinstance(output, Output):
            raise
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
            os.dup2(nowhere.fileno(), output.fileno())
        output.failure = None


def complain(message: str) -> None:
    """Write a message to standard error; what it quotes from cubes and endpoints does nothing to a terminal."""
    sys.stderr.write(f"evalcube: {safe(message)}\n")


def show(text: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{text}\n")


def show_json(document: Any, schema: str = "") -> None:  # noqa: ANN401 - any JSON value
    """Write a JSON document to standard output, in ASCII; NaN becomes null.

    Parameters
    ----------
    document
        What to write; an object where it has a schema.
    schema
        Name of its form, of which this is the first version; empty where the document says it, or has none.
    """
    if schema:
        document = {"schema": f"evalcube.{schema}", "schema_version": 1, **document}
    show(json.dumps(jsonable(document), indent=2, allow_nan=False))


def safe(text: str) -> str:
    """Foreign text for a terminal: control characters other than line breaks and tabs made visible."""
    return visible(text)


def number(value: float, *, sign: bool = False) -> str:
    """A score with two decimals; a dash where there is none."""
    if math.isnan(value):
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"


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
