"""Commands about where a sweep works: cluster script, and what jobs of a submitted sweep run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.flags import Command
from flows.cli.options import ClusterOption, ConfigArgument

commands = typer.Typer(help="Look at where a sweep works.", no_args_is_help=True)


@commands.command(cls=Command, hidden=True)
def attempt(
    folder: Annotated[Path, typer.Argument(help="Folder of a part that was submitted.")],
    workers: Annotated[int, typer.Option(min=1, help="Worker processes in the job.")] = 1,
    container: Annotated[str, typer.Option(help="Command that starts a container.")] = "",
) -> None:
    """Run one job of a submitted sweep; for the scripts that `submit` writes."""
    from flows.errors import SweepError
    from flows.submit.attempt import attempt as run_attempt

    job = os.environ.get("SLURM_JOB_ID", "")
    if not job.isdecimal():
        raise SweepError("this is no job of Slurm", "`evalcube submit` submits jobs that run it")
    raise typer.Exit(run_attempt(folder, int(job), workers=workers, container=container))


@commands.command(cls=Command)
def script(config: ConfigArgument, cluster: ClusterOption = None) -> None:
    """Print the job script with which a run asks Slurm for workers; nothing is submitted."""
    from flows.cli.output import show
    from flows.config.suites import load_sweep
    from flows.run.chosen_cluster import script_of

    show(script_of(load_sweep(config), cluster).rstrip())
