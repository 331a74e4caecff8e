"""Tables of what the traces, token counts and prices of a cube say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from evalcube._arrays import Dataset, variable
from evalcube.flows.errors import SweepError, refused
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
from evalcube.stages.analyze.render import table_specs
from evalcube.stages.analyze.render.rows import PlainRow, compression_rows, cost_rows, hazard_rows
from evalcube.stages.analyze.render.table import TableSpec
from evalcube.stages.reply.status import Status
from evalcube.stages.score.recount import recount

Found = tuple[OpenPart, TableSpec, list[PlainRow]]
"""The part; the table; its rows as JSON values."""

_LIMITS = 5
"""Limits tried if none are given."""


def compression(cube: str | Path, part: Part | None = None, *, by_task: bool = False) -> Found:
    """Return how well reasoning traces compress, by evaluation and outcome; raise SweepError if there is none."""
    opened = open_part(cube, part)
    with refused():
        table = compression_table(opened.arrays, by_task=by_task)
    rows = compression_rows(table, axes.evaluation_labels(opened.arrays))
    if not rows:
        raise SweepError(
            "no trial has a reasoning trace, so that there is nothing to compress",
            "Select a model that has one with `where`",
        )
    return opened, table_specs.compression_spec(rows, ["model", "task"][: 1 + by_task], _notes(opened)), rows


def hazard(cube: str | Path, part: Part | None = None, *, width: int = 256, by_task: bool = False) -> Found:
    """Return when trials end, by `width` tokens a line; raise SweepError if none is finished."""
    opened = open_part(cube, part)
    with refused():
        table = hazard_table(opened.arrays, by_task=by_task, width=width)
    rows = hazard_rows(table, axes.evaluation_labels(opened.arrays))
    if not rows:
        raise SweepError(
            "no finished trial has its tokens counted",
            "Run the sweep first, with an endpoint that counts them",
        )
    notes = (*_notes(opened), "All trials have equal weight here, unlike on leaderboards.")
    return opened, table_specs.hazard_spec(rows, ["model", "task"][: 1 + by_task], notes), rows


def clip(
    cube: str | Path, part: Part | None = None, *, limits: Sequence[str] = (), version: str = "auto"
) -> Found:
    """Return leaderboards as they were with smaller limits of completion tokens, one after the other.

    Limits are texts; by default the five largest powers of two below the longest answer.
    """
    wanted = [_limit(text) for text in limits]
    opened = open_part(cube, part)

    def rank_clipped(dataset: Dataset, limit: int | None) -> Leaderboard:
        with refused():
            dataset = dataset if limit is None else recount(dataset, clip_tokens=limit)
        arrays = replace(opened, arrays=dataset)
        return leaderboard_of(arrays, version=version, mode="C_P")  # type: ignore[arg-type]  # refused there

    dataset = opened.arrays
    rows: list[PlainRow] = []
    for limit in [*sorted(wanted or _default_limits(dataset)), None]:
        board = most = rank_clipped(dataset, limit)
        if limit:
            # Of what was cut before a limit nobody knows what it would have said: at most, all of it is right.
            status, tokens = dataset["status"].variable, dataset["tokens"].variable
            cut = (status.data == int(Status.TRUNCATED)) & (tokens.transpose(*status.dims).data < limit)
            right = variable(status.dims, np.where(cut, np.uint8(Status.CORRECT), status.data), status.attrs)
            most = rank_clipped(dataset.assign(status=right), limit) if cut.any() else board
        rows += _clip_rows(limit, board, most)
    names = axes.evaluation_labels(opened.arrays)
    rows.sort(key=lambda row: names.index(row["model"]))
    return opened, table_specs.clip_spec(rows, (*_notes(opened), _lead(board))), rows


def cost(cube: str | Path, part: Part | None = None, *, by_task: bool = False) -> Found:
    """Return costs by evaluation, with the fronts of score against tokens and cost."""
    opened = open_part(cube, part)
    labels = axes.evaluation_labels(opened.arrays)
    board = leaderboard_of(opened)
    front = pareto_rows(board)
    with refused():
        table = cost_table(opened.arrays, by_task=by_task)
    rows = cost_rows(table, labels, dict(zip(label_rows(board.rows), front, strict=True)))
    notes = _notes(opened)
    if all(math.isnan(row["total"]) for row in rows):
        notes += (
            "No prices are declared: add `prices` to the config and run it again; no request is repeated.",
        )
    return opened, table_specs.cost_spec(rows, ["model", "task"][: 1 + by_task], notes), rows


def _clip_rows(limit: int | None, board: Leaderboard, most: Leaderboard) -> list[PlainRow]:
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
    kind = "" if board.version == "auto" else f" {board.version}"
    return f"score: ReasonScore{kind}; ranks are by {'it' if board.lead == 'score' else board.mode}."


def _default_limits(dataset: Dataset) -> list[int]:
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
