"""How a second reader and evalcube's own differ on the same replies, as values, and in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalcube.stages.analyze.labelled.axes import plain

if TYPE_CHECKING:
    from evalcube.stages.analyze.labelled.pairing import PairedDifference
    from evalcube.stages.analyze.labelled.results import Estimate

NO_READER = (
    "Give one `reader:` in the config; evalcube rescore CUBE --reader CONFIG reads recorded replies by it"
)
_NAMED = 3


@dataclass(frozen=True)
class ReaderGap:
    """Two readers of the same replies, of the tasks that have a second one."""

    ours: float
    """Share that is right as evalcube reads the replies, truncated ones wrong; mean over these tasks."""
    theirs: float
    """Share that is right as the second reader reads them."""
    difference: Estimate
    """Ours − theirs, the paired comparison of the two."""
    trials: int
    """Replies that both have read."""
    ours_only: int
    """Replies that are right by ours alone."""
    theirs_only: int

    @classmethod
    def of(cls, found: PairedDifference) -> ReaderGap:
        """Of a comparison whose first side is ours."""
        return cls(
            found.first_rate,
            found.second_rate,
            found.difference,
            found.trials,
            found.first_only,
            found.second_only,
        )


def named_readers(readers: Mapping[str, str], tasks: Collection[str]) -> str:
    """Second readers in words, with their tasks where these are not all.

    Parameters
    ----------
    readers
        Names by task; as they come from anyone, they are made plain.
    tasks
        All tasks.

    Examples
    --------
    >>> named_readers({"sums": "strict"}, ["sums"]), named_readers({"sums": "strict"}, ["sums", "sort"])
    ('strict', 'strict (sums)')
    """
    by_name: dict[str, list[str]] = {}
    for task, name in readers.items():
        by_name.setdefault(plain(name), []).append(plain(task))
    if len(by_name) == 1 and set(tasks) <= set(readers):
        return next(iter(by_name))
    return ", ".join(f"{name} ({_few(own)})" for name, own in by_name.items())


def told_of_readers(readers: Mapping[str, str], tasks: Collection[str]) -> str:
    """What the columns of a second reader mean; parameters as of `named_readers`."""
    return (
        f"theirs: right as read by {named_readers(readers, tasks)}; gap: how much more is right as evalcube reads the "
        "same replies, in points of 100. evalcube trials CUBE --where disagree lists where they differ."
    )


def _few(tasks: list[str]) -> str:
    more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    return ", ".join(tasks[:_NAMED]) + more
