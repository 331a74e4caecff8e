"""Commands that read cubes: status, leaderboard, report, show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.output import safe, show, show_json
from flows.cli.running import CacheOption, Json

if TYPE_CHECKING:
    from flows.reading import TrialView

Cube = Annotated[str, typer.Argument(help="Address of a cube, such as results/quickstart.zarr.")]


def status(cube: Cube, as_json: Json = False) -> None:
    """Show how far a sweep is, also while it runs elsewhere."""
    from flows.reading import cube_status

    document = cube_status(cube)
    if as_json:
        show_json(document)
    else:
        _print_status(document)


def _print_status(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    table.add_column("evaluation")
    for name in ("trials", "done", "transport errors", "missing", "regions"):
        table.add_column(name, justify="right")
    for row in document["models"]:
        regions = f"{row['regions_complete']}/{row['regions']}"
        numbers = (row["trials"], row["done"], row["transport"], row["missing"], regions)
        table.add_row(escape(safe(row["model"])), *map(str, numbers))
    console = Console()
    console.print(table)
    for row in document["models"]:
        for cause, count in row["causes"].items():
            console.print(f"{escape(safe(row['model']))}: {count} trials failed with {escape(safe(cause))}")
    holder = document["running"]
    console.print(
        f"{document['done']} of {document['trials']} trials done"
        + (f"; {escape(safe(holder))}" if holder else "")
    )


def leaderboard(
    cube: Cube,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
) -> None:
    """Rank the models of a cube by ReasonScore."""
    from flows.errors import SweepError
    from flows.report import leaderboard as make_board
    from stages.analyze import tables

    if as_json and markdown:
        raise SweepError("--json and --markdown exclude each other", "Give one of the two")
    if as_json:
        show(tables.json_text(make_board(cube)))
    elif markdown:
        show(tables.markdown_table(make_board(cube)))
    else:
        print_leaderboard(cube)


def print_leaderboard(cube: str) -> None:
    """Print the leaderboard as a table for a terminal."""
    from rich.console import Console

    from flows.report import leaderboard as make_board
    from stages.analyze.tables import terminal_table

    console = Console()
    console.print(terminal_table(make_board(cube), width=console.width))


def report(
    cube: Cube,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    samples: Annotated[
        int, typer.Option(min=0, max=5, help="Trials to show for each model and task; needs the cache.")
    ] = 1,
    cache: CacheOption = None,
) -> None:
    """Write a report: one HTML file that needs nothing else."""
    from flows.report import report as write_report

    show(str(write_report(cube, output, samples=samples, cache=cache)))


def show_trial(
    cube: Cube,
    task: Annotated[str, typer.Option(help="Name of the task.")],
    model: Annotated[str, typer.Option(help="Label or number of the evaluation.")] = "0",
    params: Annotated[
        str | None,
        typer.Option(
            help="Point of the task: length=4,max_depth=0, or its number, or JSON, which values with commas need."
        ),
    ] = None,
    trial: Annotated[int, typer.Option(help="Number of the trial, from 0.")] = 0,
    repeat: Annotated[int, typer.Option(help="Number of the repeat, from 0.")] = 0,
    cache: CacheOption = None,
    as_json: Json = False,
) -> None:
    """Show one trial: prompt, response, reasoning, parsed answer, reference, status."""
    from flows.reading import Reader

    reader = Reader(cube, cache)
    row, slot = reader.point(task, params)
    view = reader.view(reader.evaluation_index(model), row, slot, trial, repeat)
    if as_json:
        show_json(view.to_dict())
    else:
        _print_trial(view)


def _print_trial(view: TrialView) -> None:
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    params = ", ".join(f"{name}={value}" for name, value in view.params.items())
    head = f"{view.model} · {view.task} · {params} · trial {view.trial} · repeat {view.repeat}"
    console.print(Text(safe(head)))
    for message in view.messages:
        title = Text(safe(message["role"]))
        console.print(Panel(Text(safe(message["content"])), title=title, title_align="left"))
    if view.reasoning:
        console.print(Panel(Text(safe(view.reasoning)), title="reasoning", title_align="left"))
    response = safe(view.response) if view.response is not None else "(the cache does not hold this reply)"
    console.print(Panel(Text(response), title="response", title_align="left"))
    parsed = "none" if view.parsed is None else safe(view.parsed)
    console.print(Text(f"parsed {parsed}   reference {safe(view.reference)}   status {view.status}"))
    console.print(
        Text(f"tokens {view.tokens}   latency {view.latency:.3f} s   key {view.digest}", style="dim")
    )


show_trial.__name__ = "show"

COMMANDS = (status, leaderboard, report, show_trial)
