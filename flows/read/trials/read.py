"""The trials of one or more cubes as a table that is read while it is used, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evalcube import known_as
from evalcube.flows.config.near_names import checked_option
from evalcube.flows.cube_like import CubeLike, address_and_part, listed, need_addresses
from evalcube.flows.errors import SweepError, need_number, no_bare_text
from evalcube.flows.plan.filters import Where, differing
from evalcube.flows.read.trials import columns as places
from evalcube.flows.read.trials.columns import (
    DISAGREE,
    PARAM,
    Rows,
    TrialColumn,
    Values,
    arrow_schema,
    chosen,
    columns_of,
    objects,
    plain,
)
from evalcube.flows.read.trials.open_cube import OpenCube, split_where
from evalcube.flows.read.trials.search import Order, Search, Wanted, check_status, scan, sort_rows
from evalcube.flows.read.trials.texts import AT_ONCE, arrays_of, column_values, texts
from evalcube.stages.analyze.labelled.remarks import NO_READER
from evalcube.stages.analyze.render.shown import Shown
from evalcube.stages.reply.status import READERS, SECOND

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from evalcube.stages.analyze.render.table import TableSpec

_NO_ARROW = "Run: pip install 'evalcube[parquet]'"

Block = dict[str, Values]
"""Columns of some rows by name."""


def trials(
    cube: CubeLike,
    *,
    where: Where | str = (),
    status: Sequence[str] = (),
    grep: str | None = None,
    regex: str | None = None,
    within: Sequence[str] = ("prompt", "response", "reasoning"),
    sort: str | None = None,
    offset: int = 0,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    cache: str | Path | Sequence[str | Path] | None = None,
    reader: str = "ours",
) -> Trials:
    """Return the trials of cubes as a table, one row each.

    Parameters
    ----------
    cube
        A cube, or several in a list. If a dataset of `open_cube` was cut, only its trials count.
    where
        Conditions on evaluations and points, as for `Part.where`, and on single trials: ``trial``, ``repeat``,
        ``tokens``, ``prompt_tokens``, ``reasoning_bytes``, ``compressed_bytes``, ``latency``, ``guess_chance``,
        ``fact``, ``behavior``, ``judge``, and ``row_id`` (the name of a data set's row); or ``disagree``: the second
        reader grades the reply differently. All must hold; default: all trials.
    status
        Outcomes to include: correct, incorrect, answered, truncated, invalid, refused, transport, missing; default: all
        but the last two, which are not trials.
    grep
        Only trials with this text in one of the texts that `within` names.
    regex
        Only trials in which this regular expression matches one of these texts. A text on which it takes more than a
        second of CPU time counts as not matching.
    within
        Texts to search: prompt, response, reasoning, answer, reference.
    sort
        Column to sort by; with ``-`` before it, the largest value first. Missing values come last. Default: the order
        in the cube.
    offset
        Number of rows to skip.
    limit
        Maximum number of rows; default: all.
    columns
        Names of columns; ``param_`` may be left out. Default: all.
    cache
        Address of the response cache, or several in a list; default: that of your own run, or one beside the cube.
        Without a cache, texts of replies are missing.
    reader
        Who extracts the answers that ``status`` is about: "ours" (evalcube) or "theirs" (the second readers).

    Returns
    -------
    Trials
        A table: iterate over it for Arrow record batches, or call ``to_arrow()``, ``to_dataframe()`` or ``rows()``.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    SweepError
        If a condition, a name or the regular expression is wrong.

    Examples
    --------
    >>> import evalcube as ec
    >>> wrong = ec.trials("results/sweep.zarr", status=["incorrect"], columns=["model", "task", "tokens"])
    >>> len(wrong) == len(wrong.to_dataframe())
    True
    """
    no_bare_text(status=status, within=within, columns=columns)
    cubes = listed(cube)
    for name, value in (("offset", offset), ("limit", 0 if limit is None else limit)):
        need_number(name, value, whole=True)
        if value < 0:
            raise SweepError(f"`{name}`: {value} is less than 0", "Give a number from 0")
    checked_option("reader", reader, READERS)
    labels, numbers = split_where(where)
    if len(cubes) > 1:
        opened = [OpenCube(address, labels, cache) for address in need_addresses(cubes)]
    else:
        address, part = address_and_part(cubes)
        opened = [OpenCube(address, labels, cache, part)]
    if all(cube.never for cube in opened):
        raise SweepError(
            f"`where`: {opened[0].never}", "`evalcube trials CUBE --columns all` shows what there is"
        )
    if (reader != "ours" or DISAGREE in numbers) and not any(cube.plan.readers for cube in opened):
        raise SweepError("`reader`: no task here has a second reader", NO_READER)
    by_name = columns_of(cube.plan for cube in opened)
    named = [*(columns or ()), *([sort.removeprefix("-")] if isinstance(sort, str) else [])]
    _add_columns(by_name, named, opened)
    return Trials(
        opened,
        list(by_name.values()) if columns is None else chosen(columns, by_name),
        by_name,
        Wanted(check_status(status), numbers, theirs=reader != "ours"),
        Search.of(grep, regex, within),
        Order.of(sort, by_name, limit),
        (offset, limit),
    )


def _add_columns(known: dict[str, TrialColumn], names: Iterable[object], opened: Sequence[OpenCube]) -> None:
    """Add columns of data files that are named to those that are known."""
    for name in (name.strip() for name in names if isinstance(name, str)):
        if not {name, PARAM + name} & known.keys() and any(cube.column(name) is not None for cube in opened):
            known[name] = TrialColumn(name, "text", "plan", f"Column {name} of the data file.")


@known_as("evalcube.results")
class Trials(Shown):
    """A table of trials; each use reads the cubes again."""

    def __init__(
        self,
        opened: Sequence[OpenCube],
        columns: Sequence[TrialColumn],
        known: Mapping[str, TrialColumn],
        wanted: Wanted,
        search: Search | None,
        order: Order | None,
        window: tuple[int, int | None],
    ) -> None:
        self._opened, self._known, self._wanted = opened, dict(known), wanted
        self._search, self._order, self._window = search, order, window
        self.columns = tuple(columns)
        """What each row has."""
        self._missing = 0

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of the cubes, without credentials."""
        return tuple(cube.address for cube in self._opened)

    @property
    def has_repeats(self) -> bool:
        """Whether questions were asked several times."""
        return any(cube.plan.repeats > 1 for cube in self._opened)

    @property
    def grading_columns(self) -> set[str]:
        """Columns of what outputs were graded by beside their outcome: assertions or judges, a second reader."""
        layers = {"fact", "behavior", "judge"} if any(cube.plan.layers for cube in self._opened) else set()
        return layers | ({SECOND} if any(cube.plan.readers for cube in self._opened) else set())

    @property
    def distinguishing(self) -> set[str]:
        """Columns beside the model's in which evaluations of one model differ."""
        spellings: dict[tuple[str, str], set[str]] = {}
        for cube in self._opened:
            for row in cube.plan.evaluations:
                names = {"template": row.template.name, "sampler": row.sampler.name, "revision": row.revision}
                for column, name in names.items():
                    spellings.setdefault((row.model, column), set()).add(name)
        return {column for (_, column), names in spellings.items() if len(names) > 1}

    @property
    def varying(self) -> dict[str, set[str]]:
        """Parameters in which the points of each task differ, by the task's label."""
        by_task: dict[str, set[str]] = {}
        for cube in self._opened:
            for task in cube.plan.tasks:
                points = [planned.cell.plain_params for planned in task.cells]
                by_task.setdefault(task.label, set()).update(differing(points))
        return by_task

    def with_columns(self, columns: Sequence[TrialColumn]) -> Trials:
        """The same rows with other columns, out of all that there are."""
        return self._but(columns=tuple(columns))

    def with_names(self, names: Sequence[str], parameter: str) -> Trials:
        """The same rows with columns by their names, which a parameter has."""
        _add_columns(self._known, names, self._opened)
        return self.with_columns(chosen(names, self._known, parameter))

    def cube(self, number: int) -> OpenCube:
        """One of its cubes."""
        return self._opened[number]

    def part(self, cube: int, model: int, task: int) -> Trials:
        """Those of its rows that one evaluation of a cube has of one task.

        Parameters
        ----------
        cube
            Number of the cube.
        model, task
            Indices along ``model`` and ``task``.
        """
        return self._but(_opened=[self._opened[cube].part(model, task)])

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema; the metadata of each field say what it means."""
        _need_arrow()
        return arrow_schema(self.columns)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Record batches; those with texts have a few hundred rows."""
        import pyarrow as pa

        schema = self.schema
        for block in self.blocks():
            arrays = [pa.array(block[field.name], type=field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def to_arrow(self) -> pa.Table:
        """All of it in memory."""
        return _need_arrow().Table.from_batches(list(self), schema=self.schema)

    def to_dataframe(self) -> pd.DataFrame:
        """All of it in memory, as a data frame; whole numbers of which some are absent are floats there."""
        if find_spec("pyarrow") is not None:
            return self.to_arrow().to_pandas()
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=[column.name for column in self.columns])

    def records(self) -> list[dict[str, Any]]:
        """All `rows` in memory."""
        return list(self.rows())

    def _table(self) -> TableSpec:
        from evalcube.flows.read.trials.brief import first_rows

        return first_rows(self)

    def first(self, count: int) -> Trials:
        """The first so many of its rows.

        Parameters
        ----------
        count
            How many.
        """
        offset, limit = self._window
        return self._but(_window=(offset, count if limit is None else min(limit, count)))

    def _but(self, **changed: object) -> Trials:
        """The same table but for what is given."""
        table = copy(self)
        vars(table).update(changed, _missing=0)
        return table

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as Python values by column, None for what is absent; needs no Arrow."""
        names = [column.name for column in self.columns]
        for block in self.blocks():
            for row in zip(*(plain(block[name]) for name in names), strict=True):
                yield dict(zip(names, row, strict=True))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the rows should know, a sentence each; complete once they were read."""
        notes = [] if self._search is None else self._search.notes
        if self._missing:
            without = (cube.reader.without_cache for cube in self._opened if cube.reader.cache() is None)
            why = next(without, "the cache lacks them")
            lost = f"{self._missing:,} replies are not there, and what comes from them is absent: {why}."
            notes = [lost, *notes]
        if _text_columns(self.columns):
            notes = [*(f"{reason}." for reason in dict.fromkeys(_not_run(self._opened))), *notes]
        if cells := _cells_of_several(self._opened):
            several = (
                f"{cells:,} cells are in several of these cubes, and a trial of theirs has a row for each: "
                "`evalcube merge` makes one cube of them, with one row for each trial."
            )
            notes = [several, *notes]
        return tuple(notes)

    def count(self) -> int:
        """How many rows there are without `offset` and `limit`; texts are made only if they are searched."""
        return sum(map(places.count, self._matching(())))

    def __len__(self) -> int:
        """How many rows there are."""
        offset, limit = self._window
        left = max(self.count() - offset, 0)
        return left if limit is None else min(left, limit)

    def __bool__(self) -> bool:
        """True: a table is there, also without rows, which are not counted for it."""
        return True

    @property
    def planned_trials(self) -> int:
        """Trials of the evaluations and points that are meant, whatever became of them."""
        planned = ((cube.planned.trials * cube.planned.repeats * cube.cells, cube) for cube in self._opened)
        return sum(int(trials[cube.models].sum()) for trials, cube in planned)

    def blocks(self) -> Iterator[Block]:
        """The values of the columns by name, some rows at a time."""
        self._missing = 0
        parts = self._matching(self.columns)
        if self._order is not None:
            parts = self._in_order(self._order)
        for rows in places.window(parts, *self._window):
            for some in places.cut([rows], AT_ONCE) if _text_columns(self.columns) else [rows]:
                yield self._values(some, self.columns)

    def _matching(self, columns: Sequence[TrialColumn]) -> Iterator[Rows]:
        """The rows that are wanted, with the arrays that columns need; with a search, with their values, too."""
        search = self._search
        every = dict.fromkeys([*columns, *(self._known[name] for name in (search.within if search else ()))])
        needed = dict.fromkeys(name for column in every for name in arrays_of(column))
        wanted = replace(self._wanted, arrays=tuple(needed))
        parts = (rows for number, cube in enumerate(self._opened) for rows in scan(cube, number, wanted))
        if search is None:
            yield from parts
            return
        for rows in places.cut(parts, AT_ONCE):
            values = self._values(rows, list(every))
            keep = np.flatnonzero(search.finds([values[name].tolist() for name in search.within]))
            if len(keep):
                yield places.take({**rows, **{cube: values[cube.name] for cube in columns}}, keep)

    def _in_order(self, order: Order) -> Iterator[Rows]:
        """All rows in the order of a column, of which no more than needed are kept."""
        offset, limit = self._window
        parts = self._matching([*self.columns, order.column])
        keyed = (
            (rows, self._values(rows, [order.column])[order.column.name])
            for rows in (places.cut(parts, AT_ONCE) if _text_columns([order.column]) else parts)
        )
        return places.cut(sort_rows(keyed, order, None if limit is None else offset + limit), 1 << 16)

    def _values(self, rows: Rows, columns: Sequence[TrialColumn]) -> Block:
        """The values of columns, of rows from any of the cubes."""
        numbers = np.unique(rows["cube"]).tolist()
        if len(numbers) == 1:
            return self._of_cube(numbers[0], rows, columns)
        merged: Block = {column.name: np.empty(places.count(rows), dtype=object) for column in columns}
        for number in numbers:
            which = np.flatnonzero(rows["cube"] == number)
            for name, values in self._of_cube(number, places.take(rows, which), columns).items():
                merged[name][which] = objects(plain(values))
        return merged

    def _of_cube(self, number: int, rows: Rows, columns: Sequence[TrialColumn]) -> Block:
        opened = self._opened[number]
        block: Block = {column.name: rows[column] for column in columns if column in rows}
        if written := [column for column in _text_columns(columns) if column not in rows]:
            values, missing = texts(opened.reader, written, rows)
            block |= values
            self._missing += missing
        return block | {
            column.name: column_values(opened, column, rows) for column in columns if column.name not in block
        }


def _not_run(opened: Sequence[OpenCube]) -> Iterator[str]:
    """What code of the tasks and evaluations that are meant is not run or not at hand, and why."""
    for cube in opened:
        for task in compress(cube.plan.tasks, map(any, cube.cells.tolist())):
            yield from task.not_run
        for evaluation in compress(cube.plan.evaluations, cube.models):
            yield from evaluation.not_run


def _cells_of_several(opened: Sequence[OpenCube]) -> int:
    """How many cells, each an evaluation at a point, are meant in more than one cube."""
    times: Counter[tuple[str, str]] = Counter()
    for cube in opened if len(opened) > 1 else ():
        meant = (cube.planned.trials > 0) & cube.cells & cube.models[:, None, None]
        for model, task, slot in np.argwhere(meant).tolist():
            times[cube.plan.evaluations[model].eval_id, cube.plan.tasks[task].cells[slot].cell.id] += 1
    return sum(count > 1 for count in times.values())


def _text_columns(columns: Iterable[TrialColumn]) -> list[TrialColumn]:
    """Those with texts, which are made again or looked up."""
    return [column for column in columns if column.source in ("question", "reply")]


def _need_arrow() -> Any:  # noqa: ANN401 - the module
    try:
        import pyarrow as pa
    except ImportError as error:
        raise SweepError(
            "Arrow tables need the extra `parquet`, which is not installed", _NO_ARROW
        ) from error
    return pa
