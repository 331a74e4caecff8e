"""Choose a part of a cube, and count it anew where that is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evalcube import known_as
from evalcube._arrays import as_xarray
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.errors import SweepError, need_number, no_bare_text, refused
from evalcube.flows.nouns import (
    CubeLike,
    cube_behind,
    is_dataset,
    listed,
    need_addresses,
    need_arrays,
    uneven_dims,
)
from evalcube.flows.plan.filters import Where, checked_where
from evalcube.flows.plan.spec import parse_spec
from evalcube.flows.read.design import (
    composite_settings,
    tells_version,
    with_design,
    with_prices,
    without_older,
)
from evalcube.flows.state.engines import origins_of, read_engines, with_answers
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.unasked import noted_unnamed
from evalcube.stages.analyze.labelled import axes, counters
from evalcube.stages.analyze.labelled.clustering import with_question_moments
from evalcube.stages.analyze.labelled.counters import with_unasked
from evalcube.stages.analyze.labelled.remarks import first_few
from evalcube.stages.analyze.labelled.selection import keys, restrict
from evalcube.stages.process.grading import GRADER, IMPORTED
from evalcube.stages.reply.status import FEW_TRIALS, READERS, SECOND
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger, Receipt, graders_of

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.flows.config.views import View


@dataclass(frozen=True)
class Part:
    """Which part of a cube is meant, and how it is to be counted; all of it as it is by default."""

    where: Where = ()
    """Conditions on coordinates; or texts such as ``task=sort`` and ``param_length=4..16``."""
    view: View | str | None = None
    """A view, or the name of one of the config that the cube was made with."""
    trials: int | None = None
    """The first so many trials of each cell."""
    unique_only: bool = False
    """Only questions that are new in their cell."""
    clip_tokens: int | None = None
    """As if the limit of completion tokens had been this."""
    reader: str = "ours"
    """Who says what is right: "ours", or "theirs", the second reader of the tasks that have one."""

    def __post_init__(self) -> None:
        """Refuse what is no number, or no reader, before a cube is opened."""
        checked_option("reader", self.reader, READERS)
        for name in ("trials", "clip_tokens"):
            if getattr(self, name) is not None:
                need_number(name, getattr(self, name), whole=True)

    @property
    def recounts(self) -> bool:
        """Whether trials have to be counted again."""
        others = self.unique_only or self.clip_tokens is not None or self.reader != "ours"
        return self.trials is not None or others


@known_as("evalcube.results")
@dataclass(frozen=True)
class OpenPart:
    """A part of a cube, ready for any analysis."""

    arrays: xr.Dataset
    """The dataset, in a form that analyses take."""
    selection: str
    """What it is a part of, in words; empty for the whole cube."""
    warnings: tuple[str, ...] = ()
    """What its reader should know, a sentence each."""
    whole: xr.Dataset | None = None
    """The dataset with what edited data files had in them before, which is left out unless somebody asks for it."""
    weights: Mapping[str, float] | None = None
    """Of the layers of outputs, as the config of the cube has them; None where all are the same."""

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The dataset as one of xarray's."""
        return as_xarray(self.arrays)


