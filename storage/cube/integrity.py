"""Compares a region with its receipt: at a glance, or all of its content."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.group import heal
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.regions import Region, region_digest
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import CubeDamagedError

CONTENT = ""
"""In the place of an array's name where it is not known which array differs."""


class Recorded:
    """What the ledger of a cube that is read says to be there.

    Parameters
    ----------
    space
        Where the cube is.
    """

    def __init__(self, space: Space) -> None:
        self._cube = Cube(space, space.address, writable=False)
        with Ledger(self._cube.records) as ledger:
            self._receipts = ledger.newest()

    def refuse_lost(self, name: str, places: Sequence[NDArray[np.int64]]) -> None:
        """Refuse a trial array of which a recorded region's chunk is gone.

        Parameters
        ----------
        name
            Of the array.
        places
            What was read of it: indices along model, task, params, trial and repeat.

        Raises
        ------
        CubeDamagedError
            One is gone.
        """
        chunks = self._cube.chunks
        trials, repeats = (
            np.unique(part // chunks[dim]) for dim, part in zip(("trial", "repeat"), places[3:5], strict=True)
        )
        for place in product(places[0].tolist(), trials.tolist(), repeats.tolist()):
            receipt = self._receipts.get(Region(*place))
            if receipt is None:
                continue
            problems = self._cube.chunk_problems(receipt.region, self._cube.shape_of(receipt), [name])
            if name in problems:
                where, numbers = self._cube.space.address, "/".join(map(str, place))
                raise CubeDamagedError(
                    f"region {numbers}: array '{name}' {problems[name]}", where, heal(where)
                )


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
