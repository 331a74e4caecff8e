"""Tables of results, in the form that was asked for: for a terminal, as Markdown or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.cli.output import complain, show, show_json

if TYPE_CHECKING:
    from stages.analyze.render.table import TableSpec


def one_form(*, as_json: bool, markdown: bool) -> None:
    """Refuse two forms of output at once.

    Raises
    ------
    SweepError
        If both are asked for.
    """
    if as_json and markdown:
        from flows.errors import SweepError

        raise SweepError("--json and --markdown exclude each other", "Give one of the two")


def warn(warnings: Sequence[str]) -> None:
    """Tell on standard error what a reader should know."""
    for text in warnings:
        complain(text)


def emit(table: TableSpec, document: Mapping[str, Any], *, as_json: bool, markdown: bool) -> None:
    """Print a table in the form that was asked for."""
    from stages.analyze.render.table import markdown_text

    if as_json:
        show_json(document)
    elif markdown:
        show(markdown_text(table))
    else:
        show_table(table)


def show_table(table: TableSpec) -> None:
    """Print a table that fits the terminal, and its notes below it."""
    from dataclasses import replace

    from rich.console import Console
    from rich.text import Text

    from stages.analyze.render.table import terminal

    console = Console()
    console.print(terminal(replace(table, notes=()), width=console.width))
    for note in table.notes:
        console.print(Text(note), style="dim")


def print_leaderboard(cube: str) -> None:
    """Print the leaderboard as a table for a terminal."""
    from flows.cubes.statistics import leaderboard as make_board
    from stages.analyze.render.table_specs import leaderboard_spec

    show_table(leaderboard_spec(make_board(cube)))
