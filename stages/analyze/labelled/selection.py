"""Which models and cells of a cube fulfil conditions, how they fall into groups, and the part that they make up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, DatasetT, Labelled, variable
from evalcube.stages.analyze.labelled.axes import facets, names
from evalcube.stages.errors import ArgumentError, ArgumentTypeError
from evalcube.stages.reply.status import QUESTION_MOMENTS, SECOND, Status

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Condition = object
"""A value, a list of values, a pair (low, high) with both ends included and None for open, or a test of a value."""

Where = Mapping[str, Condition]

MODEL = ("model",)
CELL = ("task", "params")

MOST_GROUPS = 10_000_000

_SHOWN = 12


@dataclass(frozen=True)
class Key:
    """What models or cells can be selected and grouped by."""

    dims: tuple[str, ...]
    """("model",) or ("task", "params")."""
    values: list[Any]
    """One per model, or per cell in row-major order; None where the key does not apply."""


@dataclass(frozen=True)
class CellSelection:
    """The models and cells meant."""

    models: NDArray[np.bool_]
    """Shape (model,)."""
    cells: NDArray[np.bool_]
    """Shape (task, params)."""
    tiers: tuple[int, ...]
    """Indices of the tiers meant; all of them unless tiers were selected."""


@dataclass(frozen=True)
class Groups:
    """How models or cells fall into groups."""

    names: tuple[str, ...]
    levels: tuple[list[Any], ...]
    """The values of each name."""
    matrix: csr_array
    """Shape (product of the numbers of levels, models or cells): 1 where one belongs to the group."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each name."""
        return tuple(len(level) for level in self.levels)

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Number of a group and index of a member of it, for all members of all groups."""
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr)), self.matrix.indices

    def weigh(self, factors: NDArray[np.float64]) -> csr_array:
        """The matrix with a factor for each of `pairs` in the place of 1."""
        from scipy.sparse import csr_array

        return csr_array((factors, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape)

    def members(self) -> Iterator[tuple[tuple[int, ...], NDArray[np.intp]]]:
        """The place of each group, with the indices of its members."""
        for number, index in enumerate(np.ndindex(*self.shape)):
            start, end = self.matrix.indptr[number : number + 2]
            yield index, self.matrix.indices[start:end]


def keys(ds: Dataset) -> dict[str, Key]:
    """Every name that models or cells can be selected and grouped by, but for ``tier``.

    These are the dims model, task and params, all coordinates along them, and ``facet_<key>`` for each key of
    the models' facets.
    """
    if not hasattr(ds, "data_vars"):
        raise ArgumentTypeError(
            f"a cube's dataset is needed, got {type(ds).__name__} {ds!r:.60}; open a cube by its address with "
            "`evalcube.open_cube`"
        )
    table = {}
    sizes = {dim: ds.sizes[dim] for dim in (*MODEL, *CELL)}
    for name in [*sizes, *(str(item) for item in ds.coords if item not in sizes)]:
        # Variables, and no arrays with all of the dataset's coordinates: pages ask for these again and again.
        array = ds.variables[name] if name in ds.coords else variable((name,), np.arange(sizes[name]))
        for dims in (MODEL, CELL):
            if array.ndim and set(array.dims) <= set(dims) and name != "facets":
                inner = array.transpose(*(dim for dim in dims if dim in array.dims)).values
                shaped = inner.reshape([sizes[dim] if dim in array.dims else 1 for dim in dims])
                spread = np.broadcast_to(shaped, [sizes[dim] for dim in dims])
                table[name] = Key(dims, _plain(spread))
    rows = [facets(text) for text in names(ds, "facets")]
    for label in sorted({label for row in rows for label in row}):
        table.setdefault(f"facet_{label}", Key(MODEL, [row.get(label) for row in rows]))
    return table


def _plain(values: NDArray[Any]) -> list[Any]:
    """Values as a list, None for empty texts and NaN."""
    items = values.ravel().tolist()
    if values.dtype.kind in "biu":  # which have neither
        return items
    return [None if value == "" or value != value else value for value in items]  # noqa: PLR0124 - NaN


def check_name(table: Mapping[str, Key], name: str, argument: str) -> None:
    """Refuse a name that is none of the keys."""
    if name != "tier" and name not in table:
        raise ArgumentError(
            f"`{argument}` has no {name!r}; known names are {', '.join(sorted([*table, 'tier']))}"
        )


def select(ds: Dataset, where: Where | None, table: Mapping[str, Key]) -> CellSelection:
    """The models and cells that fulfil all conditions."""
    if where is not None and not isinstance(where, Mapping):
        raise ArgumentError(
            f"`where` is a {type(where).__name__}, and no mapping of names to conditions; write it like "
            "{'task': ['sort'], 'param_length': {'min': 4}}"
        )
    models = np.ones(ds.sizes["model"], dtype=bool)
    cells = _real_cells(ds, table)
    tiers = list(range(ds.sizes["tier"]))
    for name, condition in (where or {}).items():
        check_name(table, name, "where")
        if name == "tier":
            tiers = np.flatnonzero(_matches(name, names(ds, "tier"), condition)).tolist()
            cells &= ds.variables["in_tier"].transpose("tier", *CELL).values[tiers].any(axis=0)
        elif table[name].dims == MODEL:
            models &= _matches(name, table[name].values, condition)
        else:
            cells &= _matches(name, table[name].values, condition).reshape(cells.shape)
    if not models.any() or not cells.any():
        raise ArgumentError(
            f"`where` = {dict(where or {})!r} leaves no {'cell' if models.any() else 'model'}: each condition "
            "matches something, but none fulfils all of them; drop or widen one"
        )
    return CellSelection(models, cells, tuple(tiers))


def _real_cells(ds: Dataset, table: Mapping[str, Key]) -> NDArray[np.bool_]:
    """Cells that are no padding, as far as the dataset shows."""
    shape = (ds.sizes["task"], ds.sizes["params"])
    if "cell_id" not in table:
        return np.ones(shape, dtype=bool)
    return np.array([value is not None for value in table["cell_id"].values]).reshape(shape)


def _matches(name: str, values: Sequence[Any], condition: Condition) -> NDArray[np.bool_]:
    test = _test(name, condition)
    try:
        matches = np.array([value is not None and bool(test(value)) for value in values], dtype=bool)
    except TypeError as error:
        raise ArgumentError(
            f"`where` cannot test {name!r} with {condition!r}: {error}; its values are {list_values(values)}"
        ) from error
    if not matches.any():
        raise ArgumentError(
            f"`where` matches nothing: there is no {name} {condition!r}; there are {list_values(values)}"
        )
    return matches


def _test(name: str, condition: Condition) -> Callable[[Any], object]:
    if callable(condition):
        return condition
    if isinstance(condition, tuple):
        if len(condition) != 2:
            raise ArgumentError(
                f"`where` takes a tuple as (low, high), got {condition!r} for {name!r}; use a list for values"
            )
        low, high = condition
        return lambda value: (low is None or low <= value) and (high is None or value <= high)
    if isinstance(condition, Iterable) and not isinstance(condition, str):
        options = list(condition)
        return lambda value: value in options
    return lambda value: value == condition


def list_values(values: Iterable[Any]) -> str:
    """The different values as a short text."""
    levels = _levels(values)
    text = ", ".join(repr(level) for level in levels[:_SHOWN]) or "never set"
    return text if len(levels) <= _SHOWN else f"{text}, ... ({len(levels)} values)"


def _levels(values: Iterable[Any]) -> list[Any]:
    """Different values but None: numbers ascending, else in order of first mention."""
    levels = list(dict.fromkeys(value for value in values if value is not None))
    numeric = all(isinstance(level, int | float) for level in levels)
    return sorted(levels) if numeric else levels


def group(
    ds: Dataset, by: Sequence[str], dims: tuple[str, ...], selection: CellSelection, table: Mapping[str, Key]
) -> Groups:
    """Groups of the models, or of the cells, that are selected, by the names of `by` that belong to them.

    A cell belongs to each of its tiers; one to which a name does not apply belongs to no group.
    """
    from scipy.sparse import csr_array  # a leaderboard needs no groups

    chosen = [name for name in by if (CELL if name == "tier" else table[name].dims) == dims]
    inside = np.flatnonzero((selection.models if dims == MODEL else selection.cells).ravel())
    levels: list[list[Any]] = []
    member, owner = inside, np.zeros(len(inside), dtype=np.int64)
    for name in chosen:
        if name == "tier":
            every = ds.variables["in_tier"].transpose("tier", *CELL).values.reshape(ds.sizes["tier"], -1)
            labels = names(ds, "tier")
            levels.append([labels[tier] for tier in selection.tiers])
            position, code = np.nonzero(every[list(selection.tiers)][:, member].T)
        else:
            values = table[name].values
            levels.append(_levels(values[index] for index in inside))
            order = {level: number for number, level in enumerate(levels[-1])}
            codes = np.array([-1 if values[i] is None else order[values[i]] for i in member], dtype=np.int64)
            position = np.flatnonzero(codes >= 0)
            code = codes[position]
        member, owner = member[position], owner[position] * len(levels[-1]) + code
    size = int(np.prod([len(level) for level in levels], dtype=object))
    if size > MOST_GROUPS:
        raise ArgumentError(
            f"`by` = {chosen} spans {size:,} groups, more than {MOST_GROUPS:,}; group by fewer names or select "
            "with `where`"
        )
    total = len((selection.models if dims == MODEL else selection.cells).ravel())
    matrix = csr_array((np.ones(len(member)), (owner, member)), shape=(size, total))
    return Groups(tuple(chosen), tuple(levels), matrix)


_NOTHING = {
    "counters": 0.0,
    QUESTION_MOMENTS: 0.0,
    "status": np.uint8(Status.MISSING),
    SECOND: np.uint8(Status.MISSING),
    "planned_trials": np.int32(0),
    "planned_repeats": np.int32(0),
}
"""What stands in the arrays of cells that are not meant."""


def restrict(ds: DatasetT, where: Where | None) -> DatasetT:
    """Return the part of a dataset that fulfils all conditions.

    Models, tasks, positions of points and tiers of which nothing is left are removed. Other cells that are left out
    have no counters, outcomes, labels or tiers.

    Parameters
    ----------
    ds
        Dataset with the cube's coordinates, lazy or not.
    where
        Conditions, as for `aggregate`; None means none.

    Returns
    -------
    The smaller dataset, lazy where `ds` is; `ds` itself without a condition.

    Raises
    ------
    ValueError
        As `evalcube.stages.analyze.labelled.selection.select`.
    """
    if not where:
        return ds
    chosen = select(ds, where, keys(ds))
    used = {"task": _places(chosen.cells.any(axis=1)), "params": _places(chosen.cells.any(axis=0))}
    part = ds.isel({"model": _places(chosen.models), **used, "tier": list(chosen.tiers)})
    inside = variable(CELL, chosen.cells).isel(used)
    # Variables, and no arrays with all of the dataset's coordinates: pages ask for parts again and again.
    cells = {"in_tier": within(part.variables["in_tier"], inside, False)}
    if "cell_id" in part.coords:
        cells["cell_id"] = within(part.variables["cell_id"], inside, "")
    values = {key: within(part.variables[key], inside, none) for key, none in _NOTHING.items() if key in part}
    return part.assign_coords(cells).assign(values)


def _places(mask: NDArray[Any] | np.bool_) -> slice | NDArray[np.intp]:
    """Where something is kept; a slice where that is in one piece, which copies nothing."""
    indices = np.flatnonzero(mask)
    first, last = int(indices[0]), int(indices[-1]) + 1
    return slice(first, last) if last - first == len(indices) else indices


def within(values: Labelled, inside: Labelled, nothing: Any) -> Labelled:  # noqa: ANN401 - a value
    """Values of the cells that are meant; lazy if they are."""
    order = [dim for dim in values.dims if dim in CELL]
    shape = [size if dim in CELL else 1 for dim, size in zip(values.dims, values.shape, strict=True)]
    inner = np.where(inside.transpose(*order).values.reshape(shape), values.data, nothing)
    return variable(values.dims, inner.astype(values.dtype, copy=False), values.attrs)