def open_part(
    cube: CubeLike | Cube,
    part: Part | None = None,
    *,
    notes: Mapping[str, object] | None = None,
    trials: bool = True,
) -> OpenPart:
    """The part of a cube that is meant, its counters counted again where that is needed.

    Parameters
    ----------
    cube
        A cube in any form, or several in a list: what these hold is joined in memory, as `evalcube merge` joins it on
        disk. Of a dataset its arrays hold, whatever was selected, and the records of the cube that it was opened from.
    part
        Default: all of it.
    notes
        What was noted beside the cube, for views by name; default: read at its address.
    trials
        Whether single trials are needed, and not only their counters, which are sooner read.

    Returns
    -------
    OpenPart
        The dataset with its counters, and what a reader should know of the selection.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    SweepError
        If a view, coordinate or value is unknown, or nothing is left.
    """
    if part is not None and not isinstance(part, Part):
        raise SweepError(
            f"`part`: {type(part).__name__} is no part of a cube",
            'Give one such as Part(where=["task=sort"])',
        )
    part = part or Part()
    no_bare_text(where=part.where)
    if not isinstance(cube, Cube) and len(given := listed(cube)) > 1:
        return _several(list(map(str, need_addresses(given))), part, notes, trials=trials)
    one = cube if isinstance(cube, Cube) else given[0]
    opened: Cube | xr.Dataset
    if is_dataset(one):
        opened, behind = need_arrays(one), cube_behind(one)
        selected = uneven_dims(one, behind)
    else:
        opened = behind = one if isinstance(one, Cube) else _opened(one)
        selected = []
    if notes is None:
        notes = {} if behind is None else read_notes(behind.records)
    view = _view(part.view, notes)
    most = min((n for n in (part.trials, view.trials if view else None) if n is not None), default=None)
    fewer = part.unique_only or bool(view and view.unique_only)
    chosen = replace(part, view=view, trials=most, unique_only=fewer)
    recounts = chosen.recounts or not {"trial", "repeat"}.isdisjoint(selected)
    # Without the index of evaluations: what is computed goes by their numbers, and parts are joined by them.
    dataset = _labelled(opened, trials=trials or recounts).drop_vars("model", errors="ignore")
    dataset = with_prices(dataset, behind, notes)
    receipts = _receipts(behind)
    warnings = (
        *_graders(receipts),
        *_engines(behind, dataset, receipts),
        *_kept(notes),
        *_bounds(dataset),
        *_unverified(notes, dataset),
        *(_unanswered(dataset) if part.reader == "ours" else ()),
        *(_uncounted(dataset, receipts) if behind is opened else ()),  # of a selection, counts are of a part
        *(() if chosen.unique_only else _few_problems(dataset)),
        *_warnings(dataset, chosen),
    )
    with refused():
        read_by, told = "", list[str]()
        if recounts:
            from evalcube.flows.read.recounting import recounted  # with `dask`, which takes a while

            dataset, read_by, told = recounted(dataset, chosen)
        else:
            dataset = with_unasked(dataset)
    warnings = (*warnings, *told)
    whole = dataset
    if not tells_version(part.where) and not (view is not None and tells_version(view.criteria)):
        dataset, left_out = without_older(dataset)
        warnings = (*warnings, *left_out)
    if view is not None and view.criteria:
        dataset = _restricted(
            dataset, view.where(), f"`view`: nothing in the cube fulfils view '{view.name}'"
        )
    if part.where:
        words = _in_words(Part(part.where))
        dataset = _restricted(dataset, part.where, f"`where`: nothing fulfils all of {words}")
    words = ", ".join(
        filter(None, ("as selected with xarray" if selected else "", _in_words(chosen), read_by))
    )
    return OpenPart(dataset, words, warnings, whole, composite_settings(notes)[0])


def narrowed(opened: OpenPart, where: Sequence[str]) -> OpenPart:
    """The part of an open part that fulfils conditions, sooner than `open_part` reads it.

    Parameters
    ----------
    opened
        With all that its reader should know, which holds of a part of it too.
    where
        Conditions, texts such as ``task=sort``.

    Raises
    ------
    SweepError
        If a coordinate or value is unknown, or nothing is left.
    """
    words = _in_words(Part(where))
    dataset = opened.whole if opened.whole is not None and tells_version(where) else opened.arrays
    dataset = _restricted(dataset, where, f"`where`: nothing fulfils all of {words}")
    return replace(opened, arrays=dataset, selection=words)


def _several(
    cubes: Sequence[str], part: Part, notes: Mapping[str, object] | None, *, trials: bool
) -> OpenPart:
    """The part of several cubes that is meant."""
    from evalcube.flows.read.merged.dataset import open_joined  # with much that one cube needs nothing of

    if isinstance(part.view, str):
        raise SweepError(
            f"`view`: several cubes have no config in common, so that there is no view '{part.view}'",
            "Write its conditions with `where`",
        )
    joined = open_joined(cubes, trials=trials or part.recounts or bool(part.view))
    found = open_part(joined.dataset, part, notes=notes, trials=trials)
    layered = [one for one in map(Cube.open, cubes) if "fact" in one.trial_arrays]
    settings = [composite_settings(read_notes(one.records))[0] for one in layered]
    alike = all(one == settings[0] for one in settings)
    told = () if alike else ("The cubes weigh the layers of outputs differently; here all weigh the same.",)
    return replace(
        found,
        warnings=(*joined.warnings, *found.warnings, *told),
        weights=settings[0] if settings and alike else None,
    )


