"""Commands about sweeps that go on elsewhere: submit, stop and status."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.output import ExitStatus, end_when_unread, rich_rows, safe, show, show_json
from evalcube.flows.read.trials.escaping import jsonable

if TYPE_CHECKING:
    from rich.console import RenderableType


def submit(
    config: options.Configs,
    scheduler: str | None = None,
    cluster: str | None = None,
    cube: options.Results = None,
    cache: str | None = None,
    only: list[str] | None = None,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    """Start a sweep that outlives this command, on a Dask cluster (--scheduler) or as a Slurm job (--cluster FILE).

    The Slurm job queues itself again while there is work left.

    Parameters
    ----------
    dry_run
        Print the script of the Slurm job, and submit nothing.
    """
    from evalcube.flows.config.cluster import SlurmSection
    from evalcube.flows.config.load import as_config, cluster_section
    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.errors import SweepError
    from evalcube.flows.plan.part import Only

    Only.of(only or ())
    settings = as_config(load_sweep(config), cube=cube, cache=cache)
    section = cluster_section(settings, cluster) if scheduler is None else None
    if isinstance(section, SlurmSection):
        from evalcube.flows.run.jobs import slurm_job

        flags = [("--cube", cube), ("--cache", cache), *(("--only", condition) for condition in only or ())]
        arguments = [*config, *(word for flag, value in flags if value is not None for word in (flag, value))]
        job = slurm_job.prepare(settings, section, arguments)
        if dry_run:
            show(safe(job.script.rstrip()))
            return
        number = slurm_job.submit(job)
        show(safe(f"job {number}, whose script is {job.path}"))
        commands = f"squeue -j {number}; evalcube status {settings.cube}"
        show(safe(f"progress: {commands}; to stop it: scancel {number}"))
        return
    if dry_run:
        raise SweepError("`dry_run` is for Slurm, and the sweep goes to a Dask cluster", "Leave it out")
    from evalcube.flows.run.cluster import chosen_cluster
    from evalcube.flows.run.jobs.dask_driver import submit_to

    target = chosen_cluster(settings, cluster=cluster, scheduler=scheduler)
    state = submit_to(target, settings, only or (), lambda text: show(safe(text)))
    show(safe(f"{settings.cube}: {state}"))
    if state != "complete":
        show(safe(f"progress: evalcube status {settings.cube}; to stop it: evalcube stop {settings.cube}"))


def stop(cube: options.Cube) -> None:
    """Cleanly stop the run that works on a cube, from any machine that can write to it.

    Requests in flight are finished and recorded. To resume, repeat the command that started the run.
    """
    from evalcube.flows.run.stopping import stop_run

    stop_run(cube)
    show("stopping: requests in flight are finished and recorded first")


_LOOK_SECONDS = 1.0
_MOST_FAILURES = 5
"""Looks in a row that may fail: a network file system is away for a moment."""
_SHOWN_CAUSES = 5
_SHOWN_LINES = 5
"""Of what a submitted sweep's driver said; --json has more."""


def follow(cube: str, *, as_json: bool) -> None:
    """Show a cube's status every `_LOOK_SECONDS` until the sweep is complete.

    A terminal is redrawn, a pipe gets a line each time, a program that wants JSON an object on a line.
    """
    from rich.console import Console
    from rich.live import Live

    end_when_unread()
    console = Console()
    # Outside of the handler: an exit with an interrupt behind it would be taken for a run that was stopped.
    with suppress(KeyboardInterrupt):
        if as_json or not console.is_terminal:
            for document in _looks(cube):
                line = f"{time.strftime('%H:%M:%S')}  {_line(document, watched=True)}"
                entry = jsonable({"time": time.time(), **document})
                show(json.dumps(entry, allow_nan=False) if as_json else line)
                sys.stdout.flush()
            return
        with Live(console=console, auto_refresh=False) as live:
            for document in _looks(cube):
                live.update(_render(document, watched=True), refresh=True)
        return
    raise typer.Exit(ExitStatus.STOPPED)


def _looks(cube: str) -> Iterator[dict[str, Any]]:
    """What there is to see, again and again."""
    from evalcube.flows.read.status import cube_status
    from evalcube.storage.errors import StorageError

    document, failures = cube_status(cube), 0
    while True:
        yield document
        if document["complete"] and not document["running"]:
            return
        time.sleep(_LOOK_SECONDS)
        try:
            document, failures = cube_status(cube), 0
        except StorageError:
            failures += 1
            if failures > _MOST_FAILURES:
                raise


def _trials_done(document: dict[str, Any]) -> tuple[int, int]:
    """Trials done and in all: as a run that goes on says, else as recorded."""
    live = document["live"] or document
    return max(int(live["done"]), document["done"]), max(int(live["trials"]), document["trials"])


