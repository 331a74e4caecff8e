"""The one noun of all readers: a cube by its address, as a dataset, as what a function returned, or several of them.

`name` is everywhere the caller's parameter that has it, for messages.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError, WrongTypeError, told
from evalcube.storage.errors import StorageError
from evalcube.storage.urls import absolute, plain_address, redacted

if TYPE_CHECKING:
    import xarray as xr
    from typing_extensions import TypeIs

    from evalcube._arrays import Dataset, DatasetT
    from evalcube.flows.plan.plan import Plan
    from evalcube.storage.cube.cube import Cube

OneCube: TypeAlias = "str | os.PathLike[str] | xr.Dataset"
"""A cube: its address, a dataset of `evalcube.open_cube`, or what a function returned that made or filled it."""
CubeLike: TypeAlias = "OneCube | Sequence[OneCube]"
"""What every reader takes: a cube, or several in a list, which are read as if merged."""

SMALL = 2**24
"""Bytes of trial arrays that are read at once: sooner than those that are needed, as tasks of Dask's."""
_DIMS = ("model", "task", "params", "trial", "repeat")
_FORMS = "Give an address, a dataset of open_cube, what made or filled a cube as it was returned, or several in a list"


def is_dataset(cube: object) -> TypeIs[xr.Dataset]:
    """Whether something is a dataset of xarray's, which is not imported for the question."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(cube, xarray.Dataset)


def listed(cube: object, name: str = "cube") -> Sequence[str | Path | xr.Dataset]:
    """The cubes that are meant: an address or a dataset, or the addresses of several, each once."""
    if is_dataset(cube):
        return [cube]
    if isinstance(cube, str | os.PathLike):
        return [plain_address(cube)]
    if isinstance(cube, bytes) or not isinstance(cube, Iterable) or hasattr(cube, "dims"):
        raise WrongTypeError(f"`{name}`: {told(cube)} is no cube", _FORMS)
    several = list(cube)
    for entry in several:
        if not (is_dataset(entry) or isinstance(entry, str | os.PathLike)):
            raise WrongTypeError(f"`{name}`: {told(entry)} in the list is no cube", _FORMS)
    if not several:
        raise SweepError(f"`{name}`: no cube is named", "Give one or more")
    if len(several) == 1:
        return [several[0] if is_dataset(several[0]) else plain_address(several[0])]
    addresses = [_whole(entry, name) if is_dataset(entry) else plain_address(entry) for entry in several]
    return [*{absolute(entry): entry for entry in reversed(addresses)}.values()][::-1]


def need_addresses(cube: object, name: str = "cube") -> list[str | Path]:
    """Addresses of one whole cube or several; refuses what `listed` does, and a dataset that is no whole cube."""
    return [_whole(entry, name) if is_dataset(entry) else entry for entry in listed(cube, name)]


def need_address(cube: object, name: str = "cube") -> str | Path:
    """The address of one whole cube; refuses what `need_addresses` does, and several."""
    return need_addresses(only(cube, name), name)[0]


def only(cube: object, name: str = "cube") -> str | Path | xr.Dataset:
    """The one cube that is meant; refuses what `listed` does, and several."""
    cubes = listed(cube, name)
    if len(cubes) > 1:
        raise SweepError(
            f"`{name}`: {len(cubes)} cubes are given where one is meant",
            "Give one of them, or make one of them all with merge",
        )
    return cubes[0]


def source_of(dataset: xr.Dataset, name: str = "cube") -> str:
    """Address of the cube that a dataset was opened from."""
    source = dataset.encoding.get("source")
    if not isinstance(source, str):
        raise SweepError(
            f"`{name}`: the dataset does not tell the address of one cube, and more than its arrays is needed",
            "Give the address; open_cube and what only selects keep it, in encoding['source']",
        )
    return source


def _whole(dataset: xr.Dataset, name: str) -> str:
    source = source_of(dataset, name)
    from evalcube.storage.cube.cube import Cube

    cube = Cube.open(source)
    if cube_behind(dataset) is None or uneven_dims(dataset, cube):
        raise SweepError(
            f"`{name}`: the dataset is not all of cube '{redacted(source)}', which is what is needed",
            "Give the cube's address; where a part can be meant, `where` says which",
        )
    return source


def need_arrays(dataset: DatasetT) -> DatasetT:
    """The dataset, with what analyses need."""
    lacking = [name for name in (*_DIMS, "tier") if not dataset.sizes.get(name)]
    lacking += [name for name in ("counters", "in_tier") if name not in dataset.variables]
    if lacking:
        raise SweepError(
            f"`cube`: the dataset lacks {', '.join(lacking)}, which analyses of cubes need",
            "Select with lists, such as isel(model=[0]), something that is there, and keep the arrays",
        )
    return dataset


def uneven_dims(dataset: Dataset, cube: Cube | None) -> list[str]:
    """Dimensions along which a dataset has less of its cube than all of it, or more."""
    sizes = {} if cube is None else cube.sizes
    return [dim for dim in _DIMS if dim in sizes and dataset.sizes.get(dim) != sizes[dim]]


def cube_behind(dataset: Dataset) -> Cube | None:
    """The cube that a dataset or a part of it was opened from, with its records; None if it does not tell."""
    source = dataset.encoding.get("source")
    if not isinstance(source, str) or "eval_id" not in dataset.coords:
        return None
    from evalcube.storage.cube.cube import Cube

    try:
        cube = Cube.open(source)
        ids = {str(eval_id) for eval_id in cube.read_label("eval_id")}
    except StorageError:
        # What is written to another file, or a cube that is gone: the arrays are all there is.
        return None
    return cube if ids.issuperset(map(str, dataset["eval_id"].values.ravel())) else None


@dataclass(frozen=True)
class Selected:
    """What a dataset has of its cube, by identity."""

    evaluations: frozenset[str]
    """Ids."""
    points: frozenset[tuple[str, str]]
    """Labels of tasks, and ids of cells."""
    trials: tuple[int, ...]
    repeats: tuple[int, ...]

    def of_models(self, plan: Plan) -> npt.NDArray[np.bool_]:
        """Which evaluations of the cube's plan it has."""
        return np.array([row.eval_id in self.evaluations for row in plan.evaluations], dtype=bool)

    def of_points(self, plan: Plan) -> npt.NDArray[np.bool_]:
        """Which points of the cube's plan it has, shape (task, params)."""
        mask = np.zeros((len(plan.tasks), plan.slots), dtype=bool)
        for row, task in zip(mask, plan.tasks, strict=True):
            row[: len(task.cells)] = [(task.label, planned.cell.id) in self.points for planned in task.cells]
        return mask

    def of_numbers(self, trials: slice, repeats: slice) -> npt.NDArray[np.bool_]:
        """Which of some trials and repeats it has, shape (trial, repeat)."""
        trial = np.isin(np.arange(trials.start, trials.stop), self.trials)
        return np.asarray(trial[:, None] & np.isin(np.arange(repeats.start, repeats.stop), self.repeats))


