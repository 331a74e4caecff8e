"""Writes the report of a cube, or of several as if they were merged."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evalcube import __version__
from evalcube._arrays import Dataset
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.cube_like import CubeLike, is_dataset, listed, need_address, need_addresses, source_of
from evalcube.flows.errors import WrongTypeError, need_number, refused, told
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.filters import differing, telling
from evalcube.flows.read.decision import shown_decisions
from evalcube.flows.read.outputs import check_output, write_output
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.selection import OpenPart, Part, open_part
from evalcube.flows.read.statistics import leaderboard_of
from evalcube.flows.read.status import cube_status
from evalcube.flows.read.verdict import shown_standing
from evalcube.stages.analyze.formulas.design import Weigh
from evalcube.stages.analyze.formulas.estimators import Mode
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.pairing import Pair, compare_evaluations
from evalcube.stages.analyze.labelled.results import Leaderboard
from evalcube.stages.analyze.labelled.scores import Version
from evalcube.stages.analyze.render.report import SampleTrial, close_rows, render_report
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError, StorageError

_MOST_ANSWERED = 20
_MIXED = (Status.CORRECT, Status.INCORRECT, Status.INVALID, Status.TRUNCATED, Status.REFUSED)
"""Outcomes of sample trials, in turn."""


def report(
    cube: CubeLike,
    output: str | Path,
    *,
    samples: int = 1,
    cache: str | Path | None = None,
    date: datetime.date | None = None,
    part: Part | None = None,
    version: Version = "auto",
    mode: Mode | Literal["auto"] = "auto",
    weigh: Weigh = "tasks",
    subscribers: Sequence[Subscriber] = (),
) -> Path:
    """Write a report of one or several cubes as a self-contained HTML file.

    Parameters
    ----------
    cube
        A cube, or several in a list, read as if merged. If a dataset of `open_cube` was cut, only that part counts.
    output
        Path of the HTML file to write.
    samples
        Number of trials to show for each evaluation and task; none are shown without the cache.
    cache
        Address of the response cache; default: that of your own run, or one beside the cube.
    date
        Date that the report shows; default: today.
    part
        Which part of the cube to report on, an `evalcube.Part`; default: all of it.
    version
        What ranks the rows: "auto", "v1" or "v2", as for `evalcube.leaderboard`.
    mode, weigh
        How success rates are estimated and averaged, as for `evalcube.table`; "auto" as for `evalcube.leaderboard`.
    subscribers
        Functions that are called with each event (see `evalcube.events`); default: none. The report contains the
        warnings, too.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    SweepError
        If `output` is something other than a file, an option is unknown, or a cube's description is damaged.
    StorageError
        If a cube cannot be read.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.report("results/sweep.zarr", "report.html").name
    'report.html'
    """
    announcer, path = Announcer(subscribers), Path(need_address(output, "output"))
    check_output(path)  # told now, not when the work is done
    first, *more = cubes = listed(cube)
    addresses = [source_of(first)] if is_dataset(first) and not more else need_addresses(cubes)
    need_number("samples", samples, whole=True)
    if date is not None and not isinstance(date, datetime.date):
        raise WrongTypeError(f"`date`: {told(date)} is no date", "Give a datetime.date")
    readers = [Reader(address, cache) for address in addresses]
    checked_option("weigh", weigh, get_args(Weigh))
    opened = open_part(cubes, part, trials=False)
    board = leaderboard_of(opened, version=version, mode=mode)
    pair = _first_two(cubes, part, opened, board)
    with refused():
        whole = not opened.selection and len(readers) == 1
        standing, without = shown_standing(readers[0]) if whole else (None, "")
        decisions, undecided = shown_decisions(readers[0]) if whole else ([], "")
        states = [cube_status(address) for address in addresses]
        models = [row for state in states for row in state["models"]]
        shown, lacking = _samples(readers, samples, opened.arrays)
        for line in lacking:
            announcer.note(line)
        html = render_report(
            opened.arrays,
            board,
            facts=_facts(readers, date or datetime.datetime.now(tz=datetime.UTC).date())
            | _spent([state["spent"] for state in states])
            | _answered_by(models)
            | ({"samples": "; ".join(lacking)} if lacking else {}),
            samples=shown,
            weigh=weigh,
            failures=_failures(models),
            verdict=standing,
            no_verdict=without,
            decisions=decisions,
            no_decision=undecided,
            pair=pair,
            warnings=opened.warnings,
        )
    write_output(path, html.encode("utf-8", "replace"), "write the report")
    return path


def _first_two(cube: CubeLike, part: Part | None, opened: OpenPart, board: Leaderboard) -> Pair | None:
    """The leader and the nearest whose interval overlaps, on the questions of both; None if there is none of these."""
    places = close_rows(board)[:2]
    if len(places) < 2:
        return None
    opened = opened if "status" in opened.arrays else open_part(cube, part)
    order = row_order(opened.arrays, board)
    with suppress(ValueError):  # they have no trial in common
        return compare_evaluations(opened.arrays, [order[number] for number in places])[0]
    return None


def _failures(models: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Transport errors by evaluation and cause, of all cubes."""
    causes_by_model: dict[str, Counter[str]] = {}
    for row in models:
        if row["causes"]:
            causes_by_model.setdefault(row["model"], Counter()).update(row["causes"])
    return {model: dict(causes) for model, causes in causes_by_model.items()}


