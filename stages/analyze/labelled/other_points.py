"""Which evaluations of a dataset were asked other points than most of them, and which ones, in words.

A cube may hold what several configs asked for. An evaluation that was asked other questions than the others is not
compared with them by a mean over all of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.labelled.axes import plain


def other_points(planned: NDArray[np.bool_], tasks: Sequence[str]) -> list[str]:
    """By evaluation, what it was asked less and more than most; empty for those that were asked the same as most.

    Parameters
    ----------
    planned
        The points at which each evaluation was or is to be measured, shape (model, task, params); of evaluations
        without any, nothing is said.
    tasks
        Their names.

    Examples
    --------
    >>> asked = np.array([[[1, 1], [1, 0]], [[1, 1], [1, 0]], [[1, 0], [0, 0]]], dtype=bool)
    >>> other_points(asked, ["sort", "letters"])
    ['', '', 'lacks 1 point of sort and letters']
    """
    sets = [row.tobytes() for row in planned]
    counts = Counter(key for key, row in zip(sets, planned, strict=True) if row.any())
    if len(counts) < 2:
        return [""] * len(planned)
    # Of two that are equally frequent, the one with more points.
    usual = max(counts, key=lambda key: (counts[key], planned[sets.index(key)].sum()))
    most = planned[sets.index(usual)]
    return [
        "" if key == usual or not row.any() else _words(row, most, tasks)
        for key, row in zip(sets, planned, strict=True)
    ]


def _words(row: NDArray[np.bool_], most: NDArray[np.bool_], tasks: Sequence[str]) -> str:
    parts = []
    for verb, more, less in (("lacks", most, row), ("was asked also", row, most)):
        named = []
        for task, (mine, other) in zip(tasks, zip(more, less, strict=True), strict=True):
            count = int((mine & ~other).sum())
            if count:
                points = f"{count} point{'s' if count > 1 else ''} of "
                named.append(f"{points if other.any() else ''}{plain(task)}")
        if named:
            parts.append(f"{verb} {', '.join(named[:-1])}{' and ' if len(named) > 1 else ''}{named[-1]}")
    return ", and ".join(parts)
