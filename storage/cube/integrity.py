"""Compares a region with its receipt: at a glance, or all of its content."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import region_digest
from evalcube.storage.errors import CubeDamagedError

CONTENT = ""
"""In the place of an array's name where it is not known which array differs."""


def stored_problems(cube: Cube, receipt: Receipt) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """What is wrong with a recorded region, by array, and its arrays as far as they can be decoded.

    Parameters
    ----------
    cube
        The cube.
    receipt
        The region's newest receipt.

    Returns
    -------
    dict
        A few words by array; under `CONTENT` if all can be decoded and something differs from what was recorded.
        Digests leave ``latency`` out, which differs between equal runs: for it, the chunk's own checksum has to do.
    dict
        The arrays, shaped as the cube is now.
    """
    shape = cube.shape_of(receipt)
    problems, arrays = cube.chunk_problems(receipt.region, shape), {}
    for name, variable in cube.trial_arrays.items():
        if name in problems:
            continue
        try:
            arrays.update(cube.read_region(receipt.region, [name]))
        except CubeDamagedError:
            problems[name] = "cannot be decoded"
            continue
        if variable.allowed and not np.isin(arrays[name], variable.allowed).all():
            problems[name] = "holds values that nobody writes"
    if (
        not problems
        and region_digest(shape.cropped(arrays, receipt.trials, receipt.repeats)) != receipt.digest
    ):
        problems[CONTENT] = "is not what was recorded"
    return problems, arrays
