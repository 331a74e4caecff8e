"""The command that measures a cube further: upsample."""

from __future__ import annotations

from typing import Annotated

import typer

from evalcube.flows.cli.options import (
    CacheOption,
    ClusterOption,
    CubeOption,
    GraderOption,
    JsonOption,
    LogOption,
    QuietOption,
    SchedulerOption,
    TasksOption,
    WhereOption,
    WorkersOption,
)
from evalcube.flows.cli.running import by_model, subscribers, tell


def upsample(
    source: Annotated[str, typer.Argument(help="The sweep's config, or its cube.")],
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials of each selected cell in the end.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Times that each question is asked in the end.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="low, medium or high: as many trials as each selected cell needs, instead of --trials."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="2M (tokens) or 5USD: spend so much where it helps most, instead of --trials."),
    ] = None,
    purpose: Annotated[
        str, typer.Option("--goal", help="What a budget is for: ranking (order of the models) or intervals.")
    ] = "ranking",
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Label of a model; may be given again."),
    ] = None,
    tasks: TasksOption = None,
    tiers: Annotated[
        list[str] | None, typer.Option("--tier", help="Name of a tier; may be given again.")
    ] = None,
    where: WhereOption = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The config of a cube that you did not run."),
    ] = None,
    endpoints: Annotated[
        list[str] | None,
        typer.Option(
            "--endpoint",
            metavar="[NAME=]URL",
            help="Whom to ask for more of a cube that you did not run: the address of its models, or of one.",
        ),
    ] = None,
    key_envs: Annotated[
        list[str] | None,
        typer.Option(
            "--key-env",
            metavar="[NAME=]VARIABLE",
            help="Environment variable with the key of those addresses, or of one.",
        ),
    ] = None,
    scheduler: SchedulerOption = None,
    cube: CubeOption = None,
    cache: CacheOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    log: LogOption = None,
    quiet: QuietOption = False,
    grader: GraderOption = "current",
    as_json: JsonOption = False,
) -> None:
    """Add trials or repeats to a sweep, everywhere or where you say; only what is new is asked."""
    from evalcube.flows.run.stopping import RunInterrupted
    from evalcube.flows.run.upsample import upsample as add_trials

    with subscribers(log, quiet=quiet) as followers:
        try:
            summary = add_trials(
                source,
                trials=trials,
                repeats=repeats,
                precision=precision,
                budget=budget,
                purpose=purpose,  # type: ignore[arg-type]  # refused there if it is none
                models=models or (),
                tasks=tasks or (),
                tiers=tiers or (),
                where=where or (),
                cube=cube,
                cache=cache,
                scheduler=scheduler,
                workers=workers,
                cluster=cluster,
                grader=grader,  # type: ignore[arg-type]  # refused above if it is neither
                subscribers=followers,
                config=config,
                endpoints=by_model("--endpoint", endpoints or ()),
                key_envs=by_model("--key-env", key_envs or ()),
            )
        except RunInterrupted as stopped:
            summary = stopped.summary
    tell(summary, as_json=as_json)


COMMANDS = (upsample,)
