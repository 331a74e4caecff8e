"""Commands that hand single trials on: trials and export; and the questions that `compare --flips` prints."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.options import in_flags, names_of
from evalcube.flows.cli.output import (
    end_when_unread,
    exclusive,
    print_table,
    safe,
    show,
    show_csv,
    show_json,
    show_table,
    warn,
)
from evalcube.storage.urls import redacted

if TYPE_CHECKING:
    from evalcube.flows.read.trials.flips import Flips
    from evalcube.flows.read.trials.read import Trials

_MARKDOWN_WIDTH = 160


def trials(
    cube: options.Cubes,
    where: list[str] | None = None,
    status: str = "",
    grep: str | None = None,
    regex: str | None = None,
    within: Annotated[str, typer.Option("--in")] = "prompt,response,reasoning",
    sort: str | None = None,
    limit: int | None = None,
    columns: str | None = None,
    count: str | None = None,
    cache: options.Caches = None,
    reader: str = "ours",
    as_json: options.Json = False,
    jsonl: Annotated[bool, typer.Option("--jsonl")] = False,
    as_csv: Annotated[bool, typer.Option("--csv")] = False,
    parquet: Path | None = None,
    markdown: options.Markdown = False,
) -> None:
    """List single trials: question, answer, reply, outcome, tokens, latency; filter, search and sort them.

    Parameters
    ----------
    where : NAME=VALUE
        Only these trials. Conditions are those of `evalcube leaderboard`, and trial=0..9, tokens=1000.., latency=..2,
        repeat, prompt_tokens, fact, judge, ..., row_id=NAME (of a data set); or disagree: trials that the second reader
        grades differently. If given again, all must hold.
    status : NAMES
        Only these outcomes: correct, incorrect, answered (if there is no reference), truncated, invalid (no answer
        could be read), refused; or, only if named, transport (error) and missing (not asked).
    grep : TEXT
        Only trials with this text in one of the texts named by --in.
    regex : R
        Only trials in which this regular expression matches one of the texts named by --in.
    within : NAMES
        Texts to search: prompt, response, reasoning, answer, reference.
    sort : COLUMN
        Sort by a column; -COLUMN for the largest first.
    limit
        Maximum number of rows; default: 20 if a table is shown, else all.
    columns : NAMES
        Columns, or `all`; default: a few if a table is shown, else all.
    count : NAMES
        Count the trials that have the same values in these columns, as in model,status or model,fault.
    jsonl
        Print a JSON object for each trial.
    as_csv
        Print CSV.
    parquet : FILE
        Write a Parquet file; needs the extra `parquet`.
    """
    from evalcube.flows.read.trials.brief import FIRST
    from evalcube.flows.read.trials.read import trials as read

    end_when_unread()
    forms = {"--json": as_json, "--jsonl": jsonl, "--csv": as_csv, "--markdown": markdown}
    form = exclusive({**forms, "--parquet": parquet is not None})
    for_people = form in ("", "--markdown")
    if count is not None:
        beside = {"--columns": columns, "--limit": limit, "--sort": sort, "--jsonl": jsonl or None}
        for name, value in {**beside, "--parquet": parquet}.items():
            exclusive({"--count": True, name: value is not None})
    table = read(
        cube,
        where=where or (),
        status=names_of(status),
        grep=grep,
        regex=regex,
        within=names_of(within),
        sort=sort,
        limit=FIRST if limit is None and for_people and count is None else limit,
        columns=None if columns in (None, "all") else names_of(str(columns)),
        cache=cache,
        reader=reader,
    )
    if count is not None:
        _show_counts(table, names_of(count), form)
        return
    if for_people:
        _show_brief(table, columns, markdown=markdown, counted=limit is None or not (grep or regex))
        return
    from evalcube.flows.read.trials.forms import csv_lines, json_line, write_parquet

    if parquet is not None:
        show(f"{write_parquet(table, parquet):,} trials: {parquet}")
    elif form == "--json":
        _print_json(table)
    else:
        for line in csv_lines(table) if as_csv else map(json_line, table.rows()):
            show(line)
    warn(_in_flags(table.notes))


def _in_flags(notes: Iterable[str]) -> list[str]:
    return [in_flags(note, {"cache": "--cache"}) for note in notes]


def _width(markdown: bool) -> int:
    from rich.console import Console

    return _MARKDOWN_WIDTH if markdown else Console().width


def _show_counts(table: Trials, names: Sequence[str], form: str) -> None:
    from evalcube.flows.read.trials.brief import brief_table, count_values

    table = table.with_names(names, "count")
    columns, rows = count_values(table)
    if form == "--json":
        show_json({"rows": rows, "notes": list(table.notes)}, "trial_counts")
        return
    if form == "--csv":
        show_csv(rows, [column.name for column in columns])
    else:
        markdown = form == "--markdown"
        print_table(brief_table(columns, rows, (), _width(markdown), table.varying), markdown=markdown)
    warn(_in_flags(table.notes))


def _show_brief(table: Trials, columns: str | None, *, markdown: bool, counted: bool) -> None:
    """A table for people, with a note where only some rows are in it, if to count them all is wanted."""
    from evalcube.flows.read.trials.brief import brief_of, brief_table, with_values

    if columns is None:
        table = table.with_columns(brief_of(table))
    rows = list(table.rows())
    notes = _in_flags(table.notes)
    count = table.count() if counted or not rows else len(rows)
    if not count:
        notes.insert(0, "No trial fulfils all of this.")
    elif count > len(rows):
        notes.insert(0, f"{len(rows)} of {count:,} trials; use --limit to show more.")
    shown = table.columns if columns else with_values(table.columns, rows)
    print_table(brief_table(shown, rows, notes, _width(markdown), table.varying), markdown=markdown)


def _print_json(table: Trials) -> None:
    """One JSON document, written row by row: a table may be larger than the memory."""
    from evalcube.flows.read.trials.forms import json_line

    columns = {column.name: column.meaning for column in table.columns}
    head = {
        "schema": "evalcube.trials",
        "schema_version": 1,
        "cubes": list(table.addresses),
        "columns": columns,
    }
    sys.stdout.write(json.dumps(head, indent=2)[:-2] + ',\n  "rows": [')
    separator = "\n"
    for row in table.rows():
        sys.stdout.write(f"{separator}    {json_line(row)}")
        separator = ",\n"
    show(f'\n  ],\n  "notes": {json.dumps(list(table.notes))}\n}}')


def export(
    cube: options.Cube,
    output: options.NewFolder,
    where: list[str] | None = None,
    cache: str | None = None,
    organization: str = "unknown",
    as_json: options.Json = False,
) -> None:
    """Write the trials of a cube in the EvalEval Coalition's format, Every Eval Ever.

    Parameters
    ----------
    organization : NAME
        The organization that measured.
    """
    from evalcube.flows.share.export import export as write

    done = write(cube, output=output, where=where or (), cache=cache, organization=organization)
    warn(_in_flags(done.notes))
    if as_json:
        show_json(asdict(done))
    else:
        show(f"{done.trials:,} trials in {len(done.files):,} files: {done.output}")


_SHOWN = 20
_POINTS = 10
"""Points that are shown where people read."""


def print_flips(flips: Flips, limit: int | None, truncated: str, form: str) -> None:
    """Print what changed between two in a form; at most `limit` questions, by default `_SHOWN` where people read."""
    from evalcube.flows.read.trials.flips import Flip, SideReply

    limit = _SHOWN if limit is None and form not in ("json", "csv") else limit
    if form == "csv":
        rows = [asdict(flip) | {"params": json.dumps(flip.params)} for flip in flips.rows(limit)]
        names = [field.name for field in fields(Flip)][:-2]
        names += [f"{side}_{field.name}" for side in ("first", "second") for field in fields(SideReply)]
        show_csv(rows, names)
    elif form == "json":
        show_json(document(flips, limit, truncated))
    else:
        _print_in_form(flips, limit, markdown=form == "markdown")
    warn(flips.sides.warnings)


def document(flips: Flips, limit: int | None, truncated: str) -> dict[str, Any]:
    """All of it as JSON values."""
    from evalcube.stages.analyze.render.flips import totals
    from evalcube.stages.analyze.render.rows import pair_row

    sides, names = (flips.sides.first, flips.sides.second), _names(flips)
    tasks = [asdict(count) for count in flips.tasks]
    return {
        "schema": "evalcube.flips",
        "schema_version": 1,
        "first": {"cube": redacted(sides[0].address), "label": names[0], "eval_id": sides[0].eval_id},
        "second": {"cube": redacted(sides[1].address), "label": names[1], "eval_id": sides[1].eval_id},
        "selection": flips.sides.selection,
        "truncated": truncated,
        "confidence": 0.95,
        "warnings": list(flips.sides.warnings),
        "words": totals(flips.pair, tasks, names),
        "comparison": None if flips.pair is None else pair_row(flips.pair),
        "tasks": [
            {name: value for name, value in row.items() if name not in ("params", "tiers")} for row in tasks
        ],
        "points": [asdict(count) for count in flips.points],
        "changed": len(flips),
        "flips": [asdict(flip) for flip in flips.rows(limit)],
        "replies_missing": flips.missing,
    }


def _names(flips: Flips) -> tuple[str, str]:
    return flips.sides.first.label, flips.sides.second.label


def _print_in_form(flips: Flips, limit: int | None, *, markdown: bool) -> None:
    from evalcube.stages.analyze.render.flips import flips_markdown, point_spec, task_spec, totals

    names, counts = _names(flips), [asdict(count) for count in flips.tasks]
    points = [asdict(count) | {"shown": _varying_params(flips, count)} for count in flips.points]
    more = f"{_POINTS} of {len(points)} points with changes." if len(points) > _POINTS else ""
    tables = [
        task_spec(_with_tests(flips, counts), names),
        *([point_spec(points[:_POINTS], (more,) if more else ())] if points else []),
    ]
    rows = [asdict(flip) | {"shown": _varying_params(flips, flip)} for flip in flips.rows(limit)]
    notes = _notes(flips, len(rows))
    head = totals(flips.pair, counts, names)
    if flips.sides.selection:
        head.append(f"Part of the cube ({flips.sides.selection}).")
    if markdown:
        show(flips_markdown(head, tables, rows, names, notes))
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
    from evalcube.flows.read.trials.brief import brief_table
    from evalcube.flows.read.trials.columns import TrialColumn
    from evalcube.stages.analyze.render.flips import flip_cells

    cells = [flip_cells(row) for row in rows]
    differ = any(row["shown"] for row in rows)
    columns = [TrialColumn(name, "text", "cube", "") for name in cells[0] if name != "point" or differ]
    show_table(brief_table(columns, cells, (), _width(markdown=False), {}))


def _notes(flips: Flips, shown: int) -> list[str]:
    notes = []
    if shown < len(flips):
        notes.append(f"{shown} of {len(flips):,} changed questions are shown; use --limit to show more.")
    if flips.missing:
        notes.append(f"{flips.missing:,} replies are not at hand: give the cache of the sweep with --cache.")
    return notes


def _with_tests(flips: Flips, counts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The counts of each task with its rates and its p value."""
    nothing = {"first_rate": math.nan, "second_rate": math.nan, "p_holm": math.nan}
    tests = {} if flips.pair is None else {task.task: task for task in flips.pair.tasks}
    return [
        row | ({name: getattr(tests[row["task"]], name) for name in nothing} if tests else nothing)
        for row in counts
    ]


def _varying_params(flips: Flips, counted: Any) -> dict[str, Any]:  # noqa: ANN401 - a count or a flip
    names = flips.varying[counted.task]
    return {name: value for name, value in (counted.params or {}).items() if name in names}
