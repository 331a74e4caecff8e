"""Commands that hand a sweep whole to a batch system or to a Dask cluster: submit, stop."""

from __future__ import annotations

from typing import Annotated

import typer

from evalcube.flows.cli.options import (
    CacheOption,
    ClusterOption,
    ConfigArgument,
    CubeOption,
    SchedulerOption,
)
from evalcube.flows.cli.output import safe, show


def submit(
    config: ConfigArgument,
    scheduler: SchedulerOption = None,
    cluster: ClusterOption = None,
    cube: CubeOption = None,
    cache: CacheOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print all that Slurm would be given, and submit nothing.")
    ] = False,
) -> None:
    """Hand a sweep to a Dask cluster (--scheduler), where its driver goes on when this command has ended, or to Slurm.

    On Slurm each model has a job with its own driver and workers, resumed until it is complete.
    """
    from evalcube.deploy.clusters import ExistingScheduler
    from evalcube.flows.config.load import as_config
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.errors import SweepError
    from evalcube.flows.run.jobs import prepare
    from evalcube.flows.run.jobs.to_dask import submit_to

    settings = as_config(load_sweep(config), cube=cube, cache=cache)
    place = prepare.place_of(settings, scheduler, cluster)
    if isinstance(place, ExistingScheduler):
        if dry_run:
            raise SweepError("`dry_run` is for Slurm, and the sweep goes to a Dask cluster", "Leave it out")
        begun = submit_to(place, settings, lambda text: show(safe(text)))
        show(safe(f"{settings.cube}: {begun}"))
        if begun == "complete":
            return
        made_of = settings.cube
    else:
        prepared = prepare.prepare(settings, place)
        if dry_run:
            show(safe(str(prepared)))
            return
        made = prepare.submit(prepared)
        jobs = ", ".join(f"{part.name} is job {part.job}" for part in made.parts)
        show(safe(f"submitted as {made.name}: {jobs}"))
        made_of = made.cube
    show(safe(f"how it goes: evalcube status {made_of}; to end it: evalcube stop {made_of}"))


def stop(
    target: Annotated[
        str, typer.Argument(metavar="CUBE", help="Address of the cube, or the name of what was submitted.")
    ],
) -> None:
    """Stop the run that works on a cube in good order, from any machine that can write there.

    What is in flight ends, everything is recorded, and the same command goes on later. Jobs that you submitted for
    the cube are ended, too.
    """
    from evalcube.flows.errors import SweepError
    from evalcube.flows.run.jobs.records import submissions_of
    from evalcube.flows.run.jobs.watch import cancel, stop_run
    from evalcube.storage.errors import CubeNotFoundError

    known, stopped = submissions_of(target), False
    try:
        # Before any job ends: also where Slurm does not answer, the run has heard.
        stopped = not any(one.name == target for one in known) and stop_run(target)
    except CubeNotFoundError:
        if not known:
            raise
    jobs = sum(map(cancel, known))
    if not (stopped or jobs):
        raise SweepError(f"no run works on '{target}' at the moment", "`evalcube status` shows how far it is")
    if jobs:
        show(f"{jobs} job{'' if jobs == 1 else 's'} ended; submit again to go on with what is left")
    else:
        show("stopping: what is in flight ends first, and everything is recorded")


COMMANDS = (submit, stop)
