"""A sweep as one job of Slurm: its script beside the cube, which runs `evalcube run`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from evalcube.deploy import slurm
from evalcube.flows.config.cluster import SlurmSection
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.storage.urls import directory_of, is_directory

_LEASE_SECONDS = 600
"""That a job waits for the cube: the node of the run before it may have failed without leaving it."""


class SlurmJob(NamedTuple):
    """A job that is not submitted yet."""

    path: Path
    """Of its script."""
    script: str


def prepare(settings: Sweep, section: SlurmSection, arguments: Sequence[str]) -> SlurmJob:
    """Return the job of a sweep; `arguments` are those of `evalcube run`, relative to the current directory."""
    build_plan(settings)  # what is wrong with the config is an error now, not in a job at night
    cube = (
        directory_of(settings.cube) if is_directory(settings.cube) else Path.cwd() / Path(settings.cube).name
    )
    program = [sys.executable, "-P", "-m", "evalcube"]
    if section.command is not None:
        program = shlex.split(section.command)
    command = [*program, "run", *arguments, "--quiet", "--wait", str(_LEASE_SECONDS)]
    log = cube.with_name(f"{cube.stem.replace('%', '%%')}-%j.log")
    script = slurm.job_script(f"evalcube-{cube.stem}", log, command, section.options, section.prologue)
    return SlurmJob(cube.with_name(f"{cube.stem}.sbatch"), script)


def submit(job: SlurmJob) -> int:
    """Write the script and submit it; return the number of the job."""
    try:
        job.path.parent.mkdir(parents=True, exist_ok=True)
        job.path.write_text(job.script)
    except OSError as error:
        raise SweepError(
            f"{job.path}: the job's script cannot be written: {error.strerror}", "Give another `cube`"
        ) from None
    return slurm.submit(job.path)
