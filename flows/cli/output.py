"""What commands print: exit codes, messages, JSON, and tables for a terminal or as Markdown or CSV."""

from __future__ import annotations

import io
import json
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from evalcube.flows.read.trials.escaping import csv_text, jsonable, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evalcube.flows.events import Event, Subscriber
    from evalcube.flows.read.results import LeaderboardResult, MetricsResult, RankingResult, TableResult
    from evalcube.stages.analyze.render.table import TableSpec


class ExitStatus(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    INCOMPLETE = 1
    REFUSED = 2
    BUG = 70
    STOPPED = 130


EXIT_CODES = {
    ExitStatus.OK: "done",
    ExitStatus.INCOMPLETE: "something was left undone, or the result is negative: see the help of the command",
    ExitStatus.REFUSED: "error, see the message (config, cube, disk, memory, cluster, key)",
    ExitStatus.BUG: "internal error, a traceback is printed",
    ExitStatus.STOPPED: "stopped by Ctrl-C",
}


class Output(io.FileIO):
    """Standard output that remembers why it could not be written.

    A command whose pipe is closed, as in ``evalcube run … | head -1``, goes on to its own exit code.
    """

    failure: OSError | None = None
    ends = False
    """Whether the command ends instead."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        """Write, as `io.FileIO` does, or lose what nobody reads."""
        try:
            return super().write(data)
        except OSError as error:
            if isinstance(error, BrokenPipeError) and not self.ends:
                return len(data)
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


def end_when_unread() -> None:
    """Have a command that may write for long end when its pipe is closed."""
    output = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(output, Output):
        output.ends = True


_LONGEST = 4000
"""Characters of a line of a message: a stranger's names may be as long as they like."""


def complain(message: str) -> None:
    """Write a message to standard error; what it quotes from cubes and endpoints does nothing to a terminal."""
    lines = (line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…" for line in message.splitlines())
    bounded = "\n".join(lines)
    sys.stderr.write(f"evalcube: {safe(bounded)}\n")


def show(text: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{text}\n")


def show_json(document: Any, schema: str = "") -> None:  # noqa: ANN401 - any JSON value
    """Write a JSON document to standard output, in ASCII; NaN becomes null.

    An object gets the name of its schema, in version 1, unless it names one itself.
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


_REDRAW_SECONDS, _LINE_SECONDS = 0.2, 10.0
_CLEAR = "\r\x1b[K"


@contextmanager
def progress() -> Iterator[list[Subscriber]]:
    """Who tells on standard error how far a long command is: on a terminal one line that changes, else now and then."""
    from evalcube.flows.events import Counted, Noted

    terminal, last, clear = sys.stderr.isatty(), time.monotonic(), ""
    interval, end = (_REDRAW_SECONDS, "") if terminal else (_LINE_SECONDS, "\n")

    def follow(event: Event) -> None:
        nonlocal last, clear
        if isinstance(event, Noted):
            sys.stderr.write(clear)
            complain(str(event))
        elif isinstance(event, Counted) and time.monotonic() - last > interval:
            last, clear = time.monotonic(), _CLEAR * terminal
            sys.stderr.write(f"{clear}{event.noun}: {event.number:,}{end}")
            sys.stderr.flush()

    try:
        yield [follow]
    finally:
        sys.stderr.write(clear)
        sys.stderr.flush()


def form_of(*, as_json: bool, markdown: bool = False, as_csv: bool = False) -> str:
    """The form of output that is asked for: json, markdown, csv, or none of them; several at once are refused."""
    return exclusive({"--json": as_json, "--markdown": markdown, "--csv": as_csv}).removeprefix("--")


def exclusive(flags: Mapping[str, bool]) -> str:
    """The flag that is given, of those of which each excludes the others; empty for none, refused if there are more."""
    named = [name for name, used in flags.items() if used]
    if len(named) > 1:
        from evalcube.flows.errors import SweepError

        raise SweepError(f"{' and '.join(named)} exclude each other", "Give one of them")
    return "".join(named)


def warn(warnings: Sequence[str]) -> None:
    """Tell on standard error what a reader should know."""
    for text in warnings:
        complain(text)


def several(cubes: Sequence[str]) -> dict[str, list[str]]:
    """The cubes that a JSON document speaks of, where there is more than one."""
    return {"cubes": list(cubes)} if len(cubes) > 1 else {}


def emit(
    table: TableSpec, document: Mapping[str, Any], form: str, rows: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Print a table for people, its document for programs, or as CSV `rows`, by default those of the document."""
    if form == "json":
        show_json(document)
    elif form == "csv":
        show_csv(document["rows"] if rows is None else rows)
    else:
        print_table(table, markdown=form == "markdown")


def emit_with(
    warnings: Sequence[str],
    result: LeaderboardResult | RankingResult | TableResult | MetricsResult,
    cubes: Sequence[str],
    form: str,
) -> None:
    """Print a result with what its reader should know: on standard error, in the document, or below Markdown."""
    from evalcube.stages.analyze.render.text import sentence

    warn(warnings)
    cautions = {"warnings": list(warnings)} if warnings else {}
    emit(result.sheet(), {**several(cubes), **result.to_dict(), **cautions}, form)
    for text in warnings if form == "markdown" else ():
        show(f"\n{sentence(text)}")


def print_table(table: TableSpec, *, markdown: bool) -> None:
    """Print a table for people, as Markdown or as the terminal allows."""
    if markdown:
        from evalcube.stages.analyze.render.table import markdown_text

        show(markdown_text(table))
    else:
        show_table(table)


def show_csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> None:
    """Print rows as CSV with a header: all digits, nothing where there is no value, and no formula of a spreadsheet.

    Without any row the header is `names`.
    """
    import csv
    import sys

    from evalcube.stages.analyze.render.shown import records

    def cell(value: object) -> object:
        if isinstance(value, bool):
            return "true" if value else "false"
        return csv_text(value) if isinstance(value, str) else value

    flat = records(rows)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(csv_text, flat[0] if flat else names))
    writer.writerows(map(cell, jsonable(row).values()) for row in flat)


def show_table(table: TableSpec, console: Console | None = None) -> None:
    """Print a table that fits the terminal; below it what a wider one would also show, and the table's notes."""
    from dataclasses import replace

    from rich.console import Console
    from rich.text import Text

    from evalcube.stages.analyze.render.table import left_out, shown_notes, terminal

    console = console or Console()
    console.print(terminal(replace(table, notes=()), width=console.width))
    if hidden := dict.fromkeys(map(repr, left_out(table, width=console.width))):
        console.print(Text(f"Columns that do not fit: {', '.join(hidden)}."), style="dim")
    for note in shown_notes(table, width=console.width):
        console.print(Text(note), style="dim")


MOST_ROWS = 50
"""Of what may be as long as a cube is large, and only tells of it."""
_NUMBER = re.compile(r"[-+]?[\d,.]+(/[\d,]+)?|[-–]")


def print_rows(
    names: Sequence[str], rows: Sequence[Sequence[object]], title: str = "", *, cut: bool = False
) -> None:
    """Print rows of anybody's texts and of numbers: all of them, or the first `MOST_ROWS`."""
    from rich.console import Console

    shown = rows[:MOST_ROWS] if cut else rows
    Console().print(rich_rows(names, shown, title))
    if len(shown) < len(rows):
        show(f"... and {len(rows) - MOST_ROWS} more")


def rich_rows(names: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> Table:
    """The same as rich draws it; numbers stand at the right."""
    from rich.text import Text

    from evalcube.stages.analyze.render.table import empty_table

    table = empty_table(Text(safe(title)) if title else None)
    texts = [[f"{cell:,}" if isinstance(cell, int) else safe(str(cell)) for cell in row] for row in rows]
    for column, name in enumerate(names):
        right = all(_NUMBER.fullmatch(row[column]) for row in texts)
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in texts:
        table.add_row(*map(Text, row))
    return table


def print_leaderboard(cube: str) -> None:
    """Print the leaderboard as a table for a terminal, and tell what a reader should know of it."""
    from evalcube.flows.read.statistics import leaderboard_of, rated_part

    opened = rated_part(cube, None, None)
    show_table(leaderboard_of(opened).sheet())
    warn(opened.warnings)
