"""Choose a part of a cube, and count it anew where that is needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evalcube import known_as
from evalcube._arrays import Dataset, PlainDataset, as_xarray, variable
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.cube_like import (
    SMALL,
    CubeLike,
    cube_behind,
    is_dataset,
    listed,
    need_addresses,
    need_arrays,
    uneven_dims,
)
from evalcube.flows.errors import SweepError, as_list, need_number, refused
from evalcube.flows.plan.filters import Where, checked_where, conditions_of, unknown_names, without
from evalcube.flows.plan.spec import parse_spec
from evalcube.flows.read.cautions import cautions
from evalcube.flows.read.design import (
    composite_settings,
    split_by_columns,
    tells_version,
    with_design,
    with_prices,
    without_older,
)
from evalcube.flows.state.records import read_notes
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.additions import read_by_second
from evalcube.stages.analyze.labelled.clustering import answered_unevenly, with_question_moments
from evalcube.stages.analyze.labelled.counters import with_unasked
from evalcube.stages.analyze.labelled.remarks import CLIPPED
from evalcube.stages.analyze.labelled.selection import keys, restrict
from evalcube.stages.reply.status import COUNTERS, READERS, SECOND
from evalcube.stages.score.recount import recount, trim_trials
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.group import heal
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import CubeDamagedError

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.flows.config.views import View


@dataclass(frozen=True)
class Part:
    """Which part of a cube to read, and how to count its trials; by default, the whole cube."""

    where: Where | str = ()
    """Conditions that must all hold: texts such as ``task=sort`` and ``param_length=4..16``, or a mapping."""
    view: View | str | None = None
    """A view, or the name of a view in the config with which the cube was made."""
    trials: int | None = None
    """Use only this many trials of each cell (one evaluation at one point), from the first; default: all."""
    unique_only: bool = False
    """Leave out trials that repeat an earlier question of their cell."""
    clip_tokens: int | None = None
    """Compute as if the limit of completion tokens had been this; longer answers count as truncated."""
    reader: str = "ours"
    """Who extracts answers from replies: "ours" (evalcube) or "theirs" (the second reader, for tasks with one)."""

    def __post_init__(self) -> None:
        """Refuse what is no number, no condition, or no reader, before a cube is opened."""
        object.__setattr__(self, "where", as_list("where", self.where))
        checked_option("reader", self.reader, READERS)
        for name in ("trials", "clip_tokens"):
            if getattr(self, name) is not None:
                need_number(name, getattr(self, name), whole=True)

    @property
    def recounts(self) -> bool:
        """Whether trials have to be counted again."""
        alters = self.unique_only or self.clip_tokens is not None or self.reader != "ours"
        return self.trials is not None or alters


@known_as("evalcube.results")
@dataclass(frozen=True)
class OpenPart:
    """A part of a cube, ready for any analysis."""

    arrays: Dataset
    """The dataset, in a form that analyses take."""
    selection: str
    """What it is a part of, in words; empty for the whole cube."""
    warnings: tuple[str, ...] = ()
    """What its reader should know, a sentence each."""
    whole: Dataset | None = None
    """The dataset with what edited data files had in them before, which is left out unless somebody asks for it."""
    weights: Mapping[str, float] | None = None
    """Of the layers of outputs, as the config of the cube has them; None where all are the same."""

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The dataset as one of xarray's."""
        return as_xarray(self.arrays)


