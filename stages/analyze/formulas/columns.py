"""Takes one counter out of an array of counters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalcube.stages.analyze.formulas.arguments import items, reals
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COUNTERS


def column(counters: ArrayLike, label: str, labels: Sequence[str] = COUNTERS) -> NDArray[np.float64]:
    """One counter of a counters array (..., counter), as float64 of shape (...).

    Raises
    ------
    ValueError
        If the label is absent, or the labels do not fit the array's last axis.

    Examples
    --------
    >>> column([[8, 5], [4, 4]], "correct", ["trials", "correct"]).tolist()
    [5.0, 4.0]
    """
    array = reals(counters, "counters")
    names = [str(name) for name in items(labels, "labels", "the counters' names")]
    if array.ndim == 0 or array.shape[-1] != len(names):
        raise ArgumentError(
            f"`labels` names {len(names)} counters but `counters` has shape {array.shape}; its last axis "
            "must match"
        )
    if label not in names:
        raise ArgumentError(f"counter {label!r} is not among `labels` {names}; add it to the counters")
    return array[..., names.index(label)]