_MOST_NAMED = 5
"""Models that a warning names."""


def _opened(cube: str | Path) -> Cube:
    opened = Cube.open(cube)
    parse_spec(opened.attrs.get("spec"), opened.sizes)
    return opened


def _labelled(opened: Cube | xr.Dataset, *, trials: bool) -> xr.Dataset:
    if not isinstance(opened, Cube):
        return with_design(with_question_moments(opened))
    # Composites and readers are compared by single trials, and clusters lie anywhere among them.
    if trials or {"fact", "cluster", SECOND} & set(opened.trial_arrays):
        return labelled_dataset(opened)
    return with_design(with_question_moments(opened.summary()))


def labelled_dataset(cube: Cube) -> xr.Dataset:
    """The dataset of a cube with its labels in memory, since everything asks for them; the rest is lazy.

    Returns
    -------
    Dataset
        As of `evalcube.flows.read.dataset.open_cube`.
    """
    return with_design(with_question_moments(cube.dataset()))


def _view(view: View | str | None, notes: Mapping[str, object]) -> View | None:
    if not isinstance(view, str):
        return view
    config = notes.get("config")
    if not isinstance(config, Mapping):
        raise SweepError(
            f"`view`: the cube does not tell its config, so that there is no view '{view}'",
            "Write its conditions with `where`",
        )
    from evalcube.flows.config.load import (
        noted_views,  # with all that configs are made of, which takes a while
    )
    from evalcube.flows.config.views import find_view

    return find_view(noted_views(config), view)


def _restricted(dataset: xr.Dataset, where: Where, nothing: str) -> xr.Dataset:
    conditions = checked_where(where, keys(dataset), dataset)
    try:
        return restrict(dataset, conditions)
    except ValueError as error:
        raise SweepError(nothing, "Drop or widen a condition") from error


def _receipts(opened: Cube | None) -> list[Receipt]:
    """The newest of each region, where there is a ledger."""
    if opened is None:
        return []
    with Ledger(opened.records) as ledger:
        return list(ledger.newest().values())


