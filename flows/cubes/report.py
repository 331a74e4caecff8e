"""Open a cube as a labelled dataset, and write its report."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

from flows.cubes.outputs import check_output, write_output
from flows.cubes.reader import Reader
from flows.cubes.selection import Part, checked_option, labelled_dataset, open_part, refused
from flows.cubes.statistics import leaderboard_of
from flows.cubes.status import cube_status
from stages.analyze.formulas.estimators import Mode
from stages.analyze.labelled import axes
from stages.analyze.labelled.aggregate import Pooling
from stages.analyze.labelled.scores import Version
from stages.analyze.render.report import SampleTrial, render_report
from stages.reply.status import Status
from storage.cube.cube import Cube
from storage.cube.regions import Region

_MOST_ANSWERED = 20
_SHOWN_STATUSES = (Status.CORRECT, Status.INCORRECT, Status.INVALID, Status.TRUNCATED, Status.REFUSED)


def open_cube(url: str | Path) -> xr.Dataset:
    """A cube as a lazy, labelled dataset.

    Parameters
    ----------
    url
        Address of the cube.

    Returns
    -------
    Dataset
        With dimensions model, task, params, trial, repeat, counter and tier; each variable says its units. Labels
        are in memory, variables are not.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    """
    return labelled_dataset(Cube.open(url))


def report(
    cube: str | Path,
    output: str | Path,
    *,
    samples: int = 1,
    cache: str | Path | None = None,
    date: datetime.date | None = None,
    part: Part | None = None,
    version: Version = "auto",
    mode: Mode = "C_P",
    pooling: Pooling = "pooled",
) -> Path:
    """Write a cube's report: one HTML file that needs nothing else.

    Parameters
    ----------
    cube
        The cube's address.
    output
        The file to write.
    samples
        Trials to show of each evaluation and task; none if the cache is not at hand.
    cache
        Address of the response cache; default: where the sweep left it.
    date
        Shown in the report; default: today.
    part
        Which part of the cube to report on, see `flows.cubes.selection.open_part`; default all of it.
    version
        Of the score, "auto", "v1" or "v2".
    mode, pooling
        How accuracies of tasks are estimated, see `stages.analyze.labelled.aggregate.aggregate`.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    SweepError
        If `output` is something other than a file, or the cube's description is damaged.
    StorageError
        If the cube cannot be read.
    """
    path = Path(output)
    check_output(path)  # told now, not when the work is done
    reader = Reader(cube, cache)
    checked_option("pooling", pooling, get_args(Pooling))
    opened = open_part(reader.cube, part, notes=reader.notes, trials=False)
    board = leaderboard_of(opened, version=version, mode=mode)
    status = cube_status(cube)
    with refused():
        html = render_report(
            opened.dataset,
            board,
            facts=_facts(reader, date or datetime.datetime.now(tz=datetime.UTC).date()) | _answered(status),
            samples=_samples(reader, samples, opened.dataset),
            pooling=pooling,
            failures={row["model"]: row["causes"] for row in status["models"] if row["causes"]},
        )
    write_output(path, html.encode("utf-8", "replace"), "write the report")
    return path


def _facts(reader: Reader, date: datetime.date) -> dict[str, str]:
    plan = reader.plan
    spec = json.dumps(reader.cube.attrs["spec"], sort_keys=True)
    return {
        "title": str(reader.notes.get("name", "evalcube sweep")),
        "date": date.isoformat(),
        "points": str(plan.cells),
        "trials per point": str(plan.trials) + (f" × {plan.repeats} repeats" if plan.repeats > 1 else ""),
        "seed": str(plan.seed),
        "sweep": hashlib.sha256(spec.encode()).hexdigest()[:12],
        "evalcube": metadata.version("evalcube"),
    }


def _answered(status: Mapping[str, Any]) -> dict[str, str]:
    """What answered, as far as servers and replies said, and what its reader should know of that."""
    rows = [row for row in status["models"] if row["answered_by"]]
    if not rows:
        return {}
    said = list(dict.fromkeys(row["answered_by"] for row in rows))
    warnings = {"caution": " ".join(row["warning"] for row in rows if row["warning"])}
    found = {name: text for name, text in warnings.items() if text}
    if len(said) == 1 and len(rows) == len(status["models"]):
        return {"answered by": said[0], **found}
    shown = [f"{row['model']}: {row['answered_by']}" for row in rows[:_MOST_ANSWERED]]
    more = [f"and {len(rows) - _MOST_ANSWERED} more"] if len(rows) > _MOST_ANSWERED else []
    return {"answered by": "; ".join(shown + more), **found}


def _samples(reader: Reader, count: int, dataset: xr.Dataset) -> list[SampleTrial]:
    """Some trials of each evaluation and task of the dataset, of different outcomes where there are some."""
    if count < 1 or reader.cache() is None:
        return []
    samples = []
    meant, tasks = (set(axes.names(dataset, name)) for name in ("eval_id", "task"))
    for model, evaluation in enumerate(reader.plan.evaluations):
        if evaluation.eval_id not in meant:
            continue
        status = reader.cube.read_region(Region(model, 0, 0), ("status",))["status"]
        for task, entry in enumerate(reader.plan.tasks):
            if entry.label not in tasks:
                continue
            samples += [
                _sample(reader, model, task, place) for place in _places(status[task], count, model + task)
            ]
    return samples


def _places(status: npt.NDArray[np.generic], count: int, turn: int) -> list[tuple[int, int, int]]:
    """Positions (slot, trial, repeat) of the first trials of several outcomes, beginning with another each turn."""
    found = []
    for offset in range(len(_SHOWN_STATUSES)):
        wanted = _SHOWN_STATUSES[(turn + offset) % len(_SHOWN_STATUSES)]
        hits = np.argwhere(status == wanted)
        if len(hits):
            slot, trial, repeat = hits[0].tolist()
            found.append((slot, trial, repeat))
    return found[:count]


def _sample(reader: Reader, model: int, task: int, place: tuple[int, int, int]) -> SampleTrial:
    slot, trial, repeat = place
    view = reader.view(model, task, slot, trial, repeat)
    reasoning = f"[reasoning]\n{view.reasoning}\n[answer]\n" if view.reasoning else ""
    return SampleTrial(
        model=view.model,
        task=view.task,
        status=view.status,
        prompt="\n\n".join(message["content"] for message in view.messages),
        response=reasoning + (view.response if view.response is not None else "(not in the cache)"),
        parsed=view.parsed,
        reference=view.reference,
        note=f"{', '.join(f'{k}={v}' for k, v in view.params.items())}; trial {trial}",
    )
