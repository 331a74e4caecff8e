"""A cube at an address: made, opened, grown, and written by whole regions.

Who may write what: the driver alone changes shapes (`Cube.create`, `Cube.grow`) and writes counters; a region is
written by the one task that owns it at the time. Readers need no coordination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product, starmap
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, DatasetT
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.growing import KEPT, Enlargement, Extension
from evalcube.storage.cube.layout import SIDE, Coordinate, builder, consolidate
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import Region, RegionShape, region_digest
from evalcube.storage.cube.schema import REGION_DIMS, SAID, Variable
from evalcube.storage.cube.shared_arrays import SharedArrays, in_memory
from evalcube.storage.cube.space import METADATA, Space
from evalcube.storage.errors import CubeDamagedError, NotWritableError, guarded
from evalcube.storage.urls import Address, plain_address

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Coordinate", "Cube", "Region", "region_digest"]

PUBLISHED = "published"
"""Attribute of a cube that was published: nobody writes into it any more."""
_NOTHING: Mapping[str, Any] = {}


class Cube(SharedArrays):
    """A cube at an address. Make one with `Cube.create` or `Cube.open`; threads may share it."""

    before_lazy: ClassVar[Callable[[], None]] = staticmethod(lambda: None)
    """Called before Dask is used: a command chooses who computes."""

    def __init__(self, space: Space, url: str, *, writable: bool) -> None:
        super().__init__(space, writable=writable)
        self.url = url
        """Where it was opened or created."""

    @classmethod
    def create(
        cls,
        url: Address,
        *,
        sizes: Mapping[str, int],
        chunks: Mapping[str, int],
        coordinates: Sequence[Coordinate],
        counters: Sequence[str],
        attrs: Mapping[str, object],
        layers: Sequence[str] = (),
        fill: Callable[[Cube], None] | None = None,
    ) -> Cube:
        """Make a cube; others see all of it or nothing, whenever this process is killed."""
        space = space_of(url)
        build = builder(space.address, sizes, chunks, coordinates, counters, attrs, layers)

        def assemble(draft: Space) -> None:
            build(draft.zarr())
            if fill is not None:
                fill(cls(draft, str(url), writable=True))

        with guarded(space.address, "create the cube"):
            space.assemble(assemble)
        return cls(space, str(url), writable=True)

    @classmethod
    def open(cls, url: Address, *, writable: bool = False) -> Cube:
        """Open a cube."""
        url = plain_address(url)
        space = space_of(url)
        can_write = space.is_writable()
        cube = cls(space, str(url), writable=writable and can_write)
        # Also where its files could be written: others have the published content by its digest.
        if writable and PUBLISHED in cube.attrs:
            remedy = f"Make a copy of your own: evalcube pull {url} DIRECTORY."
            raise NotWritableError("the cube is published, and stays as it is", space.address, remedy)
        if writable and not can_write:
            remedy = "Open it for reading, or copy it."
            raise NotWritableError("cannot open the cube for writing: it is read-only", space.address, remedy)
        return cube

    def remove(self) -> bool:
        """Remove it with all that it holds; returns whether that was possible. Only for a cube without a trial."""
        return self.space.remove()

    @staticmethod
    def exists(url: Address) -> bool:
        """Whether there is anything at an address, be it a cube or not."""
        return space_of(url).is_there()

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes given at creation, a copy."""
        return self.group.attrs

    @property
    def sizes(self) -> dict[str, int]:
        """Cells along each dim."""
        return dict(self.group.sizes)

    @property
    def chunks(self) -> dict[str, int]:
        """Cells of one region along trial and repeat."""
        _, _, _, trial, repeat = self.group.chunks("status")
        return {"trial": trial, "repeat": repeat}

    @property
    def trial_arrays(self) -> Mapping[str, Variable]:
        """The arrays of a region: those that every cube has, and the layers of this one."""
        return self.group.trial_arrays

    @property
    def records(self) -> Space:
        """Where ledger, lease and notes are: a space of its own inside the cube's."""
        return self.space.at(SIDE)

    def regions(self) -> Iterator[Region]:
        """Every region of the cube, in the order of models, trials, repeats."""
        chunks = self.chunks
        trials, repeats = (-(-self.group.sizes[dim] // chunks[dim]) for dim in ("trial", "repeat"))
        yield from starmap(Region, product(range(self.group.sizes["model"]), range(trials), range(repeats)))

    def region_shape(self, region: Region) -> tuple[int, int, int, int]:
        """Shape (task, params, trial, repeat) of a region's arrays; regions at an edge are smaller."""
        *_, trials, repeats = self._slices(region)
        sizes = self.group.sizes
        return sizes["task"], sizes["params"], trials.stop - trials.start, repeats.stop - repeats.start

    def write_region(
        self, region: Region, arrays: Mapping[str, NDArray[Any]], check: Callable[[], None] = lambda: None
    ) -> str:
        """Write whole chunks of every trial array, status last; on disk on return.

        May be repeated, each time more complete. Only one task at a time may own a region.
        """
        self._need_writable("write")
        self.refresh()
        selection = self._slices(region)
        schema, shape = self.trial_arrays, self.region_shape(region)
        # What the writer does not report is written as the fill: a chunk of an earlier generation must not stay under
        # the new receipt.
        reported = [name for name in SAID if name in schema]
        silent = {name: np.full(shape, schema[name].fill, schema[name].dtype) for name in reported}
        arrays = silent | {
            name: array for name, array in arrays.items() if name in schema or name not in SAID
        }
        self._check_region(region, arrays)
        if self.space.is_object_store:
            # The versions are noted before the lease is asked for: whoever takes over in between changes one of them,
            # and the put is refused.
            self.group.fence(list(self.trial_arrays), selection)
            check()
        with guarded(self._where, f"write {region}"):
            keys = []
            # Status in a write of its own, after the others: no reader, and no kill, finds an outcome without its
            # values.
            for _, names in groupby(schema, lambda name: (name == "status", schema[name].sparse)):
                block = {name: arrays[name][np.newaxis] for name in names}
                keys += self.group.write_chunks(selection, block)
            # Before the caller writes a receipt, which must not outlive a power cut that took its chunks.
            self.space.sync(keys)
        return region_digest(arrays)

    def read_region(self, region: Region, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Arrays of one region, each of shape `region_shape`; cells hold the fill where nobody wrote what they hold."""
        variables = self.trial_arrays
        wanted = variables if names is None else list(names)
        if unknown := sorted(set(wanted) - set(variables)):
            raise self._mismatch(f"unknown arrays {unknown}", f"Known are {list(variables)}.")
        *_, trials, repeats = self._slices(region)
        return self.read_span(region.model, trials, repeats, wanted)

    def stored_arrays(self, region: Region, names: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Arrays of one region as they are stored, whatever they hold, without those that cannot be decoded."""
        arrays, _ = self.group.attempt(dict.fromkeys(names, self._slices(region)))
        return {name: values[0] for name, values in arrays.items()}

    def read_span(
        self, model: int, trials: slice, repeats: slice, names: Iterable[str]
    ) -> dict[str, NDArray[Any]]:
        """Arrays of one model over a span of trials and repeats, each of shape (task, params, trial, repeat).

        Many regions are sooner read this way than one by one.
        """
        selection = (slice(model, model + 1), slice(None), slice(None), trials, repeats)
        variables = self.trial_arrays
        arrays = self.group.read_all(dict.fromkeys(names, selection))
        return {name: variables[name].as_read(values[0]) for name, values in arrays.items()}

    def chunk_problems(
        self, region: Region, shape: RegionShape | None = None, names: Sequence[str] | None = None
    ) -> dict[str, str]:
        """What is wrong with the chunks of a region, by array, without decoding them: gone, or cut off."""
        self._slices(region)
        return self.group.region_problems(region, shape or self.shapes[-1], names)

    def apparent_problems(self, region: Region, shape: RegionShape | None = None) -> dict[str, str]:
        """`chunk_problems`, as far as looking costs nothing to speak of: nothing where the store keeps what it has."""
        return {} if self.space.is_object_store else self.chunk_problems(region, shape)

    @property
    def is_object_store(self) -> bool:
        """Whether the store itself keeps what was written whole, so that no file has to be compared."""
        return self.space.is_object_store

    def summary(self) -> Dataset:
        """What the cube holds beside its trial arrays, in memory: counters, plan, repeated prompts, labels of cells."""
        self.refresh()
        return self._check_labels(in_memory(self.group))

    def dataset(self) -> xr.Dataset:
        """The cube as a lazy dataset, one Dask chunk per stored chunk.

        Read through the consolidated metadata, which a growth renews in one step: a reader beside a running
        sweep sees the cube before or after it. Whatever computes with a chunk that cannot be decoded, or was recorded
        and is gone, gets a `CubeDamagedError`, which names the array.
        """
        from evalcube.storage.cube.integrity import lazy_dataset

        Cube.before_lazy()
        self.refresh()
        # A recipe, not this object: workers open the cube by themselves, each once.
        opened = partial(Cube, self.space, self.space.address, writable=False)
        return self._check_labels(lazy_dataset(self, opened))

    def load(self) -> Dataset:
        """As `dataset`, in memory and without xarray: of a small cube, which is read sooner than Dask is told to."""
        from evalcube.storage.cube.integrity import whole_dataset

        self.refresh()
        return self._check_labels(whole_dataset(self))

    def _check_labels(self, dataset: DatasetT) -> DatasetT:
        """Return the dataset; raise CubeDamagedError if a label is gone."""
        for name, label in dataset.coords.items():
            self.whole_label(str(name), label.values)
        return dataset

    def grow(self, *, trial: int | None = None, repeat: int | None = None) -> None:
        """Enlarge the cube; cells that exist keep their bits, new ones are missing. For the driver only.

        After a kill the cube is the old or the new one. Repeating a finished growth changes nothing. Other open `Cube`
        objects take up the new sizes at their next write.
        """
        self._need_writable("grow")
        self.refresh()
        sizes = {dim: size for dim, size in (("trial", trial), ("repeat", repeat)) if size is not None}
        attrs = {dim: self.group.array_attrs(dim) for dim in sizes}
        indexes = [Coordinate(dim, (dim,), np.arange(n), attrs[dim]) for dim, n in sizes.items()]
        layers = [variable.name for variable in self.group.layers]
        self._extend(Enlargement(sizes, indexes, {}, layers, {}))

    def extend(
        self,
        *,
        sizes: Mapping[str, int],
        coordinates: Sequence[Coordinate],
        attrs: Mapping[str, object],
        layers: Sequence[str] = (),
        shared: Mapping[str, NDArray[Any]] = _NOTHING,
    ) -> None:
        """Enlarge the cube along other dims than trial and repeat, with new labels and attributes: all or nothing.

        Cells that exist keep their bits, new ones are missing, uncounted and unplanned. No chunk of a trial array is
        written, and receipts stay true. After a kill the cube is the old or the new one.
        """
        self._need_writable("grow")
        self.refresh()
        growing_labels = [coordinate for coordinate in coordinates if coordinate.name not in KEPT]
        self._extend(Enlargement(sizes, growing_labels, attrs, layers, shared))

    def _extend(self, growth: Enlargement) -> None:
        with guarded(self._where, "grow the cube"):
            # Without consolidated metadata there is no object whose replacement could commit the growth.
            if not self.group.consolidated:
                consolidate(self.space.zarr())
                self.space.sync([METADATA])
                self.refresh()
            extension = Extension(self.space, self.group, growth)
            if extension.changes:
                extension.write()
        self.refresh()

    @property
    def shapes(self) -> Sequence[RegionShape]:
        """What regions consisted of when the cube was made and after each growth that changed it; the last is today's.

        A receipt names one of them by its number.
        """
        return self.group.shapes

    @property
    def shape_number(self) -> int:
        """Number of the shape that regions have today."""
        return len(self.group.shapes) - 1

    def shape_of(self, receipt: Receipt) -> RegionShape:
        """What a region consisted of when it was recorded."""
        if receipt.shape >= len(self.group.shapes):
            rule = f"its ledger speaks of {receipt.shape} growths, and its zarr.json of {self.shape_number}"
            raise CubeDamagedError(rule, self._where, "Take both from the same copy of the cube.")
        return self.group.shapes[receipt.shape]

    def sweep(self, older_than: float = 3600.0, *, delete: bool = True) -> int:
        """Remove, or count, temporary files that killed writers left."""
        if delete:
            self._need_writable("sweep")
        names = [*self.group.names(), SIDE]
        with guarded(self._where, "sweep temporary files"):
            return self.space.sweep(names, older_than, delete=delete)

    def _slices(self, region: Region) -> tuple[slice, slice, slice, slice, slice]:
        """The region's cells in a trial array."""
        chunks, sizes = self.chunks, self.group.sizes
        every = slice(None)
        spans = [slice(region.model, region.model + 1), every, every]
        outside = not 0 <= region.model < sizes["model"]
        for dim, index in (("trial", region.trial), ("repeat", region.repeat)):
            start = index * chunks[dim]
            outside |= not 0 <= start < sizes[dim]
            spans.append(slice(start, min(start + chunks[dim], sizes[dim])))
        if outside:
            extent = {dim: sizes[dim] for dim in ("model", "trial", "repeat")}
            problem = f"{region} is outside of the cube with {extent} in chunks {chunks}"
            raise self._mismatch(problem, "Take regions from `Cube.regions`, or grow the cube first.")
        return spans[0], spans[1], spans[2], spans[3], spans[4]

    def _check_region(self, region: Region, arrays: Mapping[str, NDArray[Any]]) -> None:
        variables, shape = self.trial_arrays, self.region_shape(region)
        problem: str | None = None
        if set(arrays) != set(variables):
            missing, unknown = sorted(set(variables) - set(arrays)), sorted(set(arrays) - set(variables))
            problem = f"arrays missing {missing}, unknown {unknown}"
        for name, variable in variables.items():
            more = (self.group.sizes[dim] for dim in variable.dims[len(REGION_DIMS) + 1 :])
            problem = problem or variable.problem(arrays[name], (*shape, *more))
        if problem:
            remedy = f"A region is written whole: every trial array, dims {REGION_DIMS}."
            raise self._mismatch(f"{region}: {problem}", remedy)
