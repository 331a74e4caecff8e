"""The arrays that all models of a cube share: counters, labels, plans, flags of repeated prompts.

The driver keeps them, or a task on its behalf; readers need no coordination.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalcube._arrays import Dataset, PlainDataset
from evalcube.storage.cube.group import CubeGroup, heal
from evalcube.storage.cube.schema import COUNTERS, DUPLICATE, LAYERS, PLANNED, VARIABLES
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import CubeDamagedError, CubeMismatchError, NotWritableError, guarded


class SharedArrays:
    """Small arrays of a cube; see `evalcube.storage.cube.cube.Cube`."""

    def __init__(self, space: Space, *, writable: bool) -> None:
        self.space = space
        """Where all of it is."""
        self._where = space.address
        self._writable = writable
        self.group = CubeGroup(space, writable=writable)
        """The cube's arrays as of the last `refresh`, for readers of single selections."""

    def write_counters(self, values: Mapping[int, NDArray[Any]]) -> None:
        """Write the counters of some models; on disk on return.

        Models share chunks, which are read, changed and written: **one task at a time may write counters**.
        Many models in one call cost one write per chunk.
        """
        self._need_writable("write")
        self._check_counters(values)
        models, step = self.group.sizes["model"], self.group.chunks(COUNTERS.name)[0]
        # One chunk at a time: a kill leaves whole chunks, and counters that are behind the ledger are summed again.
        for chunk in sorted({index // step for index in values}):
            rows = slice(chunk * step, min((chunk + 1) * step, models))
            by_row = {index - rows.start: array for index, array in values.items() if index // step == chunk}
            if len(by_row) == rows.stop - rows.start:
                block = np.stack([by_row[row] for row in range(len(by_row))])
            else:
                block = self.group.read(COUNTERS.name, (rows,))
                for row, array in by_row.items():
                    block[row] = array
            with guarded(self._where, "write counters"):
                self.space.sync(self.group.write_chunks((rows,), {COUNTERS.name: block}))

    @property
    def chunks_of_counters(self) -> int:
        """Models that share a chunk of the counters: written together, they cost one write."""
        return self.group.chunks(COUNTERS.name)[0]

    def read_counters(self) -> NDArray[np.float64]:
        """Counters of all models, float64 (model, task, params, counter)."""
        return self.group.read(COUNTERS.name, (slice(None),))

    def shared_problems(self) -> dict[str, str]:
        """What is wrong with the arrays that are no region's, labels included, by array; reads their chunks.

        Flags of repeated prompts may be missing, in whole chunks: see `unwritten_flags`.
        """
        # Small ones, but for the flags of repeated prompts, which are read chunk by chunk where they are used.
        names = [name for name in self.group.names() if name not in {*VARIABLES, *LAYERS}]
        return self.group.shared_problems(names)

    def has_label(self, name: str) -> bool:
        """Whether the cube has a coordinate."""
        return name in self.group.names()

    def label_problems(self, names: Iterable[str]) -> dict[str, str]:
        """What is wrong with the chunks of coordinates, by coordinate; with one that the cube is without, nothing."""
        return self.group.shared_problems(list(filter(self.has_label, names)))

    def metadata_problems(self) -> dict[str, str]:
        """What is wrong with the arrays' own metadata, by array: `restore_metadata` has them from the cube's."""
        with guarded(self._where, "read metadata"):
            return self.group.metadata_problems()

    def drop_chunks(self, name: str) -> None:
        """Delete the chunks of a shared array, which holds the fill then, to be written anew. For the driver only."""
        self._need_writable("repair")
        with guarded(self._where, f"clear {name}"):
            self.group.drop_chunks(name)

    def restore_metadata(self) -> list[str]:
        """Write the metadata of arrays anew whose own are gone, or not what the cube's say; names of these arrays."""
        self._need_writable("repair")
        with guarded(self._where, "write metadata"):
            return self.group.restore_metadata()

    def restore_index(self, name: str) -> None:
        """Write the index of trial or repeat anew, which counts its cells. For the driver only."""
        # First, since zarr would read a damaged chunk to keep what is beyond the array's end.
        self.drop_chunks(name)
        self.write_label(name, np.arange(*self.group.shape(name)))

    def read_label(self, name: str) -> NDArray[Any]:
        """Values of a coordinate."""
        if name not in self.group.names():
            raise self._mismatch(f"there is no coordinate `{name}`", "Give the name of one.")
        return self.group.read(name, (...,))

    def whole_label(self, name: str, values: NDArray[Any] | None = None) -> NDArray[Any]:
        """`read_label`, refused if it is gone: it is written when the cube is made, and reads as its fill then."""
        label = self.read_label(name) if values is None else values
        # Only one that is all fill can be gone: so nothing is asked of a store for the others.
        problem = None if label.astype(bool).any() else self.label_problems([name]).get(name)
        if problem is not None:
            raise CubeDamagedError(f"its label `{name}` {problem}", self._where, heal(self._where))
        return label

    def write_label(self, name: str, values: NDArray[Any]) -> None:
        """Replace a coordinate, such as a price that has changed. For the driver only; not for trial and repeat."""
        self._need_writable("label")
        if name not in self.group.names():
            raise self._mismatch(f"there is no coordinate `{name}`", "Give the name of one.")
        shape = self.group.shape(name)
        if shape != values.shape:
            raise self._mismatch(f"`{name}` has shape {shape}, got {values.shape}", "Give one value a label.")
        with guarded(self._where, f"write {name}"):
            self.space.sync(self.group.write_chunks((slice(None),) * values.ndim, {name: values}))

    def read_planned(self, dim: Literal["trial", "repeat"]) -> NDArray[np.int32]:
        """How many trials or repeats each cell is to be measured with, int32 (model, task, params)."""
        return self.group.read(PLANNED[f"planned_{dim}s"].name, (slice(None),))

    def read_targets(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """`read_planned` of trials and of repeats, at once."""
        targets = self.group.read_all({name: (slice(None),) for name in PLANNED})
        return targets["planned_trials"], targets["planned_repeats"]

    def write_planned(self, dim: Literal["trial", "repeat"], values: NDArray[Any]) -> None:
        """Replace the plan along one dim. For the driver only."""
        self._need_writable("plan")
        variable = PLANNED[f"planned_{dim}s"]
        problem = variable.problem(values, tuple(self.group.sizes[name] for name in variable.dims))
        if problem is None and (values < self.read_planned(dim)).any():
            problem = f"`{variable.name}` never shrinks"
        if problem:
            raise self._mismatch(problem, "Correct the array.")
        with guarded(self._where, f"write {variable.name}"):
            self.space.sync(self.group.write_chunks((slice(None),), {variable.name: values}))

    def read_duplicates(self, trials: slice = slice(None)) -> NDArray[np.uint8]:
        """Which prompts occurred before in their cell, uint8 (task, params, trial); 255 is unknown."""
        return self.group.read(DUPLICATE.name, (slice(None), slice(None), trials))

    def unwritten_flags(self) -> NDArray[np.bool_]:
        """Where no chunk of `read_duplicates` is, in its shape: in what has grown until prompts are compared there."""
        with guarded(self._where, "read duplicates"):
            return self.group.unwritten(DUPLICATE.name)

    def write_duplicates(self, task: int, flags: NDArray[Any]) -> None:
        """Replace the flags of one task, uint8 (params, trial). Only one writer of a task at a time."""
        self._need_writable("write")
        self.refresh()
        sizes, step = self.group.sizes, self.group.chunks(DUPLICATE.name)[2]
        problem = DUPLICATE.problem(flags, (sizes["params"], sizes["trial"]))
        if problem or not 0 <= task < sizes["task"]:
            problem = problem or f"there are {sizes['task']} tasks"
            raise self._mismatch(problem, "Correct the index or the array.")
        with guarded(self._where, "write duplicates"):
            files = []
            for start in range(0, sizes["trial"], step):
                part = flags[np.newaxis, :, start : start + step]
                where = (slice(task, task + 1), slice(None), slice(start, start + part.shape[2]))
                files += self.group.write_chunks(where, {DUPLICATE.name: part})
            self.space.sync(files)

    def _check_counters(self, values: Mapping[int, NDArray[Any]]) -> None:
        models, *shape = (self.group.sizes[dim] for dim in COUNTERS.dims)
        for index, array in values.items():
            problem = COUNTERS.problem(array, shape)
            if not 0 <= index < models:
                problem = f"there are {models} models"
            elif problem is None and not np.isfinite(array).all():
                problem = "`counters` must be finite"
            if problem:
                raise self._mismatch(
                    f"counters of model {index}: {problem}", "Correct the index or the array."
                )

    def refresh(self) -> None:
        """Follow a growth: a write with outdated sizes would set the cells of a grown chunk to missing."""
        if self.group.is_outdated:
            self.group = CubeGroup(self.space, writable=self._writable)

    def _need_writable(self, verb: str) -> None:
        if not self._writable:
            remedy = "Open it with writable=True."
            raise NotWritableError(f"cannot {verb}: the cube is open for reading", self._where, remedy)

    def _mismatch(self, what: str, remedy: str) -> CubeMismatchError:
        return CubeMismatchError(what, self._where, remedy)


def in_memory(group: CubeGroup) -> Dataset:
    """What a cube holds beside its trial arrays, in memory, without xarray."""
    labels, dims = group.labels, {name: group.dims(name) for name in group.names()}
    # Labels of single trials can be many, and say nothing of cells.
    many = {name for name in labels if "trial" in dims[name] and len(dims[name]) > 1}
    arrays = group.read_all({name: (...,) for name in dims if name not in {*group.trial_arrays, *many}})
    variables = {name: (dims[name], array, group.array_attrs(name)) for name, array in arrays.items()}
    coords = {name: variable for name, variable in variables.items() if name in labels}
    data = {name: variable for name, variable in variables.items() if name not in labels}
    return PlainDataset(data, coords, group.all_attrs)
