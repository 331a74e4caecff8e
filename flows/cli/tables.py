"""Tables of results, in the form that was asked for: for a terminal, as Markdown, as CSV or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalcube.flows.cli.output import complain, show, show_json

if TYPE_CHECKING:
    from rich.console import Console

    from evalcube.stages.analyze.render.table import TableSpec


def one_form(*, as_json: bool, markdown: bool = False, as_csv: bool = False) -> None:
    """Refuse several forms of output at once.

    Raises
    ------
    SweepError
        If more than one is asked for.
    """
    exclusive({"--json": as_json, "--markdown": markdown, "--csv": as_csv})


def exclusive(flags: Mapping[str, bool]) -> None:
    """Refuse several flags at once of which each excludes the others.

    Parameters
    ----------
    flags
        By name, whether each was given.

    Raises
    ------
    SweepError
        If more than one was.
    """
    named = [name for name, given in flags.items() if given]
    if len(named) > 1:
        from evalcube.flows.errors import SweepError

        raise SweepError(f"{' and '.join(named)} exclude each other", "Give one of them")


def warn(warnings: Sequence[str]) -> None:
    """Tell on standard error what a reader should know."""
    for text in warnings:
        complain(text)


def noted(warnings: Sequence[str]) -> dict[str, list[str]]:
    """The same among the fields of a document, for whoever keeps that alone."""
    return {"warnings": list(warnings)} if warnings else {}


def show_below(warnings: Sequence[str]) -> None:
    """The same below a table in Markdown."""
    from evalcube.stages.analyze.render.text import sentence

    for text in warnings:
        show(f"\n{sentence(text)}")


def emit(
    table: TableSpec,
    document: Mapping[str, Any],
    *,
    as_json: bool,
    markdown: bool = False,
    as_csv: bool = False,
    rows: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Print a table in the form that was asked for.

    Parameters
    ----------
    table
        For people.
    document
        For programs.
    as_json, markdown, as_csv
        The form, at most one of them; else the table is shown as the terminal allows.
    rows
        What CSV has, a line each; default: the document's ``rows``.
    """
    if as_json:
        show_json(document)
    elif as_csv:
        show_csv(document["rows"] if rows is None else rows)
    else:
        print_table(table, markdown=markdown)


def print_table(table: TableSpec, *, markdown: bool) -> None:
    """Print a table for people, as Markdown or as the terminal allows."""
    if markdown:
        from evalcube.stages.analyze.render.table import markdown_text

        show(markdown_text(table))
    else:
        show_table(table)


def show_csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> None:
    """Print rows as CSV with a header: all digits, nothing where there is no value, and no formula of a spreadsheet.

    Parameters
    ----------
    rows
        Made flat by `evalcube.stages.analyze.render.shown.records`.
    names
        The header where there is no row.
    """
    import csv
    import sys

    from evalcube.flows.read.trials.escaped import csv_text, jsonable
    from evalcube.stages.analyze.render.shown import records

    def cell(value: object) -> object:
        if isinstance(value, bool):
            return "true" if value else "false"
        return csv_text(value) if isinstance(value, str) else value

    found = records(rows)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(csv_text, found[0] if found else names))
    writer.writerows(map(cell, jsonable(row).values()) for row in found)


def show_table(table: TableSpec, console: Console | None = None) -> None:
    """Print a table that fits the terminal; below it what a wider one would also show, and the table's notes."""
    from dataclasses import replace

    from rich.console import Console
    from rich.text import Text

    from evalcube.stages.analyze.render.table import left_out, shown_notes, terminal

    console = console or Console()
    console.print(terminal(replace(table, notes=()), width=console.width))
    if hidden := left_out(table, width=console.width):
        console.print(Text(f"A wider terminal also shows: {', '.join(dict.fromkeys(hidden))}."), style="dim")
    for note in shown_notes(table, width=console.width):
        console.print(Text(note), style="dim")


def print_leaderboard(cube: str) -> None:
    """Print the leaderboard as a table for a terminal."""
    from evalcube.flows.read.statistics import leaderboard as make_board
    from evalcube.stages.analyze.render.board_spec import leaderboard_spec

    show_table(leaderboard_spec(make_board(cube)))
