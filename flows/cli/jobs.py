"""Commands that hand a sweep to a batch system whole: submit, cancel."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import CacheOption, ClusterOption, ConfigArgument, CubeOption
from flows.cli.output import safe, show


def submit(
    config: ConfigArgument,
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
    """Hand a sweep to Slurm: one job per model, with its own driver and workers; resumed until it is complete."""
    from flows.config.load import as_config
    from flows.config.suites import load_sweep
    from flows.submit import prepare

    settings = as_config(load_sweep(config), cube=cube, cache=cache)
    if ssh is not None:
        from flows.submit.remote import submit_there

        options = [word for group in groups or () for word in ("--group", group)]
        options += ["--together"] if together else []
        options += ["--total", total] if total else []
        said, _ = submit_there(settings, ssh, cluster, options, dry_run=dry_run)
        show(safe(said.rstrip()))
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

    from flows.config.cluster import seconds
    from flows.errors import SweepError

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
) -> None:
    """End the jobs of a submitted sweep, for a cube all that work on it; what they measured stays."""
    from flows.submit.watch import cancel as end_jobs
    from flows.submit.watch import wanted

    for found in wanted(target):
        if found.host:
            from flows.submit.remote import there

            show(safe(there(found, "cancel", found.name).rstrip()))
            continue
        count = end_jobs(found)
        ended = f"{count} job{'' if count == 1 else 's'} ended; submit again to go on with what is left"
        show(safe(f"{found.name}: {ended if count else 'no job was in the queue'}"))


COMMANDS = (submit, cancel)
