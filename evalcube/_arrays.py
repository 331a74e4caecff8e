"""Labelled arrays in memory with what analyses use of xarray's, whose import takes longer than most of them do.

Analyses take these and xarray's alike: whatever asks for a dataset of xarray's gets it at the edge, by `as_xarray`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr


class LabelledArray(NamedTuple):
    """An array with the names of its dims; xarray takes it as one of its own, since it takes such tuples."""

    dims: tuple[str, ...]
    values: NDArray[Any]
    attrs: Mapping[str, Any] = {}

    @property
    def chunks(self) -> None:
        """None, as of xarray's in memory."""

    def __array__(self, *args: Any, **named: Any) -> NDArray[Any]:  # noqa: ANN401 - as numpy calls it
        return np.asarray(self.values, *args, **named)

    @property
    def data(self) -> NDArray[Any]:
        """The array."""
        return self.values

    @property
    def variable(self) -> Self:
        """Itself, as an array of a dataset has no coordinates here."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return self.values.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the array."""
        return self.values.dtype

    @property
    def sizes(self) -> dict[str, int]:
        """By dim."""
        return dict(zip(self.dims, self.values.shape, strict=True))

    def compute(self) -> Self:
        """Itself."""
        return self

    def transpose(self, *dims: Any, **_: object) -> LabelledArray:  # noqa: ANN401 - names, or an ellipsis for the others
        """With its dims in another order."""
        order = [
            dim
            for one in dims
            for dim in ([other for other in self.dims if other not in dims] if one is ... else [one])
        ]
        if sorted(order) != sorted(self.dims):
            raise ValueError(f"{order} must be the dims {self.dims} in some order")
        axes = [self.dims.index(dim) for dim in order]
        return LabelledArray(tuple(order), self.values.transpose(axes), self.attrs)

    def isel(self, places: Mapping[str, Any] | None = None, **named: Any) -> LabelledArray:  # noqa: ANN401 - any index
        """A part by numbers, lists or slices along dims; as of xarray's, in the same layout in memory."""
        chosen = {**(places or {}), **named}
        key = [chosen.get(dim, slice(None)) for dim in self.dims]
        dims = tuple(dim for dim, one in zip(self.dims, key, strict=True) if np.ndim(one) or _is_slice(one))
        if sum(not _is_slice(one) for one in key) > 1:  # along each dim by itself
            numbers = [
                np.atleast_1d(np.arange(size)[one]) for one, size in zip(key, self.values.shape, strict=True)
            ]
            found = self.values[np.ix_(*numbers)]
            return LabelledArray(
                dims,
                found.reshape([n for n, d in zip(found.shape, self.dims, strict=True) if d in dims]),
                self.attrs,
            )
        return LabelledArray(dims, self.values[tuple(key)], self.attrs)


def _is_slice(one: object) -> bool:
    return isinstance(one, slice)


