"""Counts a part of a cube again, as if less had been measured, or as the second reader read its replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalcube.stages.analyze.labelled.readers import read_by_second
from evalcube.stages.score.recount import recount, trimmed

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.flows.read.selection import Part


def recounted(dataset: xr.Dataset, part: Part) -> tuple[xr.Dataset, str, list[str]]:
    """The dataset counted again as a part says, what is missing of each trial too; who read it; what to know of it.

    Raises
    ------
    ValueError
        An option cannot be met with these arrays.
    """
    read_by, told = "", list[str]()
    if part.reader != "ours":
        dataset, read_by, told = read_by_second(dataset)
    options: dict[str, Any] = {name: getattr(part, name) for name in ("trials", "unique_only", "clip_tokens")}
    # Counters are counted with the rules of the plan, which trial arrays alone do not hold: so both.
    found = trimmed(recount(dataset, **options), **options)
    if part.clip_tokens is not None and "max_tokens" in found.coords:
        limit = found["max_tokens"].where(found["max_tokens"] > 0, part.clip_tokens)
        found = found.assign_coords(max_tokens=limit.clip(max=part.clip_tokens))
    return found, read_by, told
