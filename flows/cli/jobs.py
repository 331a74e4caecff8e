"""Commands that hand a sweep whole to a batch system or to a Dask cluster: submit, cancel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from evalcube.flows.cli.options import (
    CacheOption,
    ClusterOption,
    ConfigArgument,
    CubeOption,
    SchedulerOption,
    SshOption,
)
from evalcube.flows.cli.output import safe, show, show_json


def submit(
    config: ConfigArgument,
    scheduler: SchedulerOption = None,
    cluster: ClusterOption = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="NAME,NAME",
            help="Models that go into one job; each other one has its own. Give it again for more.",
        ),
    ] = None,
    together: Annotated[bool, typer.Option("--together", help="All models in one job.")] = False,
    total: Annotated[
        str | None,
        typer.Option(
            "--total",
            metavar="TIME",
            help="Walltime of all jobs of a chain together, such as 2d; default: that of twelve.",
        ),
    ] = None,
    cube: CubeOption = None,
    cache: CacheOption = None,
    ssh: Annotated[
        str | None,
        typer.Option(
            "--ssh", metavar="HOST", help="Submit on this host, to which config and files are copied."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print everything that would be submitted, and submit nothing.")
    ] = False,
) -> None:
    """Hand a sweep to a Dask cluster (--scheduler), where its driver goes on when this command has ended, or to Slurm.

    On Slurm each model has a job with its own driver and workers, resumed until it is complete.
    """
    from evalcube.flows.config.load import as_config
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.submit import prepare

    settings = as_config(load_sweep(config), cube=cube, cache=cache)
    slurm = bool(groups or together or total or ssh or dry_run)
    dask = prepare.dask_cluster(settings, scheduler, cluster, only_slurm=slurm)
    if dask is not None:
        from evalcube.flows.submit.to_dask import submit_to

        begun = submit_to(dask, settings, lambda text: show(safe(text)))
        show(safe(f"{settings.cube}: {begun}"))
        if begun != "complete":
            show(
                safe(
                    f"how it goes: evalcube status {settings.cube}; to end it: evalcube ctl {settings.cube} stop"
                )
            )
        return
    if ssh is not None:
        from evalcube.flows.submit.remote import submit_there

        options = [word for group in groups or () for word in ("--group", group)]
        options += ["--together"] if together else []
        options += ["--total", total] if total else []
        said, made = submit_there(settings, ssh, cluster, options, dry_run=dry_run)
        show(safe(said.rstrip()))
        if made is not None:
            show(safe(f"from here: evalcube status {made.name} --ssh {ssh}; evalcube cancel {made.name}"))
        return
    prepared = prepare.prepare(
        settings,
        cluster,
        groups=[group.split(",") for group in groups or ()],
        together=together,
        total=_seconds(total),
    )
    if dry_run:
        show(safe(str(prepared)))
        return
    made = prepare.submit(prepared)
    show(
        safe(
            f"submitted as {made.name}: " + ", ".join(f"{part.name} is job {part.job}" for part in made.parts)
        )
    )
    show(safe(f"how it goes: evalcube status {made.cube}; to end it: evalcube cancel {made.name}"))


def _seconds(total: str | None) -> float | None:
    from pydantic_core import PydanticCustomError

    from evalcube.flows.config.cluster import seconds
    from evalcube.flows.errors import SweepError

    if total is None:
        return None
    try:
        return float(str(seconds(total)))
    except PydanticCustomError:
        raise SweepError(f"`total`: '{total}' is no time", "Write it as in 20m, 2h, 1d or 01:30:00") from None


def cancel(
    target: Annotated[
        str | None,
        typer.Argument(help="Cube or name of what was submitted; may be left out if only one goes on."),
    ] = None,
    ssh: SshOption = None,
) -> None:
    """End the jobs of a submitted sweep, for a cube all that work on it; what they measured stays."""
    from evalcube.flows.submit.remote import names_there, there
    from evalcube.flows.submit.watch import cancel as end_jobs
    from evalcube.flows.submit.watch import wanted

    if ssh is not None:
        for words in [[]] if target is None else [[name] for name in names_there(ssh, target)]:
            show(safe(there(ssh, "cancel", *words).rstrip()))
        return
    for found in wanted(target):
        if found.host:
            show(safe(there(found.host, "cancel", found.name).rstrip()))
            continue
        count = end_jobs(found)
        ended = f"{count} job{'' if count == 1 else 's'} ended; submit again to go on with what is left"
        show(safe(f"{found.name}: {ended if count else 'no job was in the queue'}"))


def show_status_there(host: str, cubes: Sequence[str], *, watch: bool, as_json: bool) -> None:
    """Print what `evalcube status` says of cubes on another host."""
    from evalcube.flows.errors import SweepError
    from evalcube.flows.submit.remote import cube_there, there

    if watch:
        raise SweepError(
            "--watch follows a cube of this machine", f"ssh -t {host} evalcube status --watch CUBE"
        )
    words = [cube_there(host, cube) for cube in cubes]
    words += ["--json"] if as_json else []
    said = there(host, "status", *words).rstrip()
    if not as_json:
        show(safe(said))
        return
    try:
        show_json(json.loads(said))
    except ValueError:
        raise SweepError(f"{host} did not answer in JSON, but: {safe(said[:300])}") from None


COMMANDS = (submit, cancel)
