"""Commands that make or extend cubes: run, plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.options import (
    AskedTrialsOption,
    CacheOption,
    ClusterOption,
    ConfigArgument,
    CubeOption,
    EndpointsOption,
    GraderOption,
    JsonOption,
    KeysOption,
    LogOption,
    OnlyOption,
    QuietOption,
    SchedulerOption,
    WorkersOption,
)
from flows.cli.output import show_json
from flows.cli.running import subscribers, tell

if TYPE_CHECKING:
    from rich.table import Table

    from flows.plan.estimate import EvaluationEstimate, PlannedPoint, SweepEstimate


def run(
    config: ConfigArgument,
    models: EndpointsOption = None,
    key_envs: KeysOption = None,
    scheduler: SchedulerOption = None,
    cube: CubeOption = None,
    cache: CacheOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    only: OnlyOption = None,
    trials: AskedTrialsOption = None,
    log: LogOption = None,
    quiet: QuietOption = False,
    grader: GraderOption = "current",
    as_json: JsonOption = False,
) -> None:
    """Run a sweep, or resume it: what is recorded is never asked again."""
    from flows.config.suites import load_sweep
    from flows.run.sweep import run as run_sweep

    sweep = load_sweep(config, models or (), key_envs or ())
    with subscribers(log, quiet=quiet) as followers:
        summary = run_sweep(
            sweep,
            cube=cube,
            cache=cache,
            scheduler=scheduler,
            workers=workers,
            cluster=cluster,
            only=only or (),
            trials=trials,
            grader=grader,  # type: ignore[arg-type]  # refused above if it is neither
            subscribers=followers,
        )
    tell(summary, as_json=as_json)


def plan(
    config: ConfigArgument,
    models: EndpointsOption = None,
    key_envs: KeysOption = None,
    cube: CubeOption = None,
    cache: CacheOption = None,
    task: Annotated[str | None, typer.Option(help="List the points of this task instead.")] = None,
    only: OnlyOption = None,
    trials: AskedTrialsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would ask and cost, without asking anything."""
    from dataclasses import asdict

    from flows.config.suites import load_sweep
    from flows.plan.estimate import estimate, planned_points

    sweep = load_sweep(config, models or (), key_envs or ())
    if task is not None:
        points = planned_points(sweep, task)
        if as_json:
            show_json([asdict(point) for point in points])
        else:
            _print_points(task, points)
        return
    result = estimate(sweep, cube=cube, cache=cache, only=only or (), trials=trials)
    if as_json:
        show_json(result.to_dict())
    else:
        _print_estimate(result)


def _print_points(task: str, points: list[PlannedPoint]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    constant = {
        name: value
        for name, value in points[0].params.items()
        if all(point.params[name] == value for point in points)
    }
    varied = [name for name in points[0].params if name not in constant]
    table = Table(*map(escape, varied), "tiers", "difficulty")
    for point in points:
        values = (escape(str(point.params[name])) for name in varied)
        table.add_row(*values, escape(", ".join(point.tiers)), f"{point.difficulty:.1f}")
    console = Console()
    console.print(f"[bold]{escape(task)}[/]: {len(points)} points")
    if constant:
        same = ", ".join(f"{name}={value}" for name, value in constant.items())
        console.print(f"[dim]all with {escape(same)}[/]")
    console.print(table)


def _print_estimate(result: SweepEstimate) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    per_cell = f"{result.trials} trials" + (f" × {result.repeats} repeats" if result.repeats > 1 else "")
    console.print(f"[bold]{escape(result.name)}[/]: {result.cells} cells × {per_cell} per evaluation")
    if result.most_trials > result.trials:
        console.print(
            f"then rounds of more trials where they are needed, up to {result.most_trials} per cell"
        )
    console.print(f"cube {escape(result.cube)}, cache {escape(result.cache)}")
    console.print(_points_table(result))
    console.print(_requests_table(result))
    if result.unnamed is not None:
        console.print(escape(str(result.unnamed)))
    if result.pending:
        console.print(f"beside this part, {result.pending:,} trials of the plan are pending")
    basis = {row.completion_basis for row in result.rows if row.to_send}
    if basis:
        console.print(f"[dim]completion tokens: {'; '.join(sorted(basis))}[/]")
    most = "at most " if any(row.to_send for row in result.judges) else ""  # equal answers are judged once
    cost = f"about {result.cost:.2f} USD" if result.cost or not result.to_send else "without declared prices"
    console.print(f"{most}{result.to_send} requests to send, {cost}")


def _points_table(result: SweepEstimate) -> Table:
    from rich.markup import escape
    from rich.table import Table

    points = Table("task", title="points", title_justify="left", show_footer=True)
    points.columns[0].footer = "total"
    for name, total in result.totals.items():
        points.add_column(escape(name), justify="right", footer=str(total))
    for task, counts in result.points.items():
        points.add_row(escape(task), *(str(counts[name]) for name in result.totals))
    return points


def _requests_table(result: SweepEstimate) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="requests", title_justify="left")
    table.add_column("evaluation")
    for name in ("requests", "done", "cached", "to send", "prompt tokens", "completion tokens", "USD"):
        table.add_column(name, justify="right")
    for row in result.rows:
        about = "" if row.exact else "~"
        numbers = (row.requests, row.done, f"{about}{row.cached}", f"{about}{row.to_send}")
        tokens = (f"~{row.prompt_tokens}", f"~{row.completion_tokens}")
        table.add_row(escape(row.evaluation), *map(str, numbers), *tokens, _about(row))
    return table


def _about(row: EvaluationEstimate) -> str:
    """A cost; a dash where requests have no price."""
    return f"~{row.cost:.2f}" if row.cost or not row.to_send else "–"


COMMANDS = (run, plan)
