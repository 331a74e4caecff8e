"""In what chunks a cube is published: few objects for readers, and few megabytes for who writes a region anew."""

from __future__ import annotations

from collections.abc import Mapping

from evalcube.flows.plan.plan import Plan
from evalcube.stages.reply.status import COUNTERS, QUESTION_COUNTERS

CHUNK_BYTES = 4 * 2**20
"""Of the largest array of a region: few objects for readers, and few megabytes for whoever writes a region anew."""
COUNTER_BYTES = 16 * 2**20
_ITEM_BYTES = 4


def reading_chunks(plan: Plan, source: Mapping[str, int]) -> dict[str, int]:
    """Chunk lengths of a copy: whole regions of the source, as many together as make some megabytes.

    Parameters
    ----------
    plan
        Of what is copied.
    source
        Chunk lengths of the source along trial and repeat.
    """
    most = max(1, CHUNK_BYTES // (_ITEM_BYTES * len(plan.tasks) * plan.slots))
    chunks: dict[str, int] = {}
    for dim, size in (("repeat", plan.repeats), ("trial", plan.trials)):
        step = source[dim]
        room = most // chunks.get("repeat", 1)
        chunks[dim] = step * max(1, min(-(-size // step), room // step))
    cell_bytes = 8 * len(COUNTERS + QUESTION_COUNTERS) * len(plan.tasks) * plan.slots
    together = max(1, min(len(plan.evaluations), COUNTER_BYTES // cell_bytes))
    return {"model": together, **chunks}
