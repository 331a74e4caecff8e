"""The cubes that are explored: their counters in memory, and everything else on demand."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from flows.cubes.selection import OpenPart, Part, open_part
from flows.cubes.status import cube_status
from flows.errors import SweepError
from flows.explore.query import Query
from flows.plan.records import NOTES
from flows.trials.read import Trials
from flows.trials.read import trials as read_trials
from stages.analyze.labelled import axes
from storage.cube.cube import Cube
from storage.cube.holder import apparent_holder
from storage.cube.ledger import NAME as LEDGER
from storage.urls import redacted

_KEPT = 64
"""Answers and parts that are kept in memory."""

PART = ("task", "tier", "where")
"""Names by which a query says which part of the cubes it means."""


class Explored:
    """Some cubes, read as one; opened again when something new is recorded in them.

    Parameters
    ----------
    cubes
        Their addresses.
    cache
        Address of the response cache; default: those at hand.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    """

    def __init__(self, cubes: Sequence[str], cache: str | None = None) -> None:
        self.cubes = tuple(dict.fromkeys(cubes))
        self.cache = cache
        self._opened = [Cube.open(one) for one in self.cubes]
        self._lock = threading.RLock()
        self._stamp = ""
        self._kept: OrderedDict[object, Any] = OrderedDict()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of the cubes, without credentials."""
        return tuple(redacted(one) for one in self.cubes)

    def stamp(self) -> str:
        """A text that changes when something is recorded in a cube; it costs a look at each."""
        marks = []
        for cube in self._opened:
            for key in (LEDGER, NOTES):
                version = cube.records.version(key)
                # A bucket keeps a ledger as numbered objects, and nothing under its own name.
                marks.append(version.mark if version else str(sum(1 for _ in cube.records.list(f"{key}/"))))
        return "-".join(marks)

    def running(self) -> bool:
        """Whether a run seems to be at work on one of them."""
        return any(apparent_holder(cube.records) is not None for cube in self._opened)

    def kept(self, key: object, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it makes
        """What was made of the cubes as they are, made now if it was not yet.

        Parameters
        ----------
        key
            What tells it from others.
        make
            Makes it.
        """
        stamp = self.stamp()
        with self._lock:
            if stamp != self._stamp:
                self._kept.clear()
                self._stamp = stamp
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if stamp == self._stamp:
                self._kept[key] = made
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return made

    def whole(self) -> OpenPart:
        """All of the cubes, with counters in memory."""

        def opened() -> OpenPart:
            found = open_part(self.cubes, trials=False)
            found.dataset["counters"].load()
            return found

        part: OpenPart = self.kept("whole", opened)
        return part

    def part(self, query: Query) -> OpenPart:
        """The part of the cubes that a query means by the names in `PART`.

        Raises
        ------
        SweepError
            If a condition is wrong, or nothing is left.
        """
        where = conditions(query)
        if not where:
            return self.whole()

        def restricted() -> OpenPart:
            return open_part(self.whole().dataset, Part(where), notes={}, trials=False)

        part: OpenPart = self.kept(("part", where), restricted)
        return part

    def labels(self) -> list[str]:
        """A label for each evaluation, by which pages mean it; its digest where two have the same."""
        dataset = self.whole().dataset
        found = axes.evaluation_labels(dataset)
        ids = axes.names(dataset, "eval_id")
        return [
            text if found.count(text) == 1 else f"{text} {digest[:8]}"
            for text, digest in zip(found, ids, strict=True)
        ]

    def model(self, label: str) -> int:
        """The place of an evaluation among all, by its label.

        Raises
        ------
        SweepError
            If there is none.
        """
        labels = self.labels()
        if label not in labels:
            raise SweepError(f"`model`: there is no '{label}'", f"There are: {', '.join(labels[:12])}")
        return labels.index(label)

    def trials(self, **options: Any) -> Trials:  # noqa: ANN401 - handed on
        """Trials of the cubes, see `flows.trials.read.trials`."""
        return read_trials(list(self.cubes), cache=self.cache, **options)

    def status(self) -> list[dict[str, Any]]:
        """How far each cube is, see `flows.cubes.status.cube_status`."""
        return [cube_status(one) for one in self.cubes]


def conditions(query: Query) -> tuple[str, ...]:
    """The conditions of a query, as `Part.where` takes them: its tasks, its tiers, and what it says in words.

    Examples
    --------
    >>> conditions(Query.make(task=["sort", "cars"], where="param_length=4..8"))
    ('task=sort,cars', 'param_length=4..8')
    """
    named = [f"{name}={','.join(query.all(name))}" for name in ("task", "tier") if query.all(name)]
    return (*named, *query.all("where"))
