"""Grades a cube again with the graders of today, in its place or as a new cube."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalcube import EvalcubeError
from evalcube.flows.config.suites import load_sweep
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.errors import SweepError, need_path
from evalcube.flows.plan.build import check_reader, reader_of
from evalcube.flows.plan.plan import Plan
from evalcube.flows.state.caches import needed_replies
from evalcube.flows.state.growing import with_readers, with_said
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.rescoring import Rescoring, forget_second, regrade_recorded
from evalcube.flows.state.store import cube_plan
from evalcube.flows.state.trust import remembered_config
from evalcube.storage.cube.address import copy_cube, space_of
from evalcube.storage.cube.cube import PUBLISHED, Cube
from evalcube.storage.cube.holder import NAME as LEASE_NAME
from evalcube.storage.cube.layout import SIDE
from evalcube.storage.cube.lease import Lease
from evalcube.storage.errors import guarded


def rescore_cube(
    cube: OneCube,
    *,
    output: str | Path | None = None,
    cache: str | Path | None = None,
    reader: str | Path | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Rescoring:
    """Grade every recorded reply of a cube again, from the cache.

    Parameters
    ----------
    cube
        The cube, all of it.
    output
        Address of a new cube to write instead, where nothing is yet; default: into the same one.
    cache
        Address of the response cache; default: the one of this user's own run, or one beside the cube.
    reader
        A config, or the name of a suite, whose tasks say by their ``reader:``, or have by themselves, what reads the
        replies to the cube's tasks of the same labels a second time; default: the readers that the cube has.
    notify
        Called with what a person should read while the cube's lease is waited for; see
        `evalcube.storage.cube.lease.Lease.acquire`.

    Returns
    -------
    Rescoring
        Old and new counts by model and task.

    Raises
    ------
    StorageError
        If there is no cube, it is damaged, or another process works on it.
    SweepError
        If it is not a sweep's, no cache is known, or `output` exists.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.rescore("results/sweep.zarr").changed
    0
    """
    cube = need_address(cube)
    reader = None if reader is None else need_path("reader", reader)
    source = Cube.open(cube)
    notes = read_notes(source.records)
    if all(evaluation.is_imported for evaluation in cube_plan(source, notes).evaluations):
        raise SweepError(
            f"the replies of cube '{cube}' were graded by the tool that they were imported from",
            "Grade them again with that tool, and import its new log into a new cube",
        )
    readers = {} if reader is None else _readers(cube_plan(source, notes), reader)
    found = needed_replies(source, notes.get("cache"), cache)
    if PUBLISHED in source.attrs:
        # Refuses, before a copy is made in which nothing can be written either.
        Cube.open(cube, writable=True)
    target = str(cube) if output is None else _copied(cube, output)
    opened = Cube.open(target, writable=True)
    with Lease.acquire(opened.records, notify=notify):
        with_said(opened)
        plan = cube_plan(opened, notes)
        if readers:
            # What another one made of them goes first: no kill leaves a cube with outcomes of two readers.
            others = [
                task.reader and task.reader != readers.get(task.label, task.reader) for task in plan.tasks
            ]
            forget_second(opened, [place for place, other in enumerate(others) if other])
            plan = with_readers(opened, plan, readers)
        try:
            return regrade_recorded(opened, plan, found, older_only=False)
        except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, EvalcubeError) or remembered_config(source) is not None:
                raise  # its run took the same description
            what = f"what cube '{cube}' says of its tasks does not go with what it holds ({error!r:.200})"
            raise SweepError(what, "Take the cube from whoever made it anew") from error


def _readers(plan: Plan, config: str | Path) -> dict[str, Mapping[str, Any]]:
    """Descriptions of the second readers that a config, or a task itself, gives tasks of a plan, by label."""
    sweep = load_sweep(config, () if Path(config).is_file() else ["sim:"])  # a suite has no models of its own
    found: dict[str, Mapping[str, Any]] = {}
    for task in plan.tasks:
        section = sweep.tasks.get(task.label)
        if section is not None and (reader := reader_of(section, task.cells)):
            found[task.label] = reader
            check_reader(replace(task, reader=reader))
    if not found:
        raise SweepError(
            f"`reader`: {config} gives none of the cube's tasks a second reader: {', '.join(plan.task_names)}",
            "Write `reader:` below one of these tasks in it",
        )
    return found


def _copied(url: str | Path, output: str | Path) -> str:
    """A copy of a cube, without the lease."""
    if Cube.exists(output):
        raise SweepError(f"`output`: '{output}' is there already", "Give a new name")
    with guarded(output, "copy the cube"):
        copy_cube(space_of(url), space_of(output), lambda key: not key.startswith(f"{SIDE}/{LEASE_NAME}"))
    return str(output)
