"""What a reader should know of a cube, or of a part of it, before its numbers are read: a sentence for each caution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset
from evalcube.flows.state.beside_config import noted_unnamed
from evalcube.flows.state.engines import origins_of, read_engines
from evalcube.stages.analyze.labelled import axes, counters
from evalcube.stages.analyze.labelled.remarks import first_few
from evalcube.stages.process.grading import GRADER, IMPORTED
from evalcube.stages.reply.status import FEW_TRIALS, FINISHED
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Receipt, graders_of
from evalcube.storage.errors import StorageError

if TYPE_CHECKING:
    from evalcube.flows.read.selection import Part

Counts = NDArray[np.int_]
_MOST_NAMED = 5
"""Models that a warning names."""


def cautions(
    dataset: Dataset,
    part: Part,
    notes: Mapping[str, object],
    cube: Cube | None,
    receipts: Sequence[Receipt],
    *,
    whole: Dataset | None,
) -> tuple[str, ...]:
    """All of them; `whole` are the arrays of the cube, unless this is a part of it."""
    return (
        *_graders(receipts),
        *_engines(cube, dataset, receipts),
        *_unnamed_parts(notes),
        *_unverified_recipes(notes, dataset),
        *(_mostly_invalid(dataset) if part.reader == "ours" else ()),
        *(() if whole is None else _uncounted_trials(dataset, receipts)),
        *(() if cube is None or whole is None else _missing_readings(whole, cube, notes)),
        *(_not_compared(dataset) if part.unique_only else _few_problems(dataset)),
    )


def _missing_readings(whole: Dataset, cube: Cube, notes: Mapping[str, object]) -> tuple[str, ...]:
    """What `describe_missing` says of a cube, all of whose arrays are given."""
    if "judge_readings" not in whole:
        return ()
    from evalcube.flows.plan.grading import due_readings  # both with much that most boards need nothing of
    from evalcube.flows.state.store import cube_plan

    plan = cube_plan(cube, notes)
    lost, asked = np.zeros((2, len(plan.evaluations), len(plan.judges)), dtype=int)
    with suppress(StorageError):  # whoever needs these arrays refuses them
        for row in range(len(lost)):  # one in memory at a time, where they are read on demand
            status, readings = (
                whole[name].variable.isel(model=row).values for name in ("status", "judge_readings")
            )
            due = due_readings(plan.tasks, plan.judges, np.isin(status, FINISHED))
            asked[row] = due.sum(axis=(0, 1, 2, 3, 5))
            lost[row] = (due & np.isnan(readings)).sum(axis=(0, 1, 2, 3, 5))
    return describe_missing([judge.name for judge in plan.judges], plan.labels, lost, asked)


def describe_missing(
    judges: Sequence[str], labels: Sequence[str], lost: Counts, asked: Counts
) -> tuple[str, ...]:
    """A sentence for each judge that lacks readings; counts have the shape (evaluation, judge)."""
    return tuple(
        f"Judge {name} gave no score in {row.sum():,} of {total:,} readings ("
        + first_few(
            [f"{count:,} of {label}" for label, count in zip(labels, row, strict=True) if count], ", "
        )
        + "): cut, refused or unreadable; composites lack them. Correct the judge; then `evalcube run CONFIG --fresh "
        "unrated` asks it again about these answers, and no model."
        for name, row, total in zip(judges, lost.T, asked.sum(axis=0), strict=True)
        if row.any()
    )


def _graders(receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """That an older grader than today's graded results, or several did."""
    # Replies that another tool graded are told by the name of their task; no rescoring would make them alike.
    graders = [name for name in graders_of(receipts) if name != IMPORTED]
    if graders in ([], [GRADER]):
        return ()
    return graders_meet(graders) or (
        f"Grader version {graders[0]} graded these replies; `evalcube rescore` grades them with version {GRADER}.",
    )


def graders_meet(graders: Sequence[str]) -> tuple[str, ...]:
    """That several graders graded what is shown together."""
    if len(graders) < 2:
        return ()
    named = f"{', '.join(graders[:-1])} and {graders[-1]}"
    return (f"Results of graders {named} meet here; evalcube rescore grades all replies alike.",)