def _facts(readers: Sequence[Reader], date: datetime.date) -> dict[str, str]:
    def unique_texts(texts: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(texts))

    plans = [reader.plan for reader in readers]
    specs = [json.dumps(reader.cube.attrs["spec"], sort_keys=True) for reader in readers]
    return {
        "title": unique_texts(str(reader.notes.get("name", "evalcube sweep")) for reader in readers),
        "date": date.isoformat(),
        **({"cubes": str(len(readers))} if len(readers) > 1 else {}),
        "points": unique_texts(str(plan.cells) for plan in plans),
        "trials per point": unique_texts(
            _per_point(reader) + (f" × {reader.plan.repeats} repeats" if reader.plan.repeats > 1 else "")
            for reader in readers
        ),
        "seed": unique_texts(str(plan.seed) for plan in plans),
        "sweep": unique_texts(hashlib.sha256(spec.encode()).hexdigest()[:12] for spec in specs),
        "evalcube": __version__,
    }


def _spent(sums: Sequence[Mapping[str, float] | None]) -> dict[str, str]:
    """What all runs have cost, where that was counted."""
    tokens, usd = (sum(spent[name] for spent in sums if spent is not None) for name in ("tokens", "usd"))
    return {"spent": f"{tokens:,.0f} tokens" + (f", {usd:,.2f} USD" if usd else "")} if tokens else {}


def _per_point(reader: Reader) -> str:
    """How many trials points are planned with: all alike, or from the fewest to the most."""
    planned = reader.cube.read_planned("trial")
    asked = planned[planned > 0]
    low, high = (int(end) for end in (asked.min(initial=reader.plan.trials), asked.max(initial=0)))
    return f"{low}" if low >= high else f"{low} to {high}, median {np.median(asked):.0f}"


