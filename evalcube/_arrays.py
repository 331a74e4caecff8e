"""Labelled arrays: what analyses use of them, and arrays in memory that have it without xarray's slow import.

Analyses take `Dataset` and `Labelled`, which xarray's objects fulfil as ours do; what needs more of xarray asks for it
by `as_xarray`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr


class Labelled(Protocol):
    """An array with the names of its dims: xarray's Variable and DataArray, and `LabelledArray`."""

    @property
    def dims(self) -> tuple[Any, ...]:
        """Names of its dims."""

    @property
    def values(self) -> NDArray[Any]:
        """The array in memory."""

    @property
    def data(self) -> Any:  # noqa: ANN401 - numpy's or Dask's
        """The array."""

    @property
    def attrs(self) -> Mapping[Any, Any]:
        """What it says of itself."""

    @property
    def chunks(self) -> object:
        """Those of an array of Dask's; None in memory."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""

    @property
    def ndim(self) -> int:
        """Number of dims."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the array."""

    @property
    def sizes(self) -> Mapping[Any, int]:
        """By dim."""

    def compute(self) -> Self:
        """In memory."""

    def transpose(self, *dim: Any) -> Self:  # noqa: ANN401 - names, or an ellipsis for the others
        """With its dims in another order."""

    def isel(self, indexers: Mapping[Any, Any] | None = None, /, **named: Any) -> Self:  # noqa: ANN401 - any index
        """A part by numbers, lists or slices along dims."""


class Entry(Labelled, Protocol):
    """An array of a dataset, which may have labels: xarray's DataArray, and `LabelledArray`."""

    @property
    def variable(self) -> Labelled:
        """The array without them."""


class Dataset(Protocol):
    """Arrays by name, some of which label the others: xarray's Dataset, and `PlainDataset`."""

    attrs: Any
    encoding: Any

    @property
    def variables(self) -> Mapping[Any, Labelled]:
        """All of its arrays."""

    @property
    def coords(self) -> Mapping[Any, Entry]:
        """The labels."""

    @property
    def data_vars(self) -> Mapping[Any, Entry]:
        """The others."""

    @property
    def sizes(self) -> Mapping[Any, int]:
        """By dim."""

    def __contains__(self, name: object, /) -> bool: ...

    def __iter__(self) -> Iterator[Any]: ...

    @overload
    def __getitem__(self, name: str, /) -> Entry: ...

    @overload
    def __getitem__(self, name: list[Any], /) -> Self: ...

    def assign(self, variables: Mapping[Any, Any] | None = None, /, **named: Any) -> Self:  # noqa: ANN401 - arrays
        """With more arrays, or others in their place."""

    def assign_coords(self, coords: Mapping[Any, Any] | None = None, /, **named: Any) -> Self:  # noqa: ANN401 - arrays
        """With more labels, or others in their place."""

    def assign_attrs(self, attrs: Mapping[Any, Any] = ..., /, **named: Any) -> Self:  # noqa: ANN401 - any value
        """With more attributes."""

    def drop_vars(self, names: Any, *, errors: Literal["raise", "ignore"] = "raise") -> Self:  # noqa: ANN401 - one or some
        """Without some arrays."""

    def isel(self, indexers: Mapping[Any, Any] | None = None, /, **named: Any) -> Self:  # noqa: ANN401 - any index
        """A part by numbers, lists or slices along dims."""

    def compute(self) -> Self:
        """In memory."""


DatasetT = TypeVar("DatasetT", bound=Dataset)


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

    def transpose(self, *dim: Any) -> LabelledArray:  # noqa: ANN401 - names, or an ellipsis for the others
        """With its dims in another order."""
        unnamed = [name for name in self.dims if name not in dim]
        order = [name for item in dim for name in (unnamed if item is ... else [item])]
        if sorted(order) != sorted(self.dims):
            raise ValueError(f"{order} must be the dims {self.dims} in some order")
        axes = [self.dims.index(name) for name in order]
        return LabelledArray(tuple(order), self.values.transpose(axes), self.attrs)

    def isel(self, indexers: Mapping[Any, Any] | None = None, /, **named: Any) -> LabelledArray:  # noqa: ANN401 - any index
        """A part by numbers, lists or slices along dims; as of xarray's, in the same layout in memory."""
        chosen = {**(indexers or {}), **named}
        key = [chosen.get(dim, slice(None)) for dim in self.dims]
        dims = tuple(
            dim for dim, index in zip(self.dims, key, strict=True) if np.ndim(index) or _is_slice(index)
        )
        if sum(not _is_slice(index) for index in key) > 1:  # along each dim by itself
            numbers = [
                np.atleast_1d(np.arange(size)[index])
                for index, size in zip(key, self.values.shape, strict=True)
            ]
            part = self.values[np.ix_(*numbers)]
            shape = [size for size, dim in zip(part.shape, self.dims, strict=True) if dim in dims]
            return LabelledArray(dims, part.reshape(shape), self.attrs)
        return LabelledArray(dims, self.values[tuple(key)], self.attrs)


def _is_slice(index: object) -> bool:
    return isinstance(index, slice)


