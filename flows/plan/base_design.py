"""The base design of a cube: how many answers the first plan of its sweep gave each point, by evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.spec import Spec
from evalcube.stages.reply.status import BASE
from evalcube.storage.cube.cube import Coordinate

Array = npt.NDArray[np.int64]

_SAID = "answers (trials times repeats) that the first plan gave the point: its weight within the task"


def base_coordinate(base: npt.NDArray[Any]) -> Coordinate:
    """The array (model, task, params) as a cube has it.

    Parameters
    ----------
    base
        Answers, shape (model, task, params).
    """
    return Coordinate(BASE, ("model", "task", "params"), base.astype(np.int64), {"long_name": _SAID})


def described_base(spec: Spec, slots: int) -> Array:
    """What a description says of points, shape (task, params); 0 where there is none.

    Parameters
    ----------
    spec
        The description.
    slots
        Length of ``params``.
    """
    found = np.zeros((len(spec.tasks), slots), dtype=np.int64)
    for row, task in enumerate(spec.tasks):
        found[row, : len(task.points)] = [point.base for point in task.points]
    return found


def filled_base(stored: npt.NDArray[Any] | None, described: Array, models: int) -> Array:
    """Base design of each evaluation: what a cube has of it, and the description's for points that came later.

    Parameters
    ----------
    stored
        Shape (model, task, params), 0 for what came later; None for a cube that has no such array.
    described
        Shape (task, params).
    models
        Number of evaluations.

    Examples
    --------
    >>> filled_base(np.array([[[8, 0]], [[0, 0]]]), np.array([[32, 32]]), 2).tolist()
    [[[8, 8]], [[32, 32]]]
    """
    every = np.broadcast_to(described, (models, *described.shape))
    if stored is None or stored.shape != every.shape:
        return np.array(every)
    # A point that came later has no more than the others of its evaluation had at first.
    most = stored.max(axis=(1, 2), initial=0, keepdims=True)
    later = np.where(most > 0, np.minimum(every, most), every)
    return np.where(stored > 0, stored, later).astype(np.int64)


def joined_base(parts: Sequence[Array]) -> Array:
    """Base design of evaluations from those of several cubes, 0 where a cube lacks an evaluation or a point.

    An evaluation keeps the design of its own cube. Where it is in several whose designs of a task have other ratios,
    the points of that task have the same weight.

    Parameters
    ----------
    parts
        By cube, each of the shape (model, task, params) of all together.

    Examples
    --------
    >>> one, other = np.array([[[32, 32, 0]]]), np.array([[[0, 64, 8]]])
    >>> joined_base([one]).tolist(), joined_base([one, other]).tolist()
    ([[[32, 32, 0]]], [[[1, 1, 1]]])
    """
    most = np.maximum.reduce(parts)
    apart = np.zeros(most.shape[:2], dtype=bool)
    for part in parts:
        times = np.where(part > 0, most / np.where(part > 0, part, 1), np.nan)
        low, high = np.fmin.reduce(times, axis=-1), np.fmax.reduce(times, axis=-1)
        apart |= low < high
    return np.asarray(np.where(apart[..., np.newaxis], most > 0, most), dtype=np.int64)
