"""Finds the few trials that kill workers, so that everybody else's are done as usual.

A worker that dies takes all its tasks along, and Dask cannot tell which one was to blame. So a block that saw several
workers die is asked again, one block at a time: each of its tasks leaves a mark where all workers see it, and takes it
away when it ends. A task that finds its own mark does not run, since whoever left it is dead; the block is cut into
parts, and a single trial that killed twice, the second time with no other trial under way, is given up as a transport
error.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from distributed import Future as DaskFuture
from distributed import KilledWorker

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.asking import PendingAnswer
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import Block
from evalcube.storage.cube.space import Space, When
from evalcube.storage.errors import StorageError


class WorkerDiedError(Exception):
    """A task was not run, because the last worker that ran it died."""


class KilledTaskError(SweepError):
    """Workers died with a task, or with one that it needs."""


def is_killed(future: DaskFuture[Any]) -> bool:
    """Whether workers died with a task, or with one that it needs."""
    return future.status == "error" and isinstance(future.exception(), KilledWorker | WorkerDiedError)


def raise_if_failed(future: DaskFuture[Any]) -> None:
    """Raise what a task raised; nothing if it finished.

    One that finished and was lost with its worker is no failure: Dask computes it again for whoever needs it.
    """
    if future.status in ("finished", "lost"):
        return
    if future.status != "error":
        raise ClusterError(
            f"the cluster gave up a task of the sweep ({future.status}): its scheduler may have ended. "
            f"Run the same command again to resume."
        )
    error = future.exception()
    if isinstance(error, KilledWorker | WorkerDiedError):
        raise KilledTaskError(
            f"workers die again and again with a task of the sweep ({error})",
            "Look at the workers' logs, and whether they reached their memory limit, where Dask ends them: give fewer "
            "workers, or more memory for each. Then run the same command again to resume",
        ) from error
    if isinstance(error, Exception):
        # With the lines of the worker, which show whether a plugin is at fault.
        raise error.with_traceback(future.traceback())
    raise RuntimeError(f"a task of the sweep raised {error!r}")


def await_answer(question: PendingAnswer[Any]) -> Any:  # noqa: ANN401 - what a task returned
    """What a task returned that was asked for, once that is here."""
    try:
        return question.answer()
    except OSError as error:
        raise ClusterError(
            f"the cluster did not hand over what a task of the sweep returned ({error}): its scheduler may have ended. "
            f"Run the same command again to resume."
        ) from error


def raise_unless_workers_died(future: DaskFuture[Any]) -> None:
    """Raise what a task raised; nothing if workers died with it, even a moment ago.

    For results that another task will need: it fails as well, and that is where deaths are dealt with.
    """
    with suppress(KilledTaskError):
        raise_if_failed(future)


Future: TypeAlias = "DaskFuture[Any]"

_MARKS = "suspects/"
"""What the marks' keys begin with, among a cube's records."""

_PARTS = 8
"""Into which a block is cut: one trial of 64 is alone after two cuts."""
_PROOF = 2
"""Workers that must die with a single trial."""
_MOST_LOSSES = 5
"""Times that results of a block may go with a worker after they were there."""
_FIRST_INDEX = 1_000_000
"""Number of the first part: parts are blocks of their own beside those of a region."""


def name_trials(plan: Plan, block: Block) -> str:
    """Names of a block's trials for people: model, task, params, trial."""
    label = plan.labels[block.window.region.model]
    names = []
    for task, slot, trial, repeat in zip(*block.window.coordinates(block.positions), strict=True):
        entry = plan.tasks[task]
        params = ", ".join(f"{name}={value}" for name, value in entry.cells[slot].cell.plain_params.items())
        again = f" repeat {repeat}" if plan.repeats > 1 else ""
        names.append(f"{label}, {entry.label} {params}, trial {trial}{again}")
    return "; ".join(names)


class _Marks:
    """The marks that tasks of this process have set; none is set, and none is left, once it is about to end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set: dict[str, Space] = {}
        self._ending = False

    def set(self, records: Space, mark: str) -> bool:
        """Set a mark; whether it was free."""
        with self._lock:
            if self._ending:
                return records.get(mark) is None
            # Under the lock: what is set after `end` has looked would stay.
            if records.put(mark, b"", when=When.ABSENT, durable=False) is None:
                return False
            self._set[mark] = records
        return True

    def clear(self, records: Space, mark: str) -> None:
        """Take a mark away."""
        with self._lock:
            self._set.pop(mark, None)
        records.delete(mark, durable=False)

    def end(self) -> None:
        """Take all away: this process ends in good order, and nobody is to blame for that."""
        with self._lock:
            self._ending, marks = True, dict(self._set)
        for mark, records in marks.items():
            records.delete(mark, durable=False)


_marks = _Marks()


def blame_nobody() -> None:
    """Runs on a worker that is about to end in good order: whoever takes over its tasks finds no mark of theirs."""
    _marks.end()


def run_marked(records: Space, mark: str, function: Callable[..., object], *args: object) -> object:
    """Runs on a worker: call `function` under a mark that outlives this process, unless it is there already."""
    # Only if absent, and before the work: Dask gives a task whose worker died to another one without a word, and that
    # one must find the mark even if the first died at once. It need not outlive a power cut, which ends the driver too.
    if not _marks.set(records, mark):
        raise WorkerDiedError(mark)
    try:
        return function(*args)
    finally:
        # An exception takes the mark away, a SIGKILL does not: that is the whole difference it makes.
        _marks.clear(records, mark)


@dataclass(eq=False)
class _Suspect:
    """A block that is taken apart."""

    settle: Callable[[list[tuple[Block, Future]]], None]
    open_parts: int = 1
    losses: int = 0
    results: list[tuple[Block, Future]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Half:
    suspect: _Suspect
    block: Block
    deaths: int = 0

    @property
    def alone(self) -> bool:
        """Whether it has to run alone, so that it cannot be blamed for another's death."""
        # The first death may have been another's fault: a worker takes all its tasks along.
        return self.deaths == _PROOF - 1


