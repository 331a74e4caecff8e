"""Where the replies of a run are kept that takes no old ones: a cache beside the usual one, named by its beginning.

A cache never replaces a reply. So a run that wants newer ones uses another cache, and neither keys nor entries change.
"""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import replace

from pydantic_core import PydanticCustomError

from evalcube.flows.config.cluster import seconds
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.run.follow.events import BlockDone, LookedUp
from evalcube.flows.state.records import read_notes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.urls import has_folders


def fresh_cache(
    settings: Sweep, max_age: str | None = None, *, fresh: bool = False, now: float | None = None
) -> str:
    """The address of a cache that has no reply older than a time; refuses a cube that has older ones.

    Parameters
    ----------
    settings
        The sweep's config, with the usual cache.
    max_age
        The time, as in ``7d``: runs within the same period of that length share a cache. None: a new cache.
    fresh
        Whether a new cache is asked for, which excludes a time.
    now
        Seconds since the epoch; default: by this machine's clock.

    Raises
    ------
    SweepError
        If the time is none, the cache is a Redis server, or the cube has older trials, which no run asks again.
    """
    if fresh and max_age is not None:
        raise SweepError("`fresh` excludes `max_age`", "Give one of them")
    now = time.time() if now is None else now
    name = "fresh" if max_age is None else "max_age"
    if not has_folders(settings.cache):
        raise SweepError(
            f"`{name}`: a Redis server has no folders for a newer cache",
            "Give `cache` another database of it",
        )
    began = now if max_age is None else _period(max_age, now)
    _refuse_old_cube(settings, began, name)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(began))
    own = f"{stamp}-{secrets.token_hex(3)}" if max_age is None else f"{stamp}-{max_age.replace(':', '.')}"
    return f"{settings.cache.rstrip('/')}.since/{own}"


def _period(max_age: str, now: float) -> float:
    """When the present one of the periods of that length began: no reply in it is older than one of them."""
    try:
        length = float(str(seconds(max_age)))
    except PydanticCustomError:
        raise SweepError(f"`max_age`: '{max_age}' is no time", "Write it as in 12h, 7d or 01:30:00") from None
    return math.floor(now / length) * length


def _refuse_old_cube(settings: Sweep, began: float, name: str) -> None:
    if not Cube.exists(settings.cube):
        return
    records = Cube.open(settings.cube).records
    old = sum(1 for receipt in Ledger(records).newest().values() if receipt.at < math.floor(began))
    if old:
        used = read_notes(records).get("cache", settings.cache)
        raise SweepError(
            f"`{name}`: {settings.cube} has answers that are older, and no run asks for those again",
            f"Give another `cube`; or go on with this one by `cache` {used} in place of `{name}`",
        )


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