def address_and_part(cube: object) -> tuple[str | Path, Selected | None]:
    """The address of one cube, and which part of it a dataset has; None without a dataset."""
    entry = only(cube)
    if not is_dataset(entry):
        return entry, None
    source = source_of(entry)
    lacking = [
        label for label in ("eval_id", "task", "cell_id", "trial", "repeat") if label not in entry.coords
    ]
    if lacking or cube_behind(entry) is None:
        why = f"it lacks {', '.join(lacking)}" if lacking else "the cube lacks some of its evaluations"
        raise SweepError(
            f"`cube`: the dataset does not tell which part of cube '{redacted(source)}' it is: {why}",
            "Give the cube's address, and conditions in `where`",
        )
    return source, _select(entry)


def _select(dataset: xr.Dataset) -> Selected:
    import xarray as xr

    def values(label: Any) -> list[Any]:  # noqa: ANN401 - an array of xarray's
        return list(label.values.ravel().tolist())

    tasks, cells = xr.broadcast(dataset["task"], dataset["cell_id"])
    return Selected(
        frozenset(map(str, values(dataset["eval_id"]))),
        frozenset(zip(map(str, values(tasks)), map(str, values(cells)), strict=True)),
        tuple(sorted(values(dataset["trial"]))),
        tuple(sorted(values(dataset["repeat"]))),
    )