def _answered_by(models: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the systems that answered, as far as servers and replies name them, with a caution where they differ."""
    rows = [row for row in models if row["answered_by"]]
    if not rows:
        return {}
    systems = list(dict.fromkeys(row["answered_by"] for row in rows))
    caution = " ".join(row["warning"] for row in rows if row["warning"])
    remarks = {"caution": caution} if caution else {}
    if len(systems) == 1 and len(rows) == len(models):
        return {"answered by": systems[0], **remarks}
    shown = [f"{row['model']}: {row['answered_by']}" for row in rows[:_MOST_ANSWERED]]
    more = [f"and {len(rows) - _MOST_ANSWERED} more"] if len(rows) > _MOST_ANSWERED else []
    return {"answered by": "; ".join(shown + more), **remarks}


def _samples(readers: Sequence[Reader], count: int, dataset: Dataset) -> tuple[list[SampleTrial], list[str]]:
    """Some trials of each evaluation and task, of different outcomes where there are some.

    Also a line for each cache that did not answer: all else in a report needs no replies.
    """
    samples: list[SampleTrial] = []
    lacking: list[str] = []
    shown = set[tuple[str, str]]()
    for reader in readers if count > 0 else ():
        try:
            if reader.cache() is not None:
                samples += _of_cube(reader, count, dataset, shown)
        except CubeDamagedError:
            raise
        except StorageError as error:
            lacking.append(f"without the replies of a cache that does not answer: {error}")
        lacking += reader.away
    return samples, list(dict.fromkeys(lacking))


def _of_cube(reader: Reader, count: int, dataset: Dataset, shown: set[tuple[str, str]]) -> list[SampleTrial]:
    """Trials of a cube to show, without evaluations and tasks that are shown already."""
    samples: list[SampleTrial] = []
    meant, tasks = (set(axes.names(dataset, name)) for name in ("eval_id", "task"))
    points = set(np.ravel(dataset["cell_id"].values).tolist()) if "cell_id" in dataset.coords else set()
    for model, evaluation in enumerate(reader.plan.evaluations):
        if evaluation.eval_id not in meant:
            continue
        status = reader.cube.read_region(Region(model, 0, 0), ("status",))["status"]
        for task, entry in enumerate(reader.plan.tasks):
            key = evaluation.eval_id, entry.label
            if entry.label not in tasks or key in shown or isinstance(entry.task, AbsentTask):
                continue
            inside = np.zeros((status.shape[1], 1, 1), dtype=bool)
            inside[: len(entry.cells), 0, 0] = [planned.cell.id in points for planned in entry.cells]
            places = _places(np.where(inside, status[task], Status.MISSING), count, model + task)
            samples += [_sample(reader, model, task, position) for position in places]
            shown.update([key] if places else [])
    return samples


def _places(status: npt.NDArray[np.generic], count: int, turn: int) -> list[tuple[int, int, int]]:
    """Positions (slot, trial, repeat) of trials of several outcomes, beginning with another each turn.

    One of each outcome comes before a second of any; those of an outcome are taken from all over the task.
    """
    hits = [np.argwhere(status == _MIXED[(turn + offset) % len(_MIXED)]) for offset in range(len(_MIXED))]
    positions: list[tuple[int, int, int]] = []
    for turns in range(min(count, max(map(len, hits)))):
        for places in hits:
            if turns < (taken := min(len(places), count)):
                slot, trial, repeat = places[turns * len(places) // taken].tolist()
                positions.append((slot, trial, repeat))
    return positions[:count]


def _sample(reader: Reader, model: int, task: int, position: tuple[int, int, int]) -> SampleTrial:
    slot, trial, repeat = position
    view = reader.view(model, task, slot, trial, repeat)
    points = [cell.cell.plain_params for cell in reader.plan.tasks[task].cells]
    reasoning = f"[reasoning]\n{view.reasoning}\n[answer]\n" if view.reasoning else ""
    return SampleTrial(
        eval_id=reader.plan.evaluations[model].eval_id,
        model=view.model,
        task=view.task,
        status=view.status,
        prompt="\n\n".join(message["content"] for message in view.messages),
        response=reasoning + (view.response if view.response is not None else "(not in the cache)"),
        parsed=view.parsed,
        reference=view.reference,
        note=", ".join(f"{name}={value}" for name, value in telling(view.params, differing(points)).items())
        + f"; trial {trial}"
        + (f", repeat {repeat}" if reader.plan.repeats > 1 else ""),
    )
