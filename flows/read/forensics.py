"""What the traces, token counts and prices of a cube say, as tables and drawings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evalcube._arrays import as_xarray, variable
from evalcube.flows.errors import SweepError, refused
from evalcube.flows.read.outputs import check_picture, write_picture
from evalcube.flows.read.selection import OpenPart, Part, open_part
from evalcube.flows.read.statistics import leaderboard_of
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.forensics import (
    compression_table,
    cost_table,
    hazard_table,
    pareto_rows,
)
from evalcube.stages.analyze.labelled.remarks import label_rows
from evalcube.stages.analyze.labelled.results import Leaderboard
from evalcube.stages.analyze.render import plots as figures
from evalcube.stages.analyze.render import table_specs
from evalcube.stages.analyze.render.rows import PlainRow, compression_rows, cost_rows, hazard_rows
from evalcube.stages.analyze.render.table import TableSpec
from evalcube.stages.process.grading import compressed_size
from evalcube.stages.reply.status import Status
from evalcube.stages.score.recount import recount

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

Found = tuple[OpenPart, TableSpec, list[PlainRow]]

_CLIPPED = ("limit", "score", "score_lower", "score_upper")

_LIMITS = 5
"""Limits tried if none are given."""


def compression(
    cube: str | Path,
    part: Part | None = None,
    *,
    by_task: bool = False,
    plot: Path | None = None,
    traces: Callable[[xr.Dataset], xr.Dataset] | None = None,
) -> Found:
    """How well reasoning traces compress, by evaluation and outcome.

    Parameters
    ----------
    cube
        The cube's address.
    part
        Which part of it; default: all of it.
    by_task
        Tell tasks apart.
    plot
        Write a figure there, too: .svg or .png; needs the extra ``plots``.
    traces
        Gives the part other lengths of traces; default: the cube's own.

    Returns
    -------
    tuple
        The part; the table; its rows as JSON values.

    Raises
    ------
    StorageError, SweepError
        As `evalcube.flows.read.selection.open_part`; also if no trial has a reasoning trace, or the picture cannot be
        made.
    """
    check_picture(plot)
    opened = open_part(cube, part)
    if traces is not None:
        opened = replace(opened, arrays=traces(opened.arrays))
    labels = axes.evaluation_labels(opened.arrays)
    with refused():
        table = compression_table(opened.arrays, by_task=by_task)
        whole = compression_table(opened.arrays) if by_task and plot is not None else table
    rows = compression_rows(table, labels)
    if not rows:
        raise SweepError(
            "no trial has a reasoning trace, so that there is nothing to compress",
            "Select a model that has one with `where`, or compress what the answers say with `replies`",
        )
    if plot is not None:
        write_picture(plot, figures.compression_figure(compression_rows(whole, labels)))
    return opened, table_specs.compression_spec(rows, ["model", "task"][: 1 + by_task], _notes(opened)), rows


def hazard(
    cube: str | Path,
    part: Part | None = None,
    *,
    width: int = 256,
    by_task: bool = False,
    plot: Path | None = None,
) -> Found:
    """When trials end, by tokens.

    Parameters
    ----------
    cube
        The cube's address.
    part
        Which part of it; default: all of it.
    width
        Tokens in a line of the table.
    by_task
        Tell tasks apart.
    plot
        Write a figure there, too: .svg or .png; needs the extra ``plots``.

    Returns
    -------
    tuple
        The part; the table; its rows as JSON values.

    Raises
    ------
    StorageError, SweepError
        As `evalcube.flows.read.selection.open_part`; also if no trial is finished, or the picture cannot be made.
    """
    check_picture(plot)
    opened = open_part(cube, part)
    labels = axes.evaluation_labels(opened.arrays)
    with refused():
        table = hazard_table(opened.arrays, by_task=by_task, width=width)
        whole = hazard_table(opened.arrays, width=width) if by_task and plot is not None else table
    rows = hazard_rows(table, labels)
    if not rows:
        raise SweepError(
            "no finished trial has its tokens counted",
            "Run the sweep first, with an endpoint that counts them",
        )
    if plot is not None:
        write_picture(plot, figures.hazard_figure(as_xarray(whole), labels))
    notes = (*_notes(opened), "Trials weigh the same here; on boards the points of a task do.")
    return opened, table_specs.hazard_spec(rows, ["model", "task"][: 1 + by_task], notes), rows


def clip(
    cube: str | Path,
    part: Part | None = None,
    *,
    limits: Sequence[str] = (),
    version: str = "auto",
    plot: Path | None = None,
) -> Found:
    """Leaderboards as they were with smaller limits of completion tokens, one after the other.

    Parameters
    ----------
    cube
        The cube's address.
    part
        Which part of it; default: all of it.
    limits
        Limits of completion tokens, as texts; default: the five largest powers of two below the longest answer.
    version
        Of the score, "auto", "v1" or "v2", as of a leaderboard.
    plot
        Write a figure there, too: .svg or .png; needs the extra ``plots``.

    Returns
    -------
    tuple
        The part; the table; its rows as JSON values.

    Raises
    ------
    StorageError, SweepError
        As `evalcube.flows.read.selection.open_part`; also if a limit is no whole number from 1, or the picture cannot
        be made.
    """
    check_picture(plot)
    wanted = [_limit(text) for text in limits]
    opened = open_part(cube, part)

    def board(dataset: xr.Dataset, limit: int | None) -> Leaderboard:
        with refused():
            dataset = dataset if limit is None else recount(dataset, clip_tokens=limit)
        arrays = replace(opened, arrays=dataset)
        return leaderboard_of(arrays, version=version, mode="C_P")  # type: ignore[arg-type]  # refused there

    dataset = opened.arrays
    rows: list[PlainRow] = []
    for limit in [*sorted(wanted or _default_limits(dataset)), None]:
        found = most = board(dataset, limit)
        if limit:
            # Of what was cut before a limit nobody knows what it would have said: at most, all of it is right.
            status, tokens = dataset["status"].variable, dataset["tokens"].variable
            cut = (status.data == int(Status.TRUNCATED)) & (tokens.transpose(*status.dims).data < limit)
            right = variable(status.dims, np.where(cut, np.uint8(Status.CORRECT), status.data), status.attrs)
            most = board(dataset.assign(status=right), limit) if cut.any() else found
        rows += _clipped(limit, found, most)
    names = axes.evaluation_labels(opened.arrays)
    rows.sort(key=lambda row: names.index(row["model"]))
    if plot is not None:
        write_picture(plot, _clip_figure(rows, names))
    return opened, table_specs.clip_spec(rows, (*_notes(opened), _lead(found))), rows


def cost(
    cube: str | Path,
    part: Part | None = None,
    *,
    by_task: bool = False,
    plot: Path | None = None,
) -> Found:
    """Costs by evaluation, with the fronts of score against tokens and cost.

    Parameters
    ----------
    cube
        The cube's address.
    part
        Which part of it; default: all of it.
    by_task
        Tell tasks apart.
    plot
        Write a figure there, too: .svg or .png; needs the extra ``plots``.

    Returns
    -------
    tuple
        The part; the table; its rows as JSON values.

    Raises
    ------
    StorageError, SweepError
        As `evalcube.flows.read.selection.open_part`; also if the picture cannot be made.
    """
    check_picture(plot)
    opened = open_part(cube, part)
    labels = axes.evaluation_labels(opened.arrays)
    board = leaderboard_of(opened)
    front = pareto_rows(board)
    with refused():
        table = cost_table(opened.arrays, by_task=by_task)
    names = label_rows(board.rows)
    rows = cost_rows(table, labels, dict(zip(names, front, strict=True)))
    notes = _notes(opened)
    if all(math.isnan(row["total"]) for row in rows):
        notes += ("No price is known: give `prices` in the config and run it again; nothing is asked twice.",)
    if plot is not None:
        against = "tokens" if any(math.isnan(row.cost) for row in front) else "cost"
        named = [replace(row, model_name=label) for row, label in zip(front, names, strict=True)]
        write_picture(plot, figures.pareto_figure(named, against=against))
    return opened, table_specs.cost_spec(rows, ["model", "task"][: 1 + by_task], notes), rows


def _clipped(limit: int | None, board: Leaderboard, most: Leaderboard) -> list[PlainRow]:
    """Rows of a limit; `most` is the board on which all that was cut before it is right."""
    upper = {row.eval_id: row.rate for row in most.rows}
    return [
        {
            "model": label,
            "limit": limit,
            "score": row.score.value,
            "score_lower": row.score.lower,
            "score_upper": row.score.upper,
            "version": board.version,
            "rank": row.rank,
            "accuracy": row.rate.value,
            "accuracy_lower": row.rate.lower,
            "accuracy_most": upper[row.eval_id].value,
            "accuracy_upper": upper[row.eval_id].upper,
            "truncated": row.truncated,
            "tokens": row.tokens_per_trial,
            "cost_per_1000": row.cost_per_1000,
        }
        for row, label in zip(board.rows, label_rows(board.rows), strict=True)
    ]


def _lead(board: Leaderboard) -> str:
    """Which score this is, and what ranks go by."""
    score = (
        "ReasonScore of what the rates may be" if board.version == "auto" else f"ReasonScore {board.version}"
    )
    return f"score: {score}; ranks go by {'it' if board.lead == 'score' else board.mode}."


def _clip_figure(rows: Sequence[PlainRow], names: Sequence[str]) -> Figure:
    series = []
    for name in names:
        mine = [row for row in rows if row["model"] == name and row["limit"] is not None]
        x, y, lower, upper = ([float(row[key]) for row in mine] for key in _CLIPPED)
        series.append(figures.Series(name, x, y, lower, upper))
    return figures.draw(series, x_label="limit of completion tokens", y_label="score")


def _default_limits(dataset: xr.Dataset) -> list[int]:
    """The largest powers of two below the longest answer."""
    if "tokens" not in dataset:
        raise SweepError("the dataset has no array `tokens`", "Open it with `Cube.dataset()`")
    longest = int(dataset["tokens"].data.max())
    top = max(longest - 1, 1).bit_length()
    return [2**power for power in range(max(top - _LIMITS, 0), top) if 2**power < longest]


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise SweepError(f"`limits`: '{text}' is no number of tokens", "Write it like 256,1024")
    return int(text)


def _notes(opened: OpenPart) -> tuple[str, ...]:
    return (f"Part of the cube ({opened.selection}).",) if opened.selection else ()


_COLUMNS = ("eval_id", "task", "cell_id", "trial", "repeat", "reasoning_bytes", "response")


def with_replies(
    dataset: xr.Dataset, cube: str | Path | Sequence[str | Path], cache: Sequence[str] | None = None
) -> xr.Dataset:
    """A part of a cube in which what a reply says stands for the trace that it lacks, read from the cache.

    Parameters
    ----------
    dataset
        The part, with the trial arrays.
    cube
        Its address, or those that it was joined from.
    cache
        Addresses of response caches; default: the one at hand.

    Returns
    -------
    Dataset
        With other ``reasoning_bytes`` and ``compressed_bytes``, in memory.

    Raises
    ------
    SweepError
        If no reply is at hand.
    """
    from evalcube.flows.read.trials.read import trials  # with plans, which take a while

    dims, lengths = ("model", "task", "params", "trial", "repeat"), ("reasoning_bytes", "compressed_bytes")
    whole, packed = (np.array(dataset[name].variable.transpose(*dims).values) for name in lengths)
    models = {str(name): place for place, name in enumerate(dataset["eval_id"].values)}
    tasks = {str(name): place for place, name in enumerate(dataset["task"].values)}
    ids = dataset["cell_id"].transpose("task", "params").values
    slots = [{str(name): place for place, name in enumerate(row) if name} for row in ids]
    found = 0
    for row in trials(cube, columns=_COLUMNS, cache=cache).rows():
        model, task = models.get(row["eval_id"]), tasks.get(row["task"])
        slot = None if task is None else slots[task].get(row["cell_id"])
        if model is None or slot is None or row["trial"] >= whole.shape[3] or row["response"] is None:
            continue
        found += 1
        if row["reasoning_bytes"]:
            continue
        text = row["response"].encode("utf-8", "surrogatepass")
        place = (model, task, slot, row["trial"], row["repeat"])
        whole[place], packed[place] = len(text), compressed_size(text)
    if not found:
        raise SweepError(
            "no reply is at hand, so that there is nothing to compress",
            "Name this sweep's cache with `cache`",
        )
    return dataset.assign(
        {name: variable(dims, values) for name, values in zip(lengths, (whole, packed), strict=True)}
    )