def open_part(
    cube: CubeLike | Cube | PlainDataset,
    part: Part | None = None,
    *,
    notes: Mapping[str, object] | None = None,
    trials: bool = True,
    by: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> OpenPart:
    """The part of a cube that is meant, its counters counted again where that is needed.

    Columns of data files that conditions or `by` name become coordinates; `sources` are the cubes of a joined dataset.
    """
    part = _checked_part(part)
    cubes: Sequence[str | Path | Cube | PlainDataset | xr.Dataset]
    cubes = [cube] if isinstance(cube, Cube | PlainDataset) else listed(cube)
    if len(cubes) > 1:
        return _several(list(map(str, need_addresses(cubes))), part, notes, trials=trials, by=by)
    source = cubes[0]
    opened: Cube | Dataset
    if isinstance(source, PlainDataset) or is_dataset(source):
        opened, behind = need_arrays(source), cube_behind(source)
        selected = uneven_dims(source, behind)
    else:
        opened = behind = source if isinstance(source, Cube) else _open_sweep(source)
        selected = []
    if notes is None:
        notes = {} if behind is None else read_notes(behind.records)
    view = _view(part.view, notes)
    most = min((n for n in (part.trials, view.trials if view else None) if n is not None), default=None)
    fewer = part.unique_only or bool(view and view.unique_only)
    chosen = replace(part, view=view, trials=most, unique_only=fewer)
    recounts = chosen.recounts or not {"trial", "repeat"}.isdisjoint(selected)
    # Without the index of evaluations: what is computed goes by their numbers, and parts are joined by them.
    whole = with_labels(opened, trials=trials or recounts).drop_vars("model", errors="ignore")
    split = _split(whole, opened, part.where, by, sources or ([behind.url] if behind else []))
    (dataset, where), recounts = split or (whole, part.where), recounts or split is not None
    dataset = with_prices(dataset, behind, notes)
    receipts = [] if behind is None else list(Ledger(behind.records).newest().values())
    with refused():
        arrays = whole if behind is opened else None
        warnings = cautions(dataset, chosen, notes, behind, receipts, whole=arrays)
        read_by, remarks = "", list[str]()
        if recounts:
            dataset, read_by, remarks = _recount(dataset, chosen)
        else:
            dataset = with_unasked(dataset)
    warnings = (*warnings, *remarks)
    whole = dataset
    if not tells_version(part.where) and not (view is not None and tells_version(view.criteria)):
        dataset, left_out = without_older(dataset)
        warnings = (*warnings, *left_out)
    if view is not None and view.criteria:
        dataset = _restrict(dataset, view.where(), f"`view`: nothing in the cube fulfils view '{view.name}'")
    if where:
        words = _in_words(Part(where))
        dataset = _restrict(dataset, where, f"`where`: nothing fulfils all of {words}")
    parts = ("as selected with xarray" if selected else "", _in_words(chosen), read_by)
    words = ", ".join(filter(None, parts))
    return OpenPart(dataset, words, warnings, whole, composite_settings(notes)[0])


def _checked_part(part: Part | None) -> Part:
    if part is not None and not isinstance(part, Part):
        raise SweepError(
            f"`part`: {type(part).__name__} is no part of a cube",
            'Give one such as Part(where=["task=sort"])',
        )
    return part or Part()


def _unknown(dataset: Dataset, where: Where, by: Sequence[str]) -> list[str]:
    """What conditions or `by` name that is no coordinate: columns of data files, if there are such."""
    names = [*conditions_of(where), *by]
    return list(dict.fromkeys(unknown_names(names, keys(dataset)))) if names else []


def _split(
    dataset: Dataset, opened: Cube | Dataset, where: Where, by: Sequence[str], sources: Iterable[str]
) -> tuple[Dataset, Where] | None:
    """A dataset split by columns of data files, and the conditions on other things; None where none are named."""
    unknown = _unknown(dataset, where, by)
    if not unknown:
        return None
    from evalcube.flows.read.reader import Reader
    from evalcube.stages.generate.dataset import column_of

    tasks = [task for source in sources for task in Reader(source).plan.tasks]
    cells = {planned.cell.id: planned.cell for task in tasks for planned in task.cells}
    values = {name: {cell_id: column_of(cell, name) for cell_id, cell in cells.items()} for name in unknown}
    columns = {name: by_cell for name, by_cell in values.items() if any(by_cell.values())}
    if not columns:
        return None
    wanted = {name: condition for name, condition in conditions_of(where).items() if name in columns}
    whole = with_labels(opened, trials=True).drop_vars("model", errors="ignore")
    named = [name for name in by if name in columns]
    return split_by_columns(whole, named, wanted, columns), without(where, list(wanted))


def narrow(opened: OpenPart, where: Sequence[str]) -> OpenPart:
    """The part of an open part that fulfils conditions, sooner than `open_part` reads it."""
    words = _in_words(Part(where))
    dataset = opened.whole if opened.whole is not None and tells_version(where) else opened.arrays
    dataset = _restrict(dataset, where, f"`where`: nothing fulfils all of {words}")
    return replace(opened, arrays=dataset, selection=words)


def _several(
    cubes: Sequence[str], part: Part, notes: Mapping[str, object] | None, *, trials: bool, by: Sequence[str]
) -> OpenPart:
    """The part of several cubes that is meant."""
    from evalcube.flows.read.merged.dataset import open_joined  # with much that one cube needs nothing of

    if isinstance(part.view, str):
        raise SweepError(
            f"`view`: several cubes have no config in common, so that there is no view '{part.view}'",
            "Write its conditions with `where`",
        )
    joined = open_joined(cubes, trials=trials or part.recounts or bool(part.view))
    uneven = "status" not in joined.dataset and (
        answered_unevenly(with_question_moments(joined.dataset)).any()
        or _unknown(with_design(joined.dataset), part.where, by)
    )
    if uneven:
        joined = open_joined(cubes, trials=True)
    opened = open_part(joined.dataset, part, notes=notes, trials=trials, by=by, sources=cubes)
    layered = [cube for cube in map(Cube.open, cubes) if "fact" in cube.trial_arrays]
    settings = [composite_settings(read_notes(cube.records))[0] for cube in layered]
    alike = all(weights == settings[0] for weights in settings)
    unlike = (
        () if alike else ("The cubes weight the layers of outputs differently; here all have equal weight.",)
    )
    return replace(
        opened,
        warnings=(*joined.warnings, *opened.warnings, *unlike),
        weights=settings[0] if settings and alike else None,
    )


def _open_sweep(cube: str | Path) -> Cube:
    opened = Cube.open(cube)
    parse_spec(opened.attrs.get("spec"), opened.sizes)
    return opened


def with_labels(opened: Cube | Dataset, *, trials: bool, lazy: bool = False) -> Dataset:
    """A cube with all that its description says of its evaluations and points, as far as it is needed."""
    if isinstance(opened, Cube):
        # There are no composites without the layers of single trials, nor sums by cluster.
        more = trials or {"fact", "cluster", SECOND} & set(opened.trial_arrays)
        dataset = read_trials(opened, lazy=lazy) if more else opened.summary()
        if "counter" in dataset.coords and axes.names(dataset, "counter")[: len(COUNTERS)] != list(COUNTERS):
            raise CubeDamagedError(
                "the labels in `counter` are no counters of evalcube", opened.url, heal(opened.url)
            )
        designed = with_design(with_question_moments(dataset))
        # Whose questions have unlike numbers of answers is known by point, but not which.
        if more or not answered_unevenly(designed).any():
            return designed
        return with_labels(opened, trials=True, lazy=lazy)
    return with_design(with_question_moments(opened))


def read_trials(opened: Cube, *, lazy: bool = False) -> Dataset:
    """A cube with its trial arrays, in memory where they are small and whole."""
    group = opened.group
    size = sum(math.prod(group.shape(name)) * group.dtype(name).itemsize for name in opened.trial_arrays)
    if not lazy and size <= SMALL:
        with suppress(CubeDamagedError):  # what needs another array goes on
            return opened.load()
    return opened.dataset()


def _recount(dataset: Dataset, part: Part) -> tuple[Dataset, str, list[str]]:
    """The dataset counted again as a part says: as if less had been measured, or as the second reader read its replies.

    What is missing of each trial is counted, too. With it come who read it, and what to know of that.
    """
    read_by, remarks = "", list[str]()
    if part.reader != "ours":
        dataset, read_by, remarks = read_by_second(dataset)
    options: dict[str, Any] = {name: getattr(part, name) for name in ("trials", "unique_only", "clip_tokens")}
    # Counters are counted with the rules of the plan, which trial arrays alone do not hold: so both.
    counted = trim_trials(recount(dataset, **options), **options)
    if part.clip_tokens is not None and "max_tokens" in counted.coords:
        limit = counted["max_tokens"].variable
        fewer = np.where(limit.values > 0, limit.values, part.clip_tokens).clip(max=part.clip_tokens)
        counted = counted.assign_coords(max_tokens=variable(limit.dims, fewer, limit.attrs))
    return counted, read_by, remarks


def _view(view: View | str | None, notes: Mapping[str, object]) -> View | None:
    if not isinstance(view, str):
        return view
    config = notes.get("config")
    if not isinstance(config, Mapping):
        raise SweepError(
            f"`view`: the cube does not tell its config, so that there is no view '{view}'",
            "Write its conditions with `where`",
        )
    from evalcube.flows.config.views import find_view, noted_views  # slow to load

    return find_view(noted_views(config), view)


def _restrict(dataset: Dataset, where: Where, nothing: str) -> Dataset:
    conditions = checked_where(where, keys(dataset), dataset)
    try:
        return restrict(dataset, conditions)
    except ValueError as error:
        raise SweepError(nothing, "Drop or widen a condition") from error


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
        texts.append(f"{CLIPPED} {part.clip_tokens} tokens")
    return ", ".join(filter(None, texts))
