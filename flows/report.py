"""A cube in; its leaderboard and its report out."""

from __future__ import annotations

import datetime
import hashlib
import json
from importlib import metadata
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xarray as xr

from flows.outputs import check_output, write_output
from flows.reading import Reader
from flows.spec import parse_spec
from stages.analyze import labelled
from stages.analyze.board import Leaderboard
from stages.analyze.report import SampleTrial, render_report
from stages.outcome import Status
from storage.cube import Cube
from storage.regions import Region

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
        With dimensions model, task, params, trial, repeat, counter and tier; each variable says its units.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    """
    return Cube.open(url).dataset()


def leaderboard(cube: str | Path | xr.Dataset, *, seed: int = 0, draws: int = 2000) -> Leaderboard:
    """All evaluations of a cube, ranked by ReasonScore.

    Parameters
    ----------
    cube
        A cube's address, or the dataset of `open_cube`.
    seed, draws
        Of the bootstrap behind the intervals.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    SweepError
        If it is not a sweep's, or its description is damaged.
    """
    if isinstance(cube, xr.Dataset):
        dataset = cube
    else:
        opened = Cube.open(cube)
        parse_spec(opened.attrs.get("spec"), opened.sizes)
        dataset = opened.dataset()
    return labelled.leaderboard(dataset, seed=seed, draws=draws)


def report(
    cube: str | Path,
    output: str | Path,
    *,
    samples: int = 1,
    cache: str | Path | None = None,
    date: datetime.date | None = None,
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
    dataset = reader.cube.dataset()
    board = labelled.leaderboard(dataset)
    html = render_report(
        dataset,
        board,
        facts=_facts(reader, date or datetime.datetime.now(tz=datetime.UTC).date()),
        samples=_samples(reader, samples),
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


def _samples(reader: Reader, count: int) -> list[SampleTrial]:
    """Some trials of each evaluation and task, of different outcomes where there are some."""
    if count < 1 or reader.cache() is None:
        return []
    samples = []
    for model in range(len(reader.plan.evaluations)):
        status = reader.cube.read_region(Region(model, 0, 0), ("status",))["status"]
        for task in range(len(reader.plan.tasks)):
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
