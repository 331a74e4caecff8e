"""Commands that make or extend cubes: run, plan."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.output import Code, complain, show, show_json

if TYPE_CHECKING:
    from flows.estimate import SweepEstimate
    from flows.summary import RunSummary

Config = Annotated[Path, typer.Argument(help="The sweep's config, a YAML file. `evalcube init` writes one.")]
CubeOption = Annotated[
    str | None, typer.Option("--cube", help="Address of the results; default: the config's.")
]
CacheOption = Annotated[
    str | None, typer.Option("--cache", help="Address of the response cache; default: the config's.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def run(
    config: Config,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a running Dask scheduler, such as tcp://host:8786; default: local processes."
        ),
    ] = None,
    cube: CubeOption = None,
    cache: CacheOption = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Local worker processes; default: one per core.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress display.")] = False,
    as_json: Json = False,
) -> None:
    """Run a sweep, or resume it: what is recorded is never asked again."""
    from flows.sweep import run as run_sweep

    with ExitStack() as stack:
        subscribers = []
        if not quiet:
            from flows.progress import Display

            subscribers.append(stack.enter_context(Display()))
        summary = run_sweep(
            config, cube=cube, cache=cache, scheduler=scheduler, workers=workers, subscribers=subscribers
        )
    if as_json:
        show_json(summary.to_dict())
    else:
        _print_summary(summary)
        if summary.done:
            from flows.cli.cubes import print_leaderboard

            print_leaderboard(summary.cube)
    _tell_what_is_left(summary)


def _print_summary(summary: RunSummary) -> None:
    show(f"{summary.done} of {summary.trials} trials done in {summary.seconds:.1f} s")
    show(f"{summary.sent} requests sent, {summary.cached} answered by the cache")
    show(f"{summary.prompt_tokens} prompt tokens, {summary.completion_tokens} completion tokens")
    if summary.retries:
        show("retried: " + ", ".join(f"{cause} ×{count}" for cause, count in sorted(summary.retries.items())))
    show(f"cube: {summary.cube}")


def _tell_what_is_left(summary: RunSummary) -> None:
    if summary.reason == "complete":
        return
    for cause, count in sorted(summary.causes.items(), key=lambda item: -item[1]):
        detail = summary.details.get(cause, "")
        complain(f"{count} trials: {cause}" + (f" ({detail})" if detail else ""))
    again = "Run the same command again to resume."
    if summary.reason == "stopped":
        complain(f"stopped with {summary.left} trials left. {again}")
        raise typer.Exit(Code.STOPPED)
    complain(f"incomplete: {summary.left} trials left after transport errors. {again}")
    raise typer.Exit(Code.INCOMPLETE)


def plan(config: Config, cube: CubeOption = None, cache: CacheOption = None, as_json: Json = False) -> None:
    """Show what a run would ask and cost, without asking anything."""
    from flows.estimate import estimate

    result = estimate(config, cube=cube, cache=cache)
    if as_json:
        show_json(result.to_dict())
    else:
        _print_estimate(result)


def _print_estimate(result: SweepEstimate) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    per_cell = f"{result.trials} trials" + (f" × {result.repeats} repeats" if result.repeats > 1 else "")
    console.print(f"[bold]{escape(result.name)}[/]: {result.cells} cells × {per_cell} per evaluation")
    console.print(f"cube {escape(result.cube)}, cache {escape(result.cache)}")
    points = Table("task", title="points", title_justify="left")
    tiers = [tier for tier in next(iter(result.points.values())) if tier != "all"]
    for name in ("all", *tiers):
        points.add_column(name, justify="right")
    for task, counts in result.points.items():
        points.add_row(escape(task), *(str(counts[name]) for name in ("all", *tiers)))
    console.print(points)
    table = Table(title="requests", title_justify="left")
    table.add_column("evaluation")
    for name in ("requests", "done", "cached", "to send", "prompt tokens", "completion tokens", "USD"):
        table.add_column(name, justify="right")
    for row in result.evaluations:
        about = "" if row.exact else "~"
        numbers = (row.requests, row.done, f"{about}{row.cached}", f"{about}{row.to_send}")
        tokens = (f"~{row.prompt_tokens}", f"~{row.completion_tokens}")
        table.add_row(escape(row.evaluation), *map(str, numbers), *tokens, f"~{row.cost:.2f}")
    console.print(table)
    basis = {row.completion_basis for row in result.evaluations if row.to_send}
    if basis:
        console.print(f"[dim]completion tokens: {'; '.join(sorted(basis))}[/]")
    console.print(f"{result.to_send} requests to send, about {result.cost:.2f} USD")


COMMANDS = (run, plan)
