"""The cubes that are explored: their counters in memory, and everything else on demand."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.query import Query
from evalcube.flows.read.selection import OpenPart, narrow, open_part
from evalcube.flows.read.status import cube_status
from evalcube.flows.read.trials.read import Trials
from evalcube.flows.read.trials.read import trials as read_trials
from evalcube.flows.state.records import NOTES, read_live
from evalcube.stages.analyze.labelled import axes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.ledger import NAME as LEDGER
from evalcube.storage.cube.schema import COUNTERS
from evalcube.storage.urls import redacted

T = TypeVar("T")

_LOOK = 1.0
"""Seconds for which a look at the cubes holds: it costs requests where they lie in a bucket."""

_KEPT = 64
"""Answers and parts that are kept in memory."""

_COUNTER_CHUNKS = 8
"""Chunks of counters that are looked at for changes."""


class Explored:
    """Some cubes, read as one; opened again when something new is recorded in them."""

    def __init__(self, cubes: Sequence[str], cache: str | None = None) -> None:
        self.cubes = tuple(dict.fromkeys(cubes))
        self.cache = cache
        self.opened = [Cube.open(cube) for cube in self.cubes]
        """The same cubes, for what lies beside their arrays; sizes are those of when they were opened."""
        self._lock = threading.RLock()
        self._stamp = ""
        self._seen, self._looked = "", -math.inf
        self._kept: OrderedDict[object, Any] = OrderedDict()
        self._making: weakref.WeakValueDictionary[object, Any] = weakref.WeakValueDictionary()
        """A lock for each key, while somebody holds it or waits for it."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of the cubes, without credentials."""
        return tuple(redacted(cube) for cube in self.cubes)

    def stamp(self) -> str:
        """A text that changes when something is recorded in a cube; looked for at most once in `_LOOK` seconds."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return self._seen
        marks = []
        for cube in self.opened:
            for key in (LEDGER, NOTES):
                version = cube.records.version(key)
                # A bucket keeps a ledger as numbered objects, and nothing under its own name.
                if version is None:
                    marks.append(str(sum(1 for _ in cube.records.list(f"{key.partition('.')[0]}/"))))
                else:
                    marks.append(version.mark)
            # Counters are written behind the ledger, so that they change when it does not, and anew when a cube grows.
            cube.refresh()
            for chunk in range(min(-(-cube.sizes["model"] // cube.chunks_of_counters), _COUNTER_CHUNKS)):
                version = cube.space.version(cube.group.chunk_key(COUNTERS.name, (chunk, 0, 0, 0)))
                marks.append("" if version is None else version.mark)
        self._seen, self._looked = "-".join(marks), now
        return self._seen

    def running(self) -> bool:
        """Whether a run seems to be at work on one of them."""
        return any(apparent_holder(cube.records) is not None for cube in self.opened)

    def graded_trials(self) -> int | None:
        """Trials that runs at work have graded, of which the last are not recorded yet; None if none says so."""
        counts = [
            live["done"] for live in (read_live(cube.records) for cube in self.opened) if live is not None
        ]
        return int(sum(counts)) if counts else None

    def cached(self, key: object, make: Callable[[], T]) -> T:
        """What was made of the cubes as they are, made now if it was not yet."""
        with self._lock:
            making = self._making.setdefault(key, threading.RLock())
        with making:  # whoever asks for the same meanwhile waits for it, and does not make it too
            with self._lock:
                if (stamp := self.stamp()) != self._stamp:
                    self._kept.clear()
                    self._stamp = stamp
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return cast("T", self._kept[key])
            answer = make()
            with self._lock:
                # What was begun before the cubes changed is not kept with what came after.
                if stamp == self._stamp:
                    self._kept[key] = answer
                    while len(self._kept) > _KEPT:
                        self._kept.popitem(last=False)
            return answer

    def whole(self, *, trials: bool = False) -> OpenPart:
        """All of the cubes, with counters in memory, and lazy arrays of trials where they are needed."""

        def open_whole() -> OpenPart:
            part = open_part(self.cubes, trials=trials)
            part.dataset["counters"].load()
            return part

        return self.cached(("whole", trials), open_whole)

    def part(self, query: Query, *, trials: bool = False) -> OpenPart:
        """The part of the cubes that a query means by its `conditions`, with trials where they are needed."""
        where = conditions(query)
        if not where:
            return self.whole(trials=trials)
        return self.cached(("part", where, trials), lambda: narrow(self.whole(trials=trials), where))

    def labels(self) -> list[str]:
        """A label for each evaluation, by which pages mean it; with its digest where two have the same."""
        return list(self.label_of().values())

    def label_of(self) -> dict[str, str]:
        """The labels by ``eval_id``, in the order of the cubes."""

        def make_labels() -> dict[str, str]:
            dataset = self.whole().dataset
            labels = axes.evaluation_labels(dataset)
            return {
                digest: text if labels.count(text) == 1 else f"{text} {digest[:8]}"
                for text, digest in zip(labels, axes.names(dataset, "eval_id"), strict=True)
            }

        return self.cached("labels", make_labels)

    def model(self, label: str) -> int:
        """The place of an evaluation among all, by its label."""
        labels = self.labels()
        if label not in labels:
            raise SweepError(f"`model`: there is no '{label}'", f"There are: {', '.join(labels[:12])}")
        return labels.index(label)

    def trials(self, **options: Any) -> Trials:  # noqa: ANN401 - handed on
        """Return trials, as `flows.read.trials.read.trials`; of several cubes, of those that have what is asked for."""
        where = options.get("where", ())
        cubes: Sequence[str] = self.cubes
        if len(cubes) > 1:  # kept, as each has to be opened for it
            cubes = self.cached(("having", repr(where)), lambda: self._having(where))
        return read_trials(cubes, cache=self.cache, **options)

    def _having(self, where: Any) -> Sequence[str]:  # noqa: ANN401 - as for `read_trials`
        """Those of the cubes that have what is asked for; what the first one says if none has it."""
        cubes, refusals = [], []
        for cube in self.cubes:
            try:
                read_trials(cube, where=where)
                cubes.append(cube)
            except SweepError as error:
                refusals.append(error)
        if refusals and not cubes:
            raise refusals[0]
        return cubes

    def status(self) -> list[dict[str, Any]]:
        """How far each cube is, see `evalcube.flows.read.status.cube_status`."""
        return [cube_status(cube) for cube in self.cubes]


def conditions(query: Query) -> tuple[str, ...]:
    """The conditions of a query, as `Part.where` takes them: its tasks, its tiers, and what it says in words.

    Examples
    --------
    >>> conditions(Query.make(task=["sort", "cars"], where="param_length=4..8"))
    ('task=sort,cars', 'param_length=4..8')
    """
    named = [f"{name}={','.join(query.all(name))}" for name in ("task", "tier") if query.all(name)]
    return (*named, *query.all("where"))
