"""Further repeats: where several teams asked the same trials, all of their answers are kept, one after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalcube.flows.merge.layers import Layers, Part, finished, same_answers
from evalcube.flows.merge.overlay import Array


def repeat_offsets(
    layers: Layers, planned: Sequence[Array], trials: int, step: int
) -> tuple[list[Array], Array]:
    """How much later the repeats of each cube come, so that no answer hides another one.

    A cell of a cube comes after those of the cubes before it as soon as one of its answers is another than theirs. An
    answer that is equal to the latency is the same one, which came out of one cache.

    Parameters
    ----------
    layers
        The cubes, nothing shifted.
    planned
        Repeats that each cube plans, int (model, cell) of the union.
    trials
        Length of the union's axis of trials.
    step
        How many trials to compare at once.

    Returns
    -------
    list of ndarray
        Offsets by cube, int (model, cell).
    ndarray
        Repeats that the union plans, int (model, cell).
    """
    offsets = [np.zeros_like(one) for one in planned]
    used = np.zeros_like(planned[0])
    for model in range(used.shape[0]):
        sharing = layers.sharing(model)
        moved = _other_answers(layers, model, sharing, planned, trials, step)
        for source in sharing:
            own = planned[source][model]
            offset = np.where(moved[source], used[model], 0)
            offsets[source][model] = offset
            used[model] = np.maximum(used[model], offset + own)
    return offsets, used


def _other_answers(
    layers: Layers, model: int, sharing: Sequence[int], planned: Sequence[Array], trials: int, step: int
) -> dict[int, Array]:
    """By cube, in which cells it has other answers than one before it, bool (cell,)."""
    found = {source: np.zeros(planned[source].shape[1], dtype=bool) for source in sharing}
    if len(sharing) < 2:
        return found
    repeats = max(int(planned[source][model].max(initial=0)) for source in sharing)
    for begin in range(0, trials, step):
        part = Part(model, (begin, min(begin + step, trials)), (0, max(1, repeats)))
        known = [(source, layers.raw(source, part)) for source in sharing]
        for place, (source, layer) in enumerate(known):
            for _, other in known[:place]:
                if layer is not None and other is not None:
                    both = finished(layer) & finished(other)
                    found[source] |= (both & ~same_answers(layer, other)).any(axis=(1, 2))
    return found
