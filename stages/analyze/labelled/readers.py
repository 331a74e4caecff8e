"""Replies that were read twice: a dataset with the second reader's outcomes, and how the two readers differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evalcube._arrays import as_xarray
from evalcube.stages.analyze.labelled.axes import names, plain
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.pairing import Pair, compare_evaluations
from evalcube.stages.analyze.labelled.results import Leaderboard
from evalcube.stages.analyze.labelled.second import NO_READER, ReaderGap, named_readers
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import LAST_FINISHED, READER, SECOND, Status

if TYPE_CHECKING:
    import xarray as xr


def reader_names(ds: xr.Dataset) -> dict[str, str]:
    """What the second reader of each task is called, by the task; without those that have none."""
    if READER not in ds.coords or SECOND not in ds:
        return {}
    return {task: name for task, name in zip(names(ds, "task"), names(ds, READER), strict=True) if name}


def read_by_second(ds: xr.Dataset) -> tuple[xr.Dataset, str, list[str]]:
    """The tasks that have a second reader, with its outcomes in the place of ours; who that is; what to know of it.

    Replies that it never read are missing. The counters are as they were.

    Raises
    ------
    ValueError
        No task has one.
    """
    found, tasks = reader_names(ds), names(ds, "task")
    if not found:
        raise ArgumentError(
            f"`reader`: no task here has a second reader; {NO_READER[0].lower()}{NO_READER[1:]}"
        )
    part = as_xarray(ds).isel(task=np.array([task in found for task in tasks]))
    status, second = part["status"], part[SECOND]
    finished = status <= LAST_FINISHED
    told = []
    if without := [task for task in tasks if task not in found]:
        told.append(f"Left out, as they have no second reader: {', '.join(map(plain, without))}.")
    if unread := int((finished & (second == int(Status.MISSING))).sum()):
        told.append(
            f"{unread:,} replies were never read by a second reader, and are missing here: evalcube rescore CUBE "
            "--reader CONFIG reads them from the cache."
        )
    return (
        part.drop_vars(SECOND).assign(status=second.where(finished, status)),
        f"read by {named_readers(found, tasks)}",
        told,
    )


def with_gaps(board: Leaderboard, ds: xr.Dataset) -> Leaderboard:
    """The board with how the second reader and ours differ in each row; the same board where nothing was read twice.

    Parameters
    ----------
    board
        From `evalcube.stages.analyze.labelled.leaderboard.leaderboard`.
    ds
        The dataset that it was made from, with ``status`` and ``status_theirs`` where replies were read twice.
    """
    found = reader_names(ds)
    if not found or "status" not in ds:
        return board
    part = as_xarray(ds).isel(task=np.array([task in found for task in names(ds, "task")]))
    rows = []
    for row, place in zip(board.rows, row_order(ds, board), strict=True):
        pair = _compared(part, place)
        rows.append(row if pair is None else replace(row, gap=ReaderGap.of(pair.overall)))
    return replace(board, rows=tuple(rows), readers=found)


def _compared(ds: xr.Dataset, place: int) -> Pair | None:
    """An evaluation as ours reads it against the same as theirs does; None without a reply that both have read."""
    one = ds.isel(model=[place, place])
    codes = np.stack([ds[name].isel(model=place).values for name in ("status", SECOND)])
    dims = ("model", *(dim for dim in ds["status"].dims if dim != "model"))
    if not (codes <= LAST_FINISHED).all(axis=0).any():
        return None
    return compare_evaluations(one.assign(status=(dims, codes)), [0, 1])[0]
