"""What commands that read counters have in common: which part of a cube, and how to print a sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.output import complain, show, show_json

if TYPE_CHECKING:
    from flows.cubes.selection import Part
    from stages.analyze.render.table import TableSpec

CubeArgument = Annotated[str, typer.Argument(help="Address of a cube, such as results/quickstart.zarr.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="NAME=VALUE",
        help="Only this: task=sort,letters, tier=hard, model=NAME, template=, sampler=, a facet, or a task's "
        "parameter as in param_length=4..16 (or 4.. or ..16). Give it again for more conditions; all must hold.",
    ),
]
ViewOption = Annotated[
    str | None, typer.Option("--view", metavar="NAME", help="Only a view of the sweep's config.")
]
TrialsOption = Annotated[
    int | None, typer.Option("--trials", min=1, help="Only the first so many trials of each cell.")
]
UniqueOption = Annotated[
    bool, typer.Option("--unique-only", help="Only trials whose question is new in its cell.")
]
ClipOption = Annotated[
    int | None,
    typer.Option(
        "--clip-context",
        min=1,
        metavar="TOKENS",
        help="As if the limit of completion tokens had been this: longer answers count as truncated.",
    ),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        help="Estimator: E_I, E_P, E_O (share right) or C_I, C_P, C_O (guesses taken out); truncated trials as the "
        "others (I), as wrong (P), as right (O).",
    ),
]
ScoreOption = Annotated[
    str,
    typer.Option("--score", help="ReasonScore: v1 (upper bounds) or v2 (what was measured, by C_P)."),
]
PoolingOption = Annotated[
    str,
    typer.Option(
        "--pooling", help="pooled: every trial weighs the same. stratified: every point weighs the same."
    ),
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")]


def part_of(
    where: Sequence[str] | None = None,
    view: str | None = None,
    trials: int | None = None,
    *,
    unique_only: bool = False,
    clip_tokens: int | None = None,
    tier: str | None = None,
) -> Part:
    """The part of a cube that the options mean."""
    from flows.cubes.selection import Part

    conditions = (*(where or ()), *([f"tier={tier}"] if tier else ()))
    return Part(conditions, view, trials, unique_only, clip_tokens)


def names_of(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


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