def _graders(receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """That an older grader than today's graded results, or several did."""
    # Replies that another tool graded are told by the name of their task; no rescoring would make them alike.
    found = [name for name in graders_of(receipts) if name != IMPORTED]
    if not found or found == [GRADER]:
        return ()
    if len(found) > 1:
        named = f"{', '.join(found[:-1])} and {found[-1]}"
        return (f"Results of graders {named} meet in this cube; evalcube rescore grades all replies alike.",)
    return (
        f"Grader {found[0]} graded these replies, today's is {GRADER}; evalcube rescore grades them again.",
    )


def _engines(opened: Cube | None, dataset: xr.Dataset, receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """Evaluations whose replies come from several systems."""
    if opened is None:
        return ()
    engines = read_engines(opened.records)
    if not engines and not any(one.fingerprints for one in receipts):
        return ()  # of most cubes: neither the plan nor anything else has to be read
    labels, names = axes.evaluation_labels(dataset), axes.names(dataset, "eval_id")
    origins = origins_of(list(zip(labels, names, strict=True)), engines, receipts)
    return tuple(one.warning for one in with_answers(origins, opened, receipts) if one.mixed)


def _kept(notes: Mapping[str, object]) -> tuple[str, ...]:
    """That the cube holds more than the config of its last run names."""
    found = noted_unnamed(notes)
    return () if found is None else (f"{str(found)[:1].upper()}{str(found)[1:]}; shown all the same.",)


def _bounds(dataset: xr.Dataset) -> tuple[str, ...]:
    """Evaluations whose share of right answers is no accuracy."""
    if not (bound := axes.upper_bounds(dataset)).any():
        return ()
    labels = [label for label, here in zip(axes.evaluation_labels(dataset), bound, strict=True) if here]
    told = f"Upper bounds (*) and no accuracies, without a rank: {first_few(labels)}"
    return (f"{told}. Only replies that were cut got a second chance, with more tokens.",)


def _unverified(notes: Mapping[str, object], dataset: xr.Dataset) -> tuple[str, ...]:
    """Of which of its tasks nobody knows whether their numbers may be held against published ones."""
    config, there = notes.get("config"), axes.names(dataset, "task")
    tasks = config.get("tasks") if isinstance(config, Mapping) else None
    if not isinstance(tasks, Mapping) or not any("recipe" in task for task in tasks.values() if task):
        return ()
    from evalcube.flows.config.recipes import unverified  # with pydantic, which most boards need nothing of

    return unverified({label: tasks[label] for label in there if label in tasks})


def _unanswered(dataset: xr.Dataset) -> tuple[str, ...]:
    """Models of whose completed replies more than half have no answer."""
    if "counters" not in dataset:
        return ()
    cells = dataset.variables["counters"].transpose("model", ..., "counter")
    labels = axes.names(dataset, "counter")
    places = [labels.index(name) for name in ("invalid", "completed")]
    counts = np.asarray(cells.isel(counter=places).data.sum(axis=tuple(range(1, cells.ndim - 1))))
    return tuple(
        f"{label}: {invalid:.0f} of {completed:.0f} replies have no answer in the asked form, and count as wrong; "
        "look at some with evalcube show, and see `match` for data sets."
        for label, (invalid, completed) in zip(axes.evaluation_labels(dataset), counts, strict=True)
        if completed >= FEW_TRIALS and invalid > completed / 2
    )


def _few_problems(dataset: xr.Dataset) -> tuple[str, ...]:
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
        "which are no new evidence; evalcube leaderboard CUBE --unique-only counts each problem once."
        for task, here, asked in zip(axes.names(dataset, "task"), few, trials, strict=False)
        if here.any()
    )


def _uncounted(dataset: xr.Dataset, receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """That trials are on record which the counters lack: a run adds them up later, or the counters are lost."""
    if "counters" not in dataset:
        return ()
    cells = dataset.variables["counters"].transpose("model", ..., "counter")
    trials = cells.isel(counter=axes.names(dataset, "counter").index("trials"))
    counted = np.asarray(trials.data.sum(axis=tuple(range(1, trials.ndim))))
    recorded = np.zeros(len(counted))
    for receipt in receipts:
        if receipt.region.model < len(recorded):
            recorded[receipt.region.model] += receipt.finished
    late = np.maximum(recorded - counted, 0).astype(int)
    names = [label for label, count in zip(axes.evaluation_labels(dataset), late, strict=True) if count]
    if not names:
        return ()
    few = f"{', '.join(names[:_MOST_NAMED])}{' and others' if len(names) > _MOST_NAMED else ''}"
    text = f"{late.sum():,} trials are recorded and not counted yet, of {few}: what is shown lacks them. A run counts"
    return (
        f"{text} them every few minutes and when it ends; `evalcube cube verify --heal` does where none goes on.",
    )


def _warnings(dataset: xr.Dataset, part: Part) -> tuple[str, ...]:
    if not part.unique_only or "duplicate" not in dataset:
        return ()
    unknown = counters.unmarked_tasks(dataset)
    if not unknown.any():
        return ()
    tasks = [name for name, here in zip(axes.names(dataset, "task"), unknown, strict=True) if here]
    text = f"It is not known yet which questions of {', '.join(tasks)} are new; they all count as new."
    return (f"{text} Run the sweep again to have them compared.",)


def _in_words(part: Part) -> str:
    view = part.view
    texts = ["" if view is None or isinstance(view, str) else f"view {view.name}"]
    if isinstance(part.where, Mapping):
        texts += [f"{name}={value}" for name, value in part.where.items()]
    else:
        texts += part.where
    if part.trials is not None:
        texts.append(f"first {part.trials} trials of each cell")
    if part.unique_only:
        texts.append("questions new in their cell only")
    if part.clip_tokens is not None:
        texts.append(f"as if the limit were {part.clip_tokens} tokens")
    return ", ".join(filter(None, texts))
