"""Merges the regions of one model, one after another; several models are merged side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from evalcube.flows.plan.targets import Window, window_of
from evalcube.flows.read.merged.conflicts import Tally
from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.merged.layers import Array, Part, lay
from evalcube.flows.state.recording import count_arrays, lacking_questions, receipt_of, summed
from evalcube.stages.score.counters import add_counters
from evalcube.storage.cube.ledger import Receipt, most_fingerprints
from evalcube.storage.cube.regions import Region

_MOST_CAUSES = 8


@dataclass(frozen=True, eq=False)
class MergedRegion:
    """A region of the union."""

    window: Window
    arrays: dict[str, Array]
    """In the window's shape."""
    parts: Sequence[Receipt]
    """Of what it was made."""

    def receipt(self, planned: Array, digest: str) -> Receipt:
        """Its receipt.

        Parameters
        ----------
        planned
            Which of its trials are planned, in the window's shape.
        digest
            Of its content.
        """
        generation = max(one.generation for one in self.parts)
        made = receipt_of(self.window, generation, planned, self.arrays["status"], digest, {})
        causes: Counter[str] = Counter()
        # The same region of two copies of a cube has met each error once.
        for one in {(part.digest, json.dumps(dict(part.causes))): part for part in self.parts}.values():
            causes.update(one.causes)
        graders = sorted({grader for one in self.parts for grader in one.grader.split("+")})
        return replace(
            made,
            causes=dict(causes.most_common(_MOST_CAUSES)) if made.transport else {},
            grader="+".join(graders),
            at=max(one.at for one in self.parts),
            fingerprints=most_fingerprints({one.digest: one.fingerprints for one in self.parts}.values()),
        )


class ModelMerge:
    """Merges one model. One thread uses it.

    Parameters
    ----------
    joined
        The cubes.
    model
        Number of the model in their union.
    newer
        Whether the later of two other outcomes stays, and not that of the earlier cube.
    """

    def __init__(self, joined: Joined, model: int, *, newer: bool) -> None:
        self._joined, self._model, self._newer = joined, model, newer
        self._layers = joined.layers()
        self.tally = Tally(joined.plan.slots)
        """What contradicted in the regions so far."""
        self._counted: list[Array] = []
        self._lacking: list[Array] = []

    def regions(self) -> Iterator[MergedRegion]:
        """All regions that any cube knows something of, in the order of trials and repeats."""
        sizes, chunks = self._joined.plan.sizes, self._joined.chunks
        for trial in range(-(-sizes["trial"] // chunks["trial"])):
            status = []
            for repeat in range(-(-sizes["repeat"] // chunks["repeat"])):
                found = self._region(window_of(sizes, Region(self._model, trial, repeat), chunks))
                if found is not None:
                    self._counted.append(self._counters(found))
                    status.append(found.arrays["status"])
                    yield found
            if len(status) > 1:
                self._lacking.append(lacking_questions(status))

    def counters(self) -> Array | None:
        """Counters of the regions so far, shape (task, params, counter); None if there were none."""
        parts = [*self._counted, *self._lacking]
        return summed(parts, add_counters) if parts else None

    def _region(self, window: Window) -> MergedRegion | None:
        shape, begin = window.shape, (window.first_trial, window.first_repeat)
        part = Part(self._model, (begin[0], begin[0] + shape[2]), (begin[1], begin[1] + shape[3]))
        parts: list[Receipt] = []
        layers = self._layers.of(part, parts)
        first = next(layers, None)
        if first is None:
            return None
        top, found = lay(chain([first], layers), newer=self._newer)
        for contradiction in found:
            cells = (shape[0] * shape[1], shape[2], shape[3])
            self.tally.add(self._model, cells, begin, contradiction)
        arrays = {name: values.reshape(*shape, *values.shape[3:]) for name, values in top.arrays.items()}
        return MergedRegion(window, arrays, parts)

    def _counters(self, region: MergedRegion) -> Array:
        """As if the region held all repeats of its questions."""
        window = region.window
        trials = slice(window.first_trial, window.first_trial + window.shape[2])
        prices = self._joined.plan.prices[self._model]
        flags = self._joined.flags[:, :, trials, np.newaxis]
        return count_arrays(region.arrays, flags, self._joined.targets.mask(window), prices)