class PlainDataset:
    """Variables by name, some of which label the others."""

    def __init__(
        self,
        data_vars: Mapping[str, Any] | None = None,
        coords: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        arrays = {**(data_vars or {}), **(coords or {})}
        self.variables = {name: LabelledArray(*array) for name, array in arrays.items()}
        self._labels = frozenset(coords or {})
        self.attrs = dict(attrs or {})
        self.encoding: dict[str, Any] = {}

    @property
    def coords(self) -> dict[str, LabelledArray]:
        """The labels."""
        return {name: array for name, array in self.variables.items() if name in self._labels}

    @property
    def data_vars(self) -> dict[str, LabelledArray]:
        """The others."""
        return {name: array for name, array in self.variables.items() if name not in self._labels}

    @property
    def sizes(self) -> dict[str, int]:
        """By dim."""
        return {dim: size for array in self.variables.values() for dim, size in array.sizes.items()}

    dims = sizes

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.data_vars)

    @overload
    def __getitem__(self, name: str) -> LabelledArray: ...

    @overload
    def __getitem__(self, name: list[str]) -> PlainDataset: ...

    def __getitem__(self, name: str | list[str]) -> LabelledArray | PlainDataset:
        if not isinstance(name, str):
            chosen = {item: self.variables[item] for item in name}
            dims = {dim for array in chosen.values() for dim in array.dims}
            labels = {item: label for item, label in self.coords.items() if dims.issuperset(label.dims)}
            return self._with(chosen | labels, self._labels)
        if name not in self.variables and name in self.sizes:
            return LabelledArray((name,), np.arange(self.sizes[name]))
        return self.variables[name]

    def __setitem__(self, name: str, value: LabelledArray) -> None:
        self.variables[name] = LabelledArray(*value)

    def _with(self, variables: Mapping[str, Any], labels: frozenset[str]) -> PlainDataset:
        changed = PlainDataset(variables, None, self.attrs)
        changed._labels, changed.encoding = labels & variables.keys(), self.encoding
        return changed

    def assign(self, variables: Mapping[Any, Any] | None = None, /, **named: Any) -> PlainDataset:  # noqa: ANN401 - arrays
        """With more variables, or others in their place."""
        return self._with({**self.variables, **(variables or {}), **named}, self._labels)

    def assign_coords(self, coords: Mapping[Any, Any] | None = None, /, **named: Any) -> PlainDataset:  # noqa: ANN401 - arrays
        """With more labels, or others in their place."""
        more = {**(coords or {}), **named}
        return self._with({**self.variables, **more}, self._labels | more.keys())

    def assign_attrs(self, attrs: Mapping[Any, Any] | None = None, /, **named: Any) -> PlainDataset:  # noqa: ANN401 - any value
        """With more attributes."""
        same = self._with(self.variables, self._labels)
        same.attrs |= {**(attrs or {}), **named}
        return same

    def drop_vars(
        self, names: str | Iterable[str], *, errors: Literal["raise", "ignore"] = "raise"
    ) -> PlainDataset:
        """Without some variables."""
        gone = {names} if isinstance(names, str) else set(names)
        if errors == "raise" and (unknown := gone - self.variables.keys()):
            raise ValueError(f"there are no variables {sorted(unknown)}")
        return self._with(
            {name: array for name, array in self.variables.items() if name not in gone}, self._labels
        )

    def isel(self, indexers: Mapping[Any, Any] | None = None, /, **named: Any) -> PlainDataset:  # noqa: ANN401 - any index
        """A part by numbers, lists or slices along dims."""
        chosen = {**(indexers or {}), **named}
        return self._with({name: array.isel(chosen) for name, array in self.variables.items()}, self._labels)

    def compute(self) -> Self:
        """Itself."""
        return self


def is_lazy(data: object) -> bool:
    """Whether an array is one of Dask's, which is computed when it is asked for."""
    return hasattr(data, "chunks")


def variable(dims: Iterable[Hashable], data: Any, attrs: Mapping[Any, Any] | None = None) -> Labelled:  # noqa: ANN401
    """Return an array with the names of its dims; one of xarray's where it is lazy."""
    if not is_lazy(data):
        return LabelledArray(tuple(map(str, dims)), np.asarray(data), attrs or {})
    import xarray as xr

    # On the fast path, as xarray imports Dask's arrays to look at the values.
    return xr.Variable(tuple(dims), data, attrs, fastpath=True)


def dataset_like(
    ds: DatasetT, data_vars: Mapping[Any, Any], coords: Mapping[Any, Any] | None = None
) -> DatasetT:
    """Return a dataset of the same kind with nothing but these arrays and labels."""
    empty = ds.drop_vars(list(ds.variables))
    empty.attrs, empty.encoding = {}, {}
    return empty.assign(data_vars).assign_coords(coords)


def as_xarray(dataset: Dataset) -> xr.Dataset:
    """Return a dataset of xarray's with the same content; itself, if it is one."""
    import xarray as xr

    if isinstance(dataset, xr.Dataset):
        return dataset
    # On the fast path, as xarray imports Dask's arrays to look at the values; an index is none of them.
    # Texts as objects: older xarrays take numpy's `StringDType` for equal to nothing.
    arrays = {
        name: xr.Variable(array.dims, _as_objects(array.values), dict(array.attrs), fastpath=True)
        for name, array in dataset.variables.items()
    }
    labels = {name: arrays.pop(name) for name in dataset.coords}
    converted = xr.Dataset(arrays, labels, dataset.attrs)
    converted.encoding = dict(dataset.encoding)
    return converted


def _as_objects(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(object) if isinstance(values.dtype, np.dtypes.StringDType) else values
