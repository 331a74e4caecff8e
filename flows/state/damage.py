"""What a verification of a cube finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from evalcube import known_as
from evalcube.stages.analyze.render.shown import Shown
from evalcube.storage.cube.group import chunk_words
from evalcube.storage.cube.regions import Region


@dataclass(frozen=True)
class Damage:
    """One thing in a cube that is not as it was recorded."""

    array: str
    """Its name; empty if it is not known which array of the region differs."""
    problem: str
    """A few words that follow the name."""
    model: str = ""
    """Label of the evaluation; empty for an array that all share."""
    region: Region | None = None
    healed: bool = False
    requests: int = 0
    """What a run would have to ask, since the cache has the replies no more."""

    def __str__(self) -> str:
        if self.region is None:
            return f"`{self.array}` {self.problem}"
        position = f"trials' chunk {self.region.trial}, repeats' chunk {self.region.repeat}"
        return f"{self.model}, {position}: {chunk_words(self.array, self.problem)}"


@known_as("evalcube.results")
@dataclass(frozen=True)
class Verification(Shown):
    """What a verification compared and found."""

    cube: str
    regions: int
    """Recorded ones, all of which were compared."""
    lines: int
    """Damaged lines of the ledger: a run does their regions again."""
    damages: list[Damage] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged, or nothing any more."""
        return all(damage.healed for damage in self.damages)

    @property
    def requests(self) -> int:
        """What a run would have to ask to make the cube whole."""
        return sum({damage.region: damage.requests for damage in self.damages if not damage.healed}.values())

    def records(self) -> list[dict[str, Any]]:
        """What is damaged, as plain values."""
        return [asdict(damage) for damage in self.damages]

    def _notes(self) -> tuple[str, ...]:
        state = "whole" if self.whole else f"damaged: {self.requests:,} requests would make it whole"
        return (f"{self.cube}: {self.regions:,} regions compared; it is {state}.",)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {**asdict(self), "whole": self.whole, "requests": self.requests}