def _line(document: dict[str, Any], *, watched: bool = False) -> str:
    """Return all of it in a line."""
    (done, trials), live, spent = _trials_done(document), document["live"], document["spent"]
    begun = trials or document["complete"] or live is not None
    parts = [
        f"{done:,} of {trials:,} trials done" if begun else "not begun: no run has sent its first request"
    ]
    if live is not None:
        parts += [f"{document['done']} recorded", *_live_parts(live)]
    if document["damaged"]:
        parts.append(f"{document['damaged']} regions damaged: the next run restores them from the cache")
    if document["damaged_lines"]:
        lines = document["damaged_lines"]
        parts.append(f"{lines} lines of the ledger damaged: run the sweep again; no request is repeated")
    if spent is not None and spent["usd"]:
        parts.append(f"{spent['usd']:.2f} USD spent")
    if document["running"]:
        parts.append(safe(document["running"]))
    elif watched and not document["complete"]:
        parts.append("no run is working on it now")
    return "; ".join(parts)


def _live_parts(live: dict[str, Any]) -> list[str]:
    """What a run that goes on said of itself a moment ago: the numbers of its display."""
    from evalcube.flows.run.follow.progress import eta_text, waits  # with numpy, which no help needs

    parts = [f"{live['in_flight']} in flight, {live['sent']} sent, {live['cached']} cached"]
    retried = sum(count for count in live["retries"].values() if isinstance(count, int))
    if retried or live["transport"]:
        parts.append(f"{live['transport']} failed, {retried} retried")
    parts.append(f"requests/s {live['rate']:.1f}, ETA {eta_text(live['eta'])}")
    if live["waiting"]:
        parts.append(safe(waits(live["waiting"])))
    return parts


def _driver_lines(driver: Mapping[str, Any] | None) -> list[str]:
    """Where the driver of a submitted sweep is, and what it said last."""
    if driver is None:
        return []
    where = f"submitted to {driver['scheduler']}; driver last on {driver['worker']}, which said:"
    return [where, *(f"  {line}" for line in driver["lines"][-_SHOWN_LINES:])]


def _render(document: dict[str, Any], *, watched: bool = False) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from evalcube.flows.state.beside_config import Unnamed

    # While a run goes on, it knows of more than the records, from which these numbers are.
    done, missing = ("done", "missing") if document["live"] is None else ("recorded", "not recorded")
    rows, causes = [], []
    for row in document["models"]:
        name = row["model"]
        unnamed = document["unnamed"] is not None and name in document["unnamed"]["models"]
        regions = f"{row['regions_complete']}/{row['regions']}"
        numbers = (row["trials"], row["done"], row["transport"], row["missing"], regions)
        rows.append((f"{name} (not in the run)" if unnamed else name, *numbers))
        causes += [f"{name}: answered by {row['answered_by']}"] if row["answered_by"] else []
        causes += [row["warning"]] if row["warning"] else []
        causes += [f"{name}: {count} trials failed with {cause}" for cause, count in row["causes"].items()]
    if watched and len(causes) > _SHOWN_CAUSES:
        causes[_SHOWN_CAUSES:] = [f"... and {len(causes) - _SHOWN_CAUSES} causes more"]
    causes += [*document["refused"], *_driver_lines(document["driver"])]
    if document["unnamed"] is not None:
        causes.append(str(Unnamed(**document["unnamed"])))
    table = rich_rows(("evaluation", "trials", done, "transport errors", missing, "regions written"), rows)
    return Group(table, *(Text(safe(cause)) for cause in causes), Text(_line(document, watched=watched)))


def status(
    cube: options.Cubes,
    watch: Annotated[bool, typer.Option("--watch")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the progress of a sweep, even one that runs elsewhere, or of several cubes.

    Parameters
    ----------
    watch
        Show it until the sweep is complete or you press Ctrl-C.
    """
    from evalcube.flows.errors import SweepError
    from evalcube.flows.read.status import cube_status

    cubes = list(dict.fromkeys(cube))
    if watch and len(cubes) > 1:
        raise SweepError("--watch follows one cube", "Give one cube")
    if watch:
        follow(cubes[0], as_json=as_json)
    elif as_json:
        states = {address: cube_status(address) for address in cubes}
        show_json({"cubes": states} if len(cubes) > 1 else states[cubes[0]], "status")
    else:
        for address in cubes:
            if len(cubes) > 1:
                show(safe(address))
            _print_status(address)


def _print_status(cube: str) -> None:
    from rich.console import Console

    from evalcube.flows.read.status import cube_status

    Console().print(_render(cube_status(cube)))
