"""The arrays that all models of a cube share, joined from several cubes: plans and flags of repeated prompts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evalcube.flows.merge.inputs import Input
from evalcube.flows.merge.overlay import Array
from evalcube.flows.merge.union import Place
from evalcube.storage.cube.schema import DUPLICATE

_UNKNOWN = int(DUPLICATE.fill)


def planned_of(one: Input, place: Place, shape: tuple[int, int, int]) -> Array:
    """How many trials and repeats a cube plans, int32 (2, model, cell) of the union.

    Parameters
    ----------
    one
        The cube.
    place
        Where it stands in the union.
    shape
        Models, tasks and slots of the union.
    """
    mine, theirs = one.cells(place, shape[2])
    found = np.zeros((2, shape[0], shape[1] * shape[2]), dtype=np.int32)
    for row, target in enumerate(place.models):
        if target >= 0:
            found[0, target, theirs] = one.planned.trials[row].reshape(-1)[mine]
            found[1, target, theirs] = one.planned.repeats[row].reshape(-1)[mine]
    return found


def joined_duplicates(
    inputs: Sequence[Input], places: Sequence[Place], shape: tuple[int, int, int]
) -> tuple[npt.NDArray[np.uint8], list[tuple[int, int]]]:
    """Which prompts occurred before in their cell, as any of the cubes knows.

    Parameters
    ----------
    inputs, places
        The cubes, and where each stands in the union.
    shape
        Tasks, slots and trials of the union.

    Returns
    -------
    ndarray
        uint8 (task, params, trial); 255 where no cube knows.
    list
        Tasks and slots of which two cubes say different things. A cell's prompts are the same in both, so that one of
        them is wrong: nothing is known of the cell then, and the next run compares its prompts.
    """
    flags = np.full((shape[0] * shape[1], shape[2]), _UNKNOWN, dtype=np.uint8)
    wrong = np.zeros(len(flags), dtype=bool)
    for one, place in zip(inputs, places, strict=True):
        mine, theirs = one.cells(place, shape[1])
        values = one.cube.read_duplicates().reshape(-1, one.cube.sizes["trial"])[mine, : shape[2]]
        known = flags[theirs, : values.shape[1]]
        wrong[theirs] |= ((known != _UNKNOWN) & (values != _UNKNOWN) & (known != values)).any(axis=1)
        flags[theirs, : values.shape[1]] = np.where(known == _UNKNOWN, values, known)
    flags[wrong] = _UNKNOWN
    cells = [(int(cell) // shape[1], int(cell) % shape[1]) for cell in np.flatnonzero(wrong)]
    return flags.reshape(shape), cells
