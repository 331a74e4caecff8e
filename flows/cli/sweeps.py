"""Commands that make or extend cubes: run, plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.options import (
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
from evalcube.flows.cli.output import show_json
from evalcube.flows.cli.running import subscribers, tell

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep


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
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Answer nothing from the cache: replies go into a new one beside it."),
    ] = False,
    max_age: Annotated[
        str | None,
        typer.Option(
            "--max-age",
            metavar="TIME",
            help="Take no reply from the cache that is older than this, such as 7d.",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0, metavar="SECONDS", help="Wait so long for another run to leave the cube."
        ),
    ] = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Run a sweep, or resume it: what is recorded is never asked again."""
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.run.stopping import RunInterrupted
    from evalcube.flows.run.sweep import run as run_sweep

    sweep = load_sweep(config, models or (), key_envs or ())
    with subscribers(log, quiet=quiet) as followers:
        try:
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
                fresh=fresh,
                max_age=max_age,
                subscribers=followers,
                wait=wait,
            )
        except RunInterrupted as stopped:
            summary = stopped.summary
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
    check: Annotated[
        bool,
        typer.Option("--check", help="Ask each worker instead what a run asks it before its first request."),
    ] = False,
    scheduler: SchedulerOption = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would ask and cost, without asking anything."""
    from dataclasses import asdict

    from evalcube.flows.cli.planned import print_estimate, print_points
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.read.estimate import estimate, planned_points

    sweep = load_sweep(config, models or (), key_envs or ())
    if check:
        _check(sweep, cube, cache, scheduler, cluster, as_json=as_json)
        return
    if task is not None:
        points = planned_points(sweep, task)
        if as_json:
            show_json([asdict(point) for point in points])
        else:
            print_points(task, points)
        return
    result = estimate(sweep, cube=cube, cache=cache, only=only or (), trials=trials)
    if as_json:
        show_json(result.to_dict(), "plan")
    else:
        print_estimate(result)


def _check(
    sweep: Sweep,
    cube: str | None,
    cache: str | None,
    scheduler: str | None,
    cluster: str | None,
    *,
    as_json: bool,
) -> None:
    from evalcube.flows.cli.output import Code, complain, safe, show
    from evalcube.flows.config.load import as_config
    from evalcube.flows.run.sweep import check_workers

    found = check_workers(
        as_config(sweep, cube=cube, cache=cache), cluster=cluster, scheduler=scheduler, note=complain
    )
    fit = sum(not problem for problem in found.values())
    if as_json:
        show_json({"workers": found})
    else:
        for address, problem in found.items():
            show(safe(f"{address}: {problem or 'ok'}"))
        show(f"{fit} of {len(found)} workers could take part")
    if fit < len(found):
        raise typer.Exit(Code.REFUSED)


COMMANDS = (run, plan)
