"""Commands about where a sweep works: cluster script, and what jobs of a submitted sweep run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli.flags import Command
from evalcube.flows.cli.options import ClusterOption, ConfigArgument, JsonOption, SchedulerOption

if TYPE_CHECKING:
    from evalcube.flows.run.cluster_check import WorkerCheck

commands = typer.Typer(help="Look at where a sweep works.", no_args_is_help=True)


@commands.command(cls=Command, hidden=True)
def attempt(
    folder: Annotated[Path, typer.Argument(help="Folder of a part that was submitted.")],
    workers: Annotated[int, typer.Option(min=1, help="Worker processes in the job.")] = 1,
    container: Annotated[str, typer.Option(help="Command that starts a container.")] = "",
    unbegun: Annotated[str, typer.Option(help="Jobs before this one whose run could not start.")] = "",
) -> None:
    """Run one job of a submitted sweep; for the scripts that `submit` writes."""
    from evalcube.flows.errors import SweepError
    from evalcube.flows.submit.attempt import attempt as run_attempt

    job = os.environ.get("SLURM_JOB_ID", "")
    if not job.isdecimal():
        raise SweepError("this is no job of Slurm", "`evalcube submit` submits jobs that run it")
    before = [int(number) for number in unbegun.split() if number.isdecimal()]
    raise typer.Exit(run_attempt(folder, int(job), workers=workers, container=container, unbegun=before))


@commands.command(cls=Command)
def script(config: ConfigArgument, cluster: ClusterOption = None) -> None:
    """Print the job script with which a run asks Slurm for workers; nothing is submitted."""
    from evalcube.flows.cli.output import show
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.run.chosen_cluster import script_of

    show(script_of(load_sweep(config), cluster).rstrip())


@commands.command(cls=Command)
def manifest(
    config: ConfigArgument,
    cluster: ClusterOption = None,
    image: Annotated[
        str | None, typer.Option(help="Image of all pods; default: that of the cluster's description.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace of all that is made.")] = None,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            help="daskjob: its cluster goes when the run has ended. job: a DaskCluster with a Job, which outlives the "
            "loss of its node.",
        ),
    ] = "daskjob",
) -> None:
    """Print the manifests with which a sweep runs on Kubernetes; nothing is applied."""
    from evalcube.flows.cli.output import show
    from evalcube.flows.run.manifests import manifest_of

    text = manifest_of(config, cluster=cluster, image=image, namespace=namespace, form=form)  # type: ignore[arg-type]  # refused there
    show(text.rstrip())


@commands.command(cls=Command)
def check(
    config: ConfigArgument,
    cluster: ClusterOption = None,
    scheduler: SchedulerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask each worker whether it could take part in a sweep, and send no question.

    Asked are versions, storage, conditional writes, keys, and whether the models' addresses can be connected to.
    """
    from evalcube.flows.cli.output import Code, complain, show_json
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.run.cluster_check import check_cluster

    found = check_cluster(load_sweep(config), cluster=cluster, scheduler=scheduler, note=complain)
    if as_json:
        show_json([one.to_dict() for one in found])
    else:
        _print_checks(found)
    if not all(one.well for one in found):
        raise typer.Exit(Code.REFUSED)


def _print_checks(found: list[WorkerCheck]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from evalcube.flows.cli.output import complain, safe, show
    from evalcube.flows.run.cluster_check import CHECKS

    table = Table()
    table.add_column("worker", overflow="fold")
    table.add_column("host", overflow="fold")
    for name in CHECKS:
        table.add_column(name, no_wrap=True)
    for one in found:
        problems = one.problems
        marks = ["?" if problems is None else "no" if name in problems else "ok" for name in CHECKS]
        if problems is not None and "versions" in problems:
            marks[1:] = ["?"] * (len(CHECKS) - 1)
        table.add_row(*(escape(safe(cell)) for cell in (one.address, one.host)), *marks)
    Console().print(table)
    for one in found:
        if one.problems is None:
            complain(f"worker {one.address} ({one.host or one.name}): did not answer")
        for problem in (one.problems or {}).values():
            complain(f"worker {one.address} ({one.host or one.name}): {problem}")
        if one.warning:
            complain(f"worker {one.address} ({one.host}): {one.warning}")
    versions = sorted({f"Python {one.python} with Dask {one.dask}" for one in found if one.python})
    show(safe("; ".join(versions)))
    well = sum(one.well for one in found)
    show(f"{well} of {len(found)} workers could take part")
