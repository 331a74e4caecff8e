"""Trials that a run has recorded and not counted yet: views that rest on counters lack them, and say so."""

from __future__ import annotations

import numpy as np

from evalcube.flows.explore.explored import Explored
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.ledger import Ledger

MOST_TOLD = 5
"""Models that a warning names."""


def uncounted(explored: Explored) -> list[str]:
    """Sentences on trials that are on record and not in the counters yet, which a run writes a while later.

    Parameters
    ----------
    explored
        The cubes; of several nothing is said.

    Returns
    -------
    list of str
        One, or none.
    """

    def look() -> list[str]:
        if len(explored.cubes) > 1:
            return []
        # All of them: what is left out of boards, as earlier versions of a data file, is counted all the same.
        trials = explored.opened[0].read_counters()[..., COUNTERS.index("trials")].sum(axis=(1, 2))
        recorded = np.zeros(len(trials))
        for region, receipt in Ledger(explored.opened[0].records).newest().items():
            if region.model < len(recorded):
                recorded[region.model] += receipt.finished
        late = np.maximum(recorded - trials, 0).astype(int)
        names = [label for label, count in zip(explored.labels(), late, strict=True) if count]
        if not names:
            return []
        few = f"{', '.join(names[:MOST_TOLD])}{' and others' if len(names) > MOST_TOLD else ''}"
        text = (
            f"{late.sum():,} trials are recorded and not counted yet, of {few}: what is shown lacks them until a run "
            "counts them, which it does every two minutes or so and when it ends."
        )
        return [text]

    told: list[str] = explored.kept("uncounted", look)
    return told
