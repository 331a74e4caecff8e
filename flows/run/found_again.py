"""Tells answers of the cache that other runs had asked from those that this run lost with a worker and found again."""

from __future__ import annotations

from dataclasses import replace

from evalcube.flows.run.events import BlockDone, LookedUp


class FoundAgain:
    """What the cache answered of each block when it was first looked up: only that is not this run's own."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, ...]] = set()
        self._free: dict[tuple[int, ...], int] = {}
        """By block as it was first cut, hits of its first look-up that are not counted yet."""
        self._again = False
        """Whether a block was looked up once more, as it is when a worker dies."""

    def looked_up(self, event: LookedUp) -> None:
        """Take in what the cache answers of a block; the first time counts, as the run fills the cache itself."""
        origin = tuple(event.key)
        self._again = self._again or origin in self._free
        self._free.setdefault(origin, event.cached)

    def told_apart(self, event: BlockDone) -> BlockDone:
        """The event with the count of what was found again; of a block that is graded once more, all is."""
        key, hits, origin = tuple(event.key), event.cached - event.shared, tuple(event.origin)
        if key in self._seen:
            return replace(event, found_again=hits)
        self._seen.add(key)
        # A look-up may lack what others stored in the half second before it, a worker that died among them.
        late = event.late if self._again else 0
        hits -= event.late
        free = min(hits, self._free.get(origin, hits))
        if origin in self._free:
            self._free[origin] -= free
        return replace(event, found_again=hits - free + late)
