"""Prints the questions that two evaluations answered differently, for `compare --flips`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from evalcube.flows.cli.output import safe, show, show_json
from evalcube.flows.cli.tables import show_csv, show_table, warn
from evalcube.storage.urls import redacted

if TYPE_CHECKING:
    from evalcube.flows.read.trials.flips import Flip, Flips

_SHOWN = 20
_POINTS = 10
"""Points that are shown where people read."""
_CSV = (
    *("change", "task", "params", "tiers", "trial", "repeat", "asked", "row_id", "prompt", "reference"),
    *("first.status", "first.right", "first.answer", "first.response"),
    *("second.status", "second.right", "second.answer", "second.response"),
)
_HEADS = tuple(name.replace(".", "_") for name in _CSV)


def print_flips(
    found: Flips, limit: int | None, *, truncated: str, as_json: bool, as_csv: bool, markdown: bool
) -> None:
    """Print what changed between two, in the form that was asked for.

    Parameters
    ----------
    found
        The questions that changed.
    limit
        Most questions that are shown; default: `_SHOWN` where people read, else all.
    truncated
        How truncated trials were counted.
    as_json, as_csv, markdown
        The form, at most one of them.
    """
    limit = _SHOWN if limit is None and not (as_json or as_csv) else limit
    if as_csv:
        show_csv([_csv_row(flip) for flip in found.rows(limit)], _HEADS)
    elif as_json:
        show_json(document(found, limit, truncated))
    else:
        _print(found, limit, markdown=markdown)
    warn(found.sides.warnings)


def document(found: Flips, limit: int | None, truncated: str) -> dict[str, Any]:
    """All of it as JSON values."""
    from evalcube.stages.analyze.render.flips import totals
    from evalcube.stages.analyze.render.rows import pair_row

    sides, names = (found.sides.first, found.sides.second), _names(found)
    tasks = [asdict(count) for count in found.tasks]
    return {
        "schema": "evalcube.flips",
        "schema_version": 1,
        "first": {"cube": redacted(sides[0].address), "label": names[0], "eval_id": sides[0].eval_id},
        "second": {"cube": redacted(sides[1].address), "label": names[1], "eval_id": sides[1].eval_id},
        "selection": found.sides.selection,
        "truncated": truncated,
        "confidence": 0.95,
        "warnings": list(found.sides.warnings),
        "words": totals(found.pair, tasks, names),
        "comparison": None if found.pair is None else pair_row(found.pair),
        "tasks": [
            {name: value for name, value in row.items() if name not in ("params", "tiers")} for row in tasks
        ],
        "points": [asdict(count) for count in found.points],
        "changed": len(found),
        "flips": [asdict(flip) for flip in found.rows(limit)],
        "replies_missing": found.missing,
    }


def _names(found: Flips) -> tuple[str, str]:
    return found.sides.first.label, found.sides.second.label


def _print(found: Flips, limit: int | None, *, markdown: bool) -> None:
    from evalcube.stages.analyze.render.flips import flips_markdown, point_spec, task_spec, totals

    names, counts = _names(found), [asdict(count) for count in found.tasks]
    points = [asdict(count) | {"shown": _shown(found, count)} for count in found.points]
    more = f"{_POINTS} of {len(points)} points with changes." if len(points) > _POINTS else ""
    tables = [
        task_spec(_tested(found, counts), names),
        *([point_spec(points[:_POINTS], (more,) if more else ())] if points else []),
    ]
    rows = [asdict(flip) | {"shown": _shown(found, flip)} for flip in found.rows(limit)]
    notes = _notes(found, len(rows))
    head = totals(found.pair, counts, names)
    if found.sides.selection:
        head.append(f"Part of the cube ({found.sides.selection}).")
    if markdown:
        show(flips_markdown(head, tables, rows, names, notes, found.sides.tasks))
        return
    for text in head:
        show(safe(text))
    for table in tables:
        show("")
        show_table(table)
    if rows:
        show("")
        _print_flips(rows)
    for note in notes:
        show(safe(note))


def _print_flips(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from evalcube.flows.read.trials.brief import brief_table
    from evalcube.flows.read.trials.columns import TrialColumn
    from evalcube.stages.analyze.render.flips import flip_cells

    cells = [flip_cells(row) for row in rows]
    differ = any(row["shown"] for row in rows)
    columns = [TrialColumn(name, "text", "cube", "") for name in cells[0] if name != "point" or differ]
    show_table(brief_table(columns, cells, (), Console().width, {}))


def _notes(found: Flips, shown: int) -> list[str]:
    notes = []
    if shown < len(found):
        notes.append(
            f"{shown} of {len(found):,} changed questions, of either way; --limit says how many are shown."
        )
    if found.missing:
        notes.append(f"{found.missing:,} replies are not at hand: give the cache of the sweep with --cache.")
    return notes


def _tested(found: Flips, counts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The counts of each task with its rates and its p value."""
    nothing = {"first_rate": math.nan, "second_rate": math.nan, "p_holm": math.nan}
    tests = {} if found.pair is None else {one.task: one for one in found.pair.tasks}
    return [
        row | ({name: getattr(tests[row["task"]], name) for name in nothing} if tests else nothing)
        for row in counts
    ]


def _shown(found: Flips, one: Any) -> dict[str, Any]:  # noqa: ANN401 - a count or a flip
    names = found.varying[one.task]
    return {name: value for name, value in (one.params or {}).items() if name in names}


def _csv_row(flip: Flip) -> dict[str, Any]:
    row = dict(zip(_HEADS, attrgetter(*_CSV)(flip), strict=True))
    return row | {"params": json.dumps(flip.params), "tiers": ",".join(flip.tiers)}