class PlainDataset:
    """Variables by name, some of which label the others."""

    def __init__(
        self,
        data_vars: Mapping[str, Any] | None = None,
        coords: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        given = {**(data_vars or {}), **(coords or {})}
        self.variables = {name: LabelledArray(*one) for name, one in given.items()}
        self._labels = frozenset(coords or {})
        self.attrs = dict(attrs or {})
        self.encoding: dict[str, Any] = {}

    @property
    def coords(self) -> dict[str, LabelledArray]:
        """The labels."""
        return {name: one for name, one in self.variables.items() if name in self._labels}

    @property
    def data_vars(self) -> dict[str, LabelledArray]:
        """The others."""
        return {name: one for name, one in self.variables.items() if name not in self._labels}

    @property
    def sizes(self) -> dict[str, int]:
        """By dim."""
        return {dim: size for one in self.variables.values() for dim, size in one.sizes.items()}

    dims = sizes

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.data_vars)

    def __getitem__(self, name: str | Sequence[str]) -> Any:  # noqa: ANN401 - a variable, or some of them
        if not isinstance(name, str):
            chosen = {one: self.variables[one] for one in name}
            dims = {dim for one in chosen.values() for dim in one.dims}
            return self._with(
                chosen | {one: label for one, label in self.coords.items() if dims.issuperset(label.dims)},
                self._labels,
            )
        if name not in self.variables and name in self.sizes:
            return LabelledArray((name,), np.arange(self.sizes[name]))
        return self.variables[name]

    def __setitem__(self, name: str, value: LabelledArray) -> None:
        self.variables[name] = LabelledArray(*value)

    def _with(self, variables: Mapping[str, LabelledArray], labels: frozenset[str]) -> PlainDataset:
        found = PlainDataset(variables, None, self.attrs)
        found._labels, found.encoding = labels & variables.keys(), self.encoding
        return found

    def assign(
        self, found: Mapping[str, LabelledArray] | None = None, /, **named: LabelledArray
    ) -> PlainDataset:
        """With more variables, or others in their place."""
        return self._with({**self.variables, **(found or {}), **named}, self._labels)

    def assign_coords(
        self, found: Mapping[str, LabelledArray] | None = None, /, **named: LabelledArray
    ) -> PlainDataset:
        """With more labels, or others in their place."""
        more = {**(found or {}), **named}
        return self._with({**self.variables, **more}, self._labels | more.keys())

    def assign_attrs(self, found: Mapping[str, Any] | None = None, /, **named: object) -> PlainDataset:
        """With more attributes."""
        same = self._with(self.variables, self._labels)
        same.attrs |= {**(found or {}), **named}
        return same

    def drop_vars(self, names: str | Sequence[str], *, errors: str = "raise") -> PlainDataset:
        """Without some variables."""
        gone = {names} if isinstance(names, str) else set(names)
        if errors == "raise" and (unknown := gone - self.variables.keys()):
            raise ValueError(f"there are no variables {sorted(unknown)}")
        return self._with(
            {name: one for name, one in self.variables.items() if name not in gone}, self._labels
        )

    def isel(self, places: Mapping[str, Any] | None = None, **named: Any) -> PlainDataset:  # noqa: ANN401 - any index
        """A part by numbers, lists or slices along dims."""
        chosen = {**(places or {}), **named}
        return self._with({name: one.isel(chosen) for name, one in self.variables.items()}, self._labels)

    def compute(self) -> Self:
        """Itself."""
        return self


def is_lazy(data: object) -> bool:
    """Whether an array is one of Dask's, which is computed when it is asked for."""
    return hasattr(data, "chunks")


def variable(dims: Iterable[Hashable], data: Any, attrs: Mapping[Any, Any] | None = None) -> xr.Variable:  # noqa: ANN401
    """An array with the names of its dims, which has what analyses use of xarray's; one of these where it is lazy."""
    if not is_lazy(data):
        return cast("xr.Variable", LabelledArray(tuple(map(str, dims)), np.asarray(data), attrs or {}))
    import xarray as xr

    # On the fast path, as xarray imports Dask's arrays to look at the values.
    return xr.Variable(tuple(dims), data, attrs, fastpath=True)


def as_xarray(dataset: PlainDataset | xr.Dataset) -> xr.Dataset:
    """A dataset of xarray's with the same content; itself, if it is one."""
    if not isinstance(dataset, PlainDataset):
        return dataset
    import xarray as xr

    # On the fast path, as xarray imports Dask's arrays to look at the values; an index is none of them.
    # Texts as objects: older xarrays take numpy's `StringDType` for equal to nothing.
    found = {
        name: xr.Variable(one.dims, _as_objects(one.values), dict(one.attrs), fastpath=True)
        for name, one in dataset.variables.items()
    }
    labels = {name: found.pop(name) for name in dataset.coords}
    made = xr.Dataset(found, labels, dataset.attrs)
    made.encoding = dict(dataset.encoding)
    return made


def _as_objects(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(object) if isinstance(values.dtype, np.dtypes.StringDType) else values
