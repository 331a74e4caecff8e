"""Finds trials: those that fulfil conditions, and in their texts a text or an expression, within a bounded time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.near_names import checked_option
from evalcube.flows.errors import SweepError, need_text
from evalcube.flows.read.reader import ANSWERED, STATUSES, outcome_codes
from evalcube.flows.read.trials import columns as places
from evalcube.flows.read.trials.columns import DISAGREE, TEXTS, Rows, TrialColumn, Values, chosen, disagree
from evalcube.flows.read.trials.open_cube import OpenCube, fulfils
from evalcube.stages.process.assertions.model import UnmeasuredError
from evalcube.stages.process.assertions.patterns import SECONDS, compile_pattern, search
from evalcube.stages.reply.status import FINISHED, LAST_FINISHED, SECOND, Status
from evalcube.storage.cube.schema import LAYERS

_MOST_SLOW = 5
"""Texts that a regular expression may run out of time on before it is given up."""


@dataclass
class Search:
    """What is searched for, and in which columns."""

    grep: str | None
    regex: str | None
    within: Sequence[str]
    slow: int = field(default=0, init=False)
    """Texts that the regular expression ran out of time on."""

    @classmethod
    def of(cls, grep: str | None, regex: str | None, within: Sequence[str]) -> Search | None:
        """The search; None if nothing is searched for."""
        if grep is None and regex is None:
            return None
        for parameter, text in (("grep", grep), ("regex", regex)):
            if text is not None:
                need_text(parameter, text)
        for name in within:
            checked_option("within", name, TEXTS)
        if not within:
            raise SweepError("`within`: nothing is named", f"Give some of: {', '.join(TEXTS)}")
        if regex is not None:
            import regex as library

            try:
                compile_pattern(regex)
            except (library.error, RecursionError, OverflowError) as error:
                raise SweepError(
                    f"`regex`: '{regex}' is no regular expression: {error}",
                    "Correct it, or search for a plain text with `grep`",
                ) from None
        return cls(grep, regex, tuple(dict.fromkeys(within)))

    def finds(self, texts: Sequence[Sequence[str | None]]) -> list[bool]:
        """For each row whether something is found in it."""
        return [self._in_row([text for text in row if text]) for row in zip(*texts, strict=True)]

    def _in_row(self, texts: Sequence[str]) -> bool:
        if self.grep is not None and not any(self.grep in text for text in texts):
            return False
        return self.regex is None or any(self._matches(self.regex, text) for text in texts)

    def _matches(self, pattern: str, text: str) -> bool:
        try:
            return search(pattern, "", text, seconds=SECONDS)
        except UnmeasuredError as error:
            self.slow += 1
            if self.slow > _MOST_SLOW:
                raise SweepError(
                    f"`regex`: {error}, and on {_MOST_SLOW} others", "Write it without nested repetitions"
                ) from None
            return False

    @property
    def notes(self) -> list[str]:
        """What a reader of the rows that were found should know."""
        if not self.slow:
            return []
        return [
            f"The regular expression ran out of time on {self.slow} texts, which count as ones without it."
        ]


_NUMERIC = ("integer", "single", "number", "flag")
_SORTABLE = (*_NUMERIC, "text")
_LONG = ("prompt", "response", "reasoning", "tool_calls")
_KEY = "key"
_SPARE = 1 << 16
"""Rows that are kept beyond those that are wanted, before the worst are thrown away."""


@dataclass(frozen=True)
class Order:
    """By which column rows are sorted."""

    column: TrialColumn
    down: bool
    """Largest first."""

    @classmethod
    def of(cls, sort: str | None, known: Mapping[str, TrialColumn], limit: int | None) -> Order | None:
        """The order; None if rows stay as they are stored."""
        if sort is None:
            return None
        name = need_text("sort", sort).strip()
        (column,) = chosen([name.removeprefix("-")], known, "sort")
        if column.kind not in _SORTABLE:
            raise SweepError(
                f"`sort`: {column.name} holds a list", "Sort by a column with one number or text"
            )
        if column.name in _LONG and limit is None:
            raise SweepError(f"`sort`: all texts of {column.name} would be held in memory", "Give a `limit`")
        return cls(column, name.startswith("-"))


def sort_rows(parts: Iterable[tuple[Rows, Values]], order: Order, most: int | None) -> Iterator[Rows]:
    """The rows of all parts, which come with the column's values, in its order; with `most`, the first so many."""
    best: list[Rows] = []
    for rows, values in parts:
        number = order.column.kind in _NUMERIC
        key = np.ma.filled(values.astype(np.float64), np.nan) if number else values
        best.append({name: array for name, array in rows.items() if isinstance(name, str)} | {_KEY: key})
        if most is not None and sum(map(places.count, best)) > 2 * most + _SPARE:
            best = [_best(best, order, most)]
    if best:
        yield _best(best, order, most)


def _best(parts: Sequence[Rows], order: Order, most: int | None) -> Rows:
    rows = places.concatenate(parts)
    keys = rows[_KEY]
    if keys.dtype != object:
        ranks = np.argsort(-keys if order.down else keys, kind="stable")  # NaN comes last
    else:
        absent = np.array([key is None for key in keys])
        there = sorted(np.flatnonzero(~absent).tolist(), key=keys.__getitem__, reverse=order.down)
        ranks = np.array([*there, *np.flatnonzero(absent)], dtype=np.intp)
    return places.take(rows, ranks[:most])


