"""The command that jobs of a submitted sweep run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from evalcube.flows.cli.flags import Command

commands = typer.Typer(help="What jobs of a submitted sweep run.", no_args_is_help=True)


@commands.command(cls=Command, hidden=True)
def attempt(
    folder: Annotated[Path, typer.Argument(help="Folder of a part that was submitted.")],
    workers: Annotated[int, typer.Option(min=1, help="Worker processes in the job.")] = 1,
    container: Annotated[str, typer.Option(help="Command that starts a container.")] = "",
    unbegun: Annotated[str, typer.Option(help="Jobs before this one whose run could not start.")] = "",
) -> None:
    """Run one job of a submitted sweep; for the scripts that `submit` writes."""
    from evalcube.flows.errors import SweepError
    from evalcube.flows.run.jobs.attempt import attempt as run_attempt

    job = os.environ.get("SLURM_JOB_ID", "")
    if not job.isdecimal():
        raise SweepError("this is no job of Slurm", "`evalcube submit` submits jobs that run it")
    before = [int(number) for number in unbegun.split() if number.isdecimal()]
    raise typer.Exit(run_attempt(folder, int(job), workers=workers, container=container, unbegun=before))