def _engines(opened: Cube | None, dataset: Dataset, receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """Evaluations whose replies come from several systems."""
    if opened is None:
        return ()
    engines = read_engines(opened.records)
    if not engines and not any(entry.fingerprints for entry in receipts):
        return ()  # of most cubes: neither the plan nor anything else has to be read
    labels, names = axes.evaluation_labels(dataset), axes.names(dataset, "eval_id")
    origins = origins_of(list(zip(labels, names, strict=True)), engines, receipts)
    return tuple(entry.warning for entry in origins if entry.mixed)


def _unnamed_parts(notes: Mapping[str, object]) -> tuple[str, ...]:
    """That the cube holds more than the config of its last run names."""
    unnamed = noted_unnamed(notes)
    return () if unnamed is None else (f"{str(unnamed)[:1].upper()}{str(unnamed)[1:]}; shown all the same.",)


def _unverified_recipes(notes: Mapping[str, object], dataset: Dataset) -> tuple[str, ...]:
    """Return the tasks whose numbers are not verified to be comparable with published ones."""
    config, there = notes.get("config"), axes.names(dataset, "task")
    tasks = config.get("tasks") if isinstance(config, Mapping) else None
    if not isinstance(tasks, Mapping) or not any("recipe" in task for task in tasks.values() if task):
        return ()
    from evalcube.flows.config.recipes import unverified  # with pydantic, which most boards need nothing of

    return unverified({label: tasks[label] for label in there if label in tasks})


def _sums(dataset: Dataset, *names: str) -> np.ndarray:
    """Counters of each model, shape (model, name)."""
    cells = dataset.variables["counters"].transpose("model", ..., "counter")
    places = [axes.names(dataset, "counter").index(name) for name in names]
    return np.asarray(cells.isel(counter=places).data.sum(axis=tuple(range(1, cells.ndim - 1))))


def _mostly_invalid(dataset: Dataset) -> tuple[str, ...]:
    """Models of whose completed replies more than half have no answer."""
    if "counters" not in dataset:
        return ()
    counts = _sums(dataset, "invalid", "completed")
    return tuple(
        f"{label}: {invalid:.0f} of {completed:.0f} replies have no answer in the asked form, and count as wrong; "
        "look at some with evalcube show, and see `match` for data sets."
        for label, (invalid, completed) in zip(axes.evaluation_labels(dataset), counts, strict=True)
        if completed >= FEW_TRIALS and invalid > completed / 2
    )


def _few_problems(dataset: Dataset) -> tuple[str, ...]:
    """Tasks at whose points more than half of the trials repeat a problem."""
    labels = axes.names(dataset, "counter") if "counters" in dataset else []
    if not {"duplicates", "trials"} <= set(labels):
        return ()
    cells = dataset.variables["counters"].transpose("task", "params", "model", "counter", ...)
    places = [labels.index(name) for name in ("duplicates", "trials")]
    repeats, trials = np.moveaxis(np.asarray(cells.isel(counter=places).data), 3, 0).max(axis=3)
    few = (trials >= FEW_TRIALS) & (repeats > trials / 2)
    return tuple(
        f"{task}: {here.sum()} of {(asked > 0).sum()} points repeat a few problems in more than half of their trials, "
        "which add no evidence; evalcube leaderboard CUBE --unique-only counts each problem once."
        for task, here, asked in zip(axes.names(dataset, "task"), few, trials, strict=False)
        if here.any()
    )


def _uncounted_trials(dataset: Dataset, receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """That trials are on record which the counters lack: a run adds them up later, or the counters are lost."""
    if "counters" not in dataset:
        return ()
    counted = _sums(dataset, "trials")[:, 0]
    recorded = np.zeros(len(counted))
    for receipt in receipts:
        if receipt.region.model < len(recorded):
            recorded[receipt.region.model] += receipt.finished
    late = np.maximum(recorded - counted, 0).astype(int)
    names = [label for label, count in zip(axes.evaluation_labels(dataset), late, strict=True) if count]
    if not names:
        return ()
    # Readers of single trials, such as compare and metrics, have them.
    text = f"{late.sum():,} recorded trials of {first_few(names)} are not counted yet in leaderboards, tables and costs"
    return (f"{text}. A run will count them; without one, `evalcube cube verify --heal` does.",)


def _not_compared(dataset: Dataset) -> tuple[str, ...]:
    """Tasks of which it is not known yet which questions are new."""
    unknown = counters.unmarked_tasks(dataset) if "duplicate" in dataset else np.zeros(0, np.bool_)
    if not unknown.any():
        return ()
    tasks = [name for name, here in zip(axes.names(dataset, "task"), unknown, strict=True) if here]
    text = f"It is not known yet which questions of {', '.join(tasks)} are new; they all count as new."
    return (f"{text} Run the sweep again to have them compared.",)