@dataclass(eq=False)
class PoisonIsolation:
    """Takes blocks apart that workers died with, one part at a time."""

    records: Space
    """Of the cube: where marks are left."""
    submit: Callable[[Block, str], Future]
    """Submits a block's tasks under marks whose keys begin with the given one; returns the last one."""
    give_up: Callable[[Block], Future]
    """Submits what records the trials of a block as transport errors."""
    when_done: Callable[[Future, Callable[[Future], None]], None]
    """Has a handler called, later and in the driver's thread, when a future is done."""
    is_quiet: Callable[[], bool]
    """Returns whether nothing else is under way that makes or grades trials."""
    _waiting: deque[_Half] = field(default_factory=deque)
    _busy: bool = False
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(_FIRST_INDEX))

    def add(self, block: Block, settle: Callable[[list[tuple[Block, Future]]], None]) -> None:
        """Take a block apart; `settle` gets what is known of its trials in the end, or the task that failed."""
        self._waiting.append(_Half(_Suspect(settle), self._renumber(block)))
        self.go_on()

    @property
    def wants_quiet(self) -> bool:
        """Whether all that is left to try has to run alone."""
        return bool(self._waiting) and all(part.alone for part in self._waiting)

    def close(self) -> None:
        """Remove the marks, those of runs that were killed too."""
        # What cannot be removed costs a later suspect block one more attempt, no more.
        with suppress(OSError, StorageError):
            self.records.clear(_MARKS)

    def _renumber(self, block: Block) -> Block:
        # Reports are told apart by the block's key, and marks are named by it: a part must have one of its own.
        return replace(block, index=next(self._numbers))

    def go_on(self) -> None:
        """Try the next part, if none is being tried and one may be."""
        quiet = self.is_quiet()
        part = next((part for part in self._waiting if quiet or not part.alone), None)
        # One at a time: with two under marks, a death would leave both.
        if self._busy or part is None:
            return
        self._waiting.remove(part)
        self._busy = True
        if part.deaths >= _PROOF:
            future = self.give_up(part.block)
        else:
            # With the number of deaths in it, so that the mark of the first attempt does not forbid the second.
            name = "-".join(map(str, (*part.block.key, part.deaths)))
            future = self.submit(part.block, _MARKS + name)
        self.when_done(future, lambda done: self._done(part, done))

    def _done(self, part: _Half, future: Future) -> None:
        self._busy = False
        suspect = part.suspect
        # A future that failed by an error of its own counts as a result: whoever settles raises it.
        if not is_killed(future) or part.deaths >= _PROOF:
            suspect.open_parts -= 1
            suspect.results.append((part.block, future))
            if not suspect.open_parts:
                self._settle(suspect)
        elif part.block.size == 1:
            # At the front, as are smaller parts: a block is finished before another one is taken apart.
            self._waiting.appendleft(replace(part, deaths=part.deaths + 1))
        else:
            count = min(_PARTS, part.block.size)
            suspect.open_parts += count - 1
            pieces = np.array_split(part.block.positions, count)
            blocks = [self._renumber(replace(part.block, positions=piece)) for piece in pieces]
            self._waiting.extendleft(_Half(suspect, block) for block in reversed(blocks))
        self.go_on()

    def _settle(self, suspect: _Suspect) -> None:
        # A part that was done may have gone with the worker that held its result, and what computed it again may have
        # died by the side of another part: that one is tried anew, under marks that nobody left.
        gone: list[tuple[Block, Future]] = []
        whole: list[tuple[Block, Future]] = []
        for result in suspect.results:
            (gone if is_killed(result[1]) else whole).append(result)
        if not gone or suspect.losses == _MOST_LOSSES:
            suspect.settle(suspect.results)
            return
        suspect.losses += 1
        suspect.results, suspect.open_parts = whole, len(gone)
        self._waiting.extendleft(_Half(suspect, self._renumber(block)) for block, _ in reversed(gone))
