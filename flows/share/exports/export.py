"""Writes a cube in the form of another tool: a folder that is there whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalcube import known_as
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.errors import SweepError
from evalcube.flows.read.outputs import new_folder
from evalcube.flows.read.trials.open_cube import split_where
from evalcube.flows.share.exports import eee, inspect_log
from evalcube.flows.share.exports.source import Source

Writer = Callable[[Source, Path], Iterator[Path]]

FORMATS: Mapping[str, Writer] = {"eee": eee.write, "inspect": inspect_log.write}


@known_as("evalcube.results")
@dataclass(frozen=True)
class Exported:
    """What was written."""

    output: str
    """The folder."""
    format: str
    trials: int
    files: tuple[str, ...]
    """Paths in the folder."""
    notes: tuple[str, ...]
    """What a reader of the files should know, a sentence each."""


def export(
    cube: OneCube,
    *,
    to: str,
    output: str | Path,
    where: Mapping[str, object] | Sequence[str] = (),
    cache: str | Path | None = None,
    organization: str = "unknown",
    now: float | None = None,
) -> Exported:
    """Write the finished trials of a cube in another tool's form.

    Nothing secret is written: cubes hold neither addresses of endpoints nor keys, and what looks like one is left out.

    Parameters
    ----------
    cube
        The cube, all of it; see `where`.
    to
        ``eee``: records of Every Eval Ever; ``inspect``: a log of Inspect for each evaluation and task.
    output
        The folder to write, where nothing may be.
    where
        Conditions on models and points, as for `Part.where`.
    cache
        Address of the response cache; default: the one at hand. Without it there are no responses.
    organization
        Who measured, for ``eee``.
    now
        When it is written, seconds since the epoch; default: now.

    Returns
    -------
    Exported
        The files.

    Raises
    ------
    StorageError
        If there is no cube, it cannot be read, or the folder cannot be written.
    SweepError
        If the form is unknown, something is at `output`, or nothing is to be exported.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.export("results/sweep.zarr", to="eee", output="exported").trials
    64
    """
    checked_option("to", to, list(FORMATS))
    _, measured = split_where(where)
    if measured:  # intervals of part of a cell's trials would be of trials that were chosen by how they went
        raise SweepError(
            f"`where`: {', '.join(measured)} chooses single trials, and whole points are exported",
            "Give conditions on models, tasks and points; single trials are listed by evalcube trials",
        )
    source = Source(need_address(cube), where, cache, organization, time.time() if now is None else now)
    with new_folder(Path(output), "export the cube") as folder:
        files = [path.relative_to(folder).as_posix() for path in FORMATS[to](source, folder)]
        if not files:
            raise SweepError("there is no finished trial to export", "Run the sweep first, or widen `where`")
    return Exported(str(output), to, source.rows_written, tuple(sorted(files)), tuple(source.notes))
