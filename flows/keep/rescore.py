"""Grades a cube again with the graders of today, in its place or as a new cube."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalcube import EvalcubeError
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.state.caches import needed_replies
from evalcube.flows.state.growing import with_said
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.rescoring import Rescoring, regrade_recorded
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
    subscribers: Sequence[Subscriber] = (),
) -> Rescoring:
    """Grade every recorded reply of a cube again, from the cache.

    Parameters
    ----------
    cube
        A cube: its address, or the result of a function that made it.
    output
        Address of a new cube to write, which must not exist yet; default: the same cube is changed.
    cache
        Address of the response cache; default: that of your own run, or one beside the cube.
    subscribers
        Functions that are called with each event (see `evalcube.events`); default: none.

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
    announcer, cube = Announcer(subscribers), need_address(cube)
    source = Cube.open(cube)
    notes = read_notes(source.records)
    if all(evaluation.is_imported for evaluation in cube_plan(source, notes).evaluations):
        raise SweepError(
            f"the replies of cube '{cube}' were graded by the tool that they were imported from",
            "Grade them again with that tool, and import its new log into a new cube",
        )
    replies = needed_replies(source, notes.get("cache"), cache)
    if PUBLISHED in source.attrs:
        # Refuses, before a copy is made in which nothing can be written either.
        Cube.open(cube, writable=True)
    target = str(cube) if output is None else _copy_to(cube, output)
    opened = Cube.open(target, writable=True)
    with Lease.acquire(opened.records, notify=announcer.note):
        with_said(opened)
        plan = cube_plan(opened, notes)
        try:
            return regrade_recorded(opened, plan, replies, announcer, older_only=False)
        except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, EvalcubeError) or remembered_config(source) is not None:
                raise  # its run took the same description
            problem = f"what cube '{cube}' says of its tasks does not go with what it holds ({error!r:.200})"
            raise SweepError(problem, "Get a new copy of the cube from its owner") from error


def _copy_to(url: str | Path, output: str | Path) -> str:
    """A copy of a cube, without the lease."""
    if Cube.exists(output):
        raise SweepError(f"`output`: '{output}' is there already", "Give a new name")
    with guarded(output, "copy the cube"):
        copy_cube(space_of(url), space_of(output), lambda key: not key.startswith(f"{SIDE}/{LEASE_NAME}"))
    return str(output)
