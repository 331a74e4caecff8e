"""What commands are asked for, as the library takes it: a part of a cube, and names in a list."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcube.flows.cubes.selection import Part


def part_of(
    where: Sequence[str] | None = None,
    view: str | None = None,
    trials: int | None = None,
    *,
    unique_only: bool = False,
    clip_tokens: int | None = None,
) -> Part:
    """The part of a cube that the options mean; what is asked of it will be computed in this process."""
    from evalcube.flows.cubes.selection import Part
    from evalcube.storage.cube.cube import Cube

    Cube.before_lazy = staticmethod(_compute_here)  # not now: many commands read counters only, without Dask
    return Part(tuple(where or ()), view, trials, unique_only, clip_tokens)


def _compute_here() -> None:
    """Have Dask compute with threads of this process."""
    import dask
    from dask.threaded import get

    # Where no scheduler is named, Dask imports distributed to look for a client: half a second for nothing.
    if "distributed" not in sys.modules:
        dask.config.set(scheduler=get)


def several(cubes: Sequence[str]) -> dict[str, list[str]]:
    """The cubes that a JSON document speaks of, where there is more than one."""
    return {"cubes": list(cubes)} if len(cubes) > 1 else {}


def cubes_and_models(first: str, others: Sequence[str]) -> tuple[list[str], list[str]]:
    """The addresses of cubes at the beginning of a command's arguments, and what comes after them.

    Parameters
    ----------
    first
        The first argument, which is a cube.
    others
        The others: of these as many as are cubes without a break.
    """
    cubes = [first]
    for text in others:
        if not _is_cube(text):
            break
        cubes.append(text)
    return cubes, list(others[len(cubes) - 1 :])


def _is_cube(text: str) -> bool:
    from evalcube.storage.cube.cube import Cube
    from evalcube.storage.errors import StorageError

    try:
        return Cube.exists(text) and bool(Cube.open(text).sizes)
    except StorageError:
        return False


def names_of(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
