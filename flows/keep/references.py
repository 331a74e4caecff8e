"""The requests that cubes reference in a cache, made again from their plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.evaluations import judge_keys
from evalcube.flows.plan.requests import CriteriaBook, trial_request
from evalcube.flows.read.outputs import Ticker, silent
from evalcube.flows.read.reader import Reader
from evalcube.storage.cache.cache import Cache

_TICK_KEYS = 512


class References:
    """The requests of some cubes: whether a key is one of them.

    Keeps 8 bytes of each key, so that ten million take 80 MB. That two keys agree in them happens once in 10¹² or
    more; then an entry too many is kept.
    """

    def __init__(self, heads: Iterable[int]) -> None:
        self._heads: npt.NDArray[np.uint64] = np.unique(np.fromiter(heads, dtype=np.uint64))
        self._seen = np.zeros(len(self._heads), dtype=bool)

    @classmethod
    def of(cls, cubes: Sequence[str], tick: Ticker = silent, cache: Cache | None = None) -> References:
        """Make the requests of cubes again; see `request_keys`."""
        readers = [Reader(cube) for cube in cubes]  # all are there, before the long part begins
        return cls(_heads(readers, tick, cache))

    @property
    def total(self) -> int:
        """Different requests."""
        return len(self._heads)

    @property
    def unseen(self) -> int:
        """Requests that no key stood for so far."""
        return int((~self._seen).sum())

    def mark(self, keys: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Tell for each key whether it is a request's, and note that it was seen."""
        if not self.total:
            return np.zeros(len(keys), dtype=bool)
        heads = np.array([_head(key) for key in keys], dtype=np.uint64)
        places = np.minimum(np.searchsorted(self._heads, heads), self.total - 1)
        member: npt.NDArray[np.bool_] = self._heads[places] == heads
        self._seen[places[member]] = True
        return member


def request_keys(reader: Reader, cache: Cache | None = None) -> Iterator[str]:
    """The key of every request that a cube's plan holds, made again from its description.

    What judges were asked depends on the answers, which are looked up in `cache`, by default the sweep's own; about
    an answer that is not there, there are no keys.

    Parameters
    ----------
    reader
        The cube, open.
    cache
        Where replies are looked up, which the requests to judges depend on.

    Returns
    -------
    Iterator
        The keys.
    """
    plan = reader.plan
    book = CriteriaBook(plan.tasks)
    answers = (cache or reader.cache()) if plan.judges else None
    trials, repeats = reader.cube.read_planned("trial"), reader.cube.read_planned("repeat")
    for task, entry in enumerate(plan.tasks):
        for slot, planned in enumerate(entry.cells):
            for trial in range(int(trials[:, task, slot].max())):
                truth = planned.cell.trial(trial)
                rubric = "" if answers is None else book.of(task, truth).rubric
                for model, evaluation in enumerate(plan.evaluations):
                    if trial < trials[model, task, slot]:
                        for repeat in range(int(repeats[model, task, slot])):
                            key = trial_request(evaluation, planned.cell, truth, repeat).digest
                            yield key
                            if answers is not None and rubric:
                                yield from judge_keys(plan.judges, rubric, truth, answers.get(key))


def _heads(readers: Sequence[Reader], tick: Ticker, cache: Cache | None) -> Iterator[int]:
    done = 0
    for reader in readers:
        for key in request_keys(reader, cache):
            yield _head(key)
            done += 1
            if done % _TICK_KEYS == 0:
                tick("requests made again", done)


def _head(key: str) -> int:
    return int(key[:16], 16)