_FINISHED = tuple(status.name.lower() for status in FINISHED)

_SPAN_CELLS = 1 << 19
"""Trials of a span, padding included; at least all of one trial number. Some 30 bytes of each are in memory."""


class _Span(NamedTuple):
    """Trials of one model that are read at once."""

    model: int
    trials: slice
    repeats: slice


@dataclass(frozen=True)
class Wanted:
    """Which rows are wanted, and what of the cube's arrays they need."""

    status: Sequence[str] = _FINISHED
    """Names out of `STATUSES`."""
    measured: Mapping[str, object] = field(default_factory=dict)
    """Conditions on numbers of single trials."""
    arrays: Sequence[str] = ()
    """Names of arrays."""
    theirs: bool = False
    """Whether outcomes are those of the second reader."""


def check_status(names: Sequence[str]) -> tuple[str, ...]:
    """Names of outcomes, as they were given; all finished trials if none are."""
    for name in names or ():
        checked_option("status", name, STATUSES)
    return tuple(names or ()) or (*_FINISHED, ANSWERED)


def scan(opened: OpenCube, number: int, wanted: Wanted) -> Iterator[Rows]:
    """Yield a cube's rows by model, task, point, trial and repeat; with very many, by runs of trials first."""
    for span in _spans(opened):
        rows = _rows(opened, number, wanted, span)
        if rows is not None:
            yield rows


def _spans(opened: OpenCube) -> Iterator[_Span]:
    """Spans that hold all trials of the models and points that are meant: few and large ones, as reading each costs."""
    chunks, cells = opened.cube.chunks, opened.cells.size
    for model in np.flatnonzero(opened.models).tolist():
        trials = int((opened.planned.trials[model] * opened.cells).max())
        repeats = int((opened.planned.repeats[model] * opened.cells).max())
        if not trials or not repeats:
            continue
        # All repeats of a question are in one span, so that they stand side by side, however few questions that makes.
        long = max(1, _SPAN_CELLS // (cells * repeats))
        long -= long % chunks["trial"] if long > chunks["trial"] else 0
        for trial in range(0, trials, long):
            yield _Span(model, slice(trial, min(trial + long, trials)), slice(0, repeats))


def _rows(opened: OpenCube, number: int, wanted: Wanted, span: _Span) -> Rows | None:
    """The rows of one span; None without any."""
    codes = _read_arrays(opened, span, ["status", SECOND])
    ours, theirs = codes["status"], codes[SECOND]
    status = np.where(ours <= LAST_FINISHED, theirs, ours) if wanted.theirs else ours
    outcomes = outcome_codes(status, opened.plan.referenced[:, :, None, None])
    matching = np.isin(outcomes, [STATUSES.index(name) for name in wanted.status])
    matching &= opened.cells[:, :, None, None] & opened.asked[:, :, span.trials, None]
    matching &= _planned_mask(opened, span)
    if opened.selected is not None:
        matching &= opened.selected.of_numbers(span.trials, span.repeats)
    positions = np.flatnonzero(matching)
    task, slot, trial, repeat = np.unravel_index(positions, status.shape)
    rows = {
        "cube": np.full(len(positions), number),
        "model": np.full(len(positions), span.model),
        "task": task,
        "slot": slot,
        "trial": trial + span.trials.start,
        "repeat": repeat + span.repeats.start,
        "status": status.reshape(-1)[positions],
        "ours": ours.reshape(-1)[positions],
        SECOND: theirs.reshape(-1)[positions],
    }
    for name, condition in wanted.measured.items():
        if not len(positions):
            return None
        if name == DISAGREE:
            keep = (rows[SECOND] != Status.MISSING) & fulfils(disagree(rows["ours"], rows[SECOND]), condition)
        else:
            if name not in rows:
                rows[name] = _read_arrays(opened, span, [name])[name].reshape(-1)[positions]
            keep = fulfils(rows[name], condition)
        rows, positions = dict(places.take(rows, keep)), positions[keep]
    if not len(positions):
        return None
    more = _read_arrays(opened, span, [name for name in wanted.arrays if name not in rows])
    return rows | {name: values.reshape(-1)[positions] for name, values in more.items()}


def _planned_mask(opened: OpenCube, span: _Span) -> npt.NDArray[np.bool_]:
    """Which trials of a span are planned."""
    trial, repeat = (np.arange(part.start, part.stop) for part in (span.trials, span.repeats))
    within: npt.NDArray[np.bool_] = (trial < opened.planned.trials[span.model][..., None])[..., None] & (
        repeat < opened.planned.repeats[span.model][..., None]
    )[:, :, None, :]
    return within


def _read_arrays(opened: OpenCube, span: _Span, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a span; of layers that the cube does not have, what stands for nothing."""
    there = [name for name in names if name in opened.cube.trial_arrays]
    read = opened.cube.read_span(span.model, span.trials, span.repeats, there)
    for name, values in read.items():
        opened.refuse_lost(name, values, (span.model, span.trials, span.repeats))
    if len(there) < len(names):
        lengths = [part.stop - part.start for part in (span.trials, span.repeats)]
        read |= {
            name: np.full((*opened.cells.shape, *lengths), LAYERS[name].fill, LAYERS[name].dtype)
            for name in names
            if name not in read
        }
    return read
