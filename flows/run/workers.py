"""Watches a cluster's workers, and shares the endpoints' connections out among them."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

from distributed import Client

from deploy.clusters import ClusterError, Connection
from deploy.clusters.base import PATIENCE_SECONDS
from flows.run.events import Event, Noted, Slowed, Traffic
from flows.run.worker import plugin_name
from stages.infer.jobs import Slowdown

_POLL_SECONDS = 1.0
_NOTE_SECONDS = 5.0
_NOTED_LOSSES = 5
"""Workers that have to go before it is said that they do: one that dies now and then is restarted, and no news."""


_MOST_LOSSES = 24
"""Workers that have gone, while no task was done, after which none is waited for: more than a trial that kills its
worker takes until the others of its block are found to be harmless."""


class Shared(Protocol):
    """Something that depends on the number of workers, and on what they report of a model."""

    model: str
    workers: int

    def grow(self) -> None:
        """Allow more of its blocks at once."""


class Workers:
    """The workers of a run.

    A worker sends nothing before it has its share, so that one that joins or restarts never adds
    connections to those that are there already; what is in flight above a share that shrinks ends as usual.
    """

    def __init__(
        self,
        connection: Connection,
        run: str,
        shared: Iterable[Shared],
        emit: Callable[[Event], None],
        reports: queue.SimpleQueue[Slowed | Traffic] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._reports = reports or queue.SimpleQueue()
        self._connection = connection
        self._client = connection.client
        self._patience = patience
        self._run = run
        self._shared = tuple(shared)
        self._emit = emit
        self._there: list[str] = []
        self._shared_with: list[str] = []
        self._polled_at = -math.inf
        self._gone_at: float | None = None
        self._noted = False
        self._losses = 0
        self._worked = False

    @property
    def any(self) -> bool:
        """Whether there were workers at the last poll."""
        return bool(self._there)

    def worked(self) -> None:
        """Note that a worker has done a task: whatever ends workers leaves time for that."""
        self._worked = True

    def poll(self) -> None:
        """Look up who is there, at most once a second, and adapt to what workers report of their endpoints.

        Raises
        ------
        ClusterError
            If there has been no worker for as long as the cluster's patience, if they end again and again and none
            has done anything, or if the cluster says that there will be none.
        """
        now = time.monotonic()
        # First, as it is cheap and connections are idle meanwhile; who is there is asked over the network.
        self._adapt()
        if now - self._polled_at < _POLL_SECONDS:
            return
        self._polled_at = now
        try:
            named = present(self._client)
            before, self._there = self._there, list(named)
            for note in self._connection.tend(named):
                self._emit(Noted(note))
            self._count_losses(len(set(before).difference(self._there)))
            if self._there != self._shared_with:
                self._share_out()
        except (OSError, TimeoutError):
            return  # a scheduler that went away shows in the futures
        self._watch_absence(now)

    def _adapt(self) -> None:
        """Give more blocks to models that are starved, and pass on what one worker learned of an overload."""
        slowed: list[Slowed] = []
        starved: set[str] = set()
        while not self._reports.empty():
            report = self._reports.get()
            if isinstance(report, Slowed):
                slowed.append(report)
            else:
                starved.update(report.starved)
        for item in self._shared:
            if item.model in starved:
                item.grow()
        # The one that learned it has slowed down already; alone it has nobody to notify.
        if slowed and len(self._there) > 1:
            with suppress(OSError, TimeoutError):
                self._client.run(_slow_down, plugin_name(self._run), slowed, on_error="ignore")

    def _share_out(self) -> None:
        # With no worker at all the limits stay as for one: the next one to come should find blocks.
        for item in self._shared:
            item.workers = max(len(self._there), 1)
        # A rank, not only a number: connections that do not divide evenly go to the first ones.
        ranks = {address: rank for rank, address in enumerate(self._there)}
        answers = self._client.run(_take_share, plugin_name(self._run), ranks, on_error="ignore")
        # A worker that is still starting has no plugin yet: it gets its share at the next poll.
        self._shared_with = sorted(address for address, taken in answers.items() if taken is True)

    def _count_losses(self, lost: int) -> None:
        """Say so, once, if workers end again and again: each that is restarted looks as if all were well.

        Raises
        ------
        ClusterError
            If they do and have done nothing else.
        """
        before, self._losses = self._losses, self._losses + lost
        if self._losses >= _MOST_LOSSES and not self._worked:
            raise ClusterError(
                f"{self._losses} worker processes have ended, and none has finished a task: they crash, or a limit "
                f"ends them (memory, `ulimit -v`, `-t`, `-n`; Dask ends one at its own memory limit). Look at their "
                f"logs, give fewer workers, or more memory for each, and run the same command again."
            )
        if before < _NOTED_LOSSES <= self._losses:
            self._emit(
                Noted(
                    f"{self._losses} worker processes have ended so far, by crashes or for want of memory (Dask ends "
                    "one at its memory limit): look at their logs, give fewer workers, or more memory for each"
                )
            )

    def _watch_absence(self, now: float) -> None:
        if self._there:
            self._gone_at, self._noted = None, False
            return
        self._gone_at = now if self._gone_at is None else self._gone_at
        if now - self._gone_at > self._patience:
            raise ClusterError(
                f"the cluster has had no worker for {self._patience:g} s: they died or were stopped. "
                f"Look at their memory and logs, start some, and run the same command again to resume."
            )
        if now - self._gone_at > _NOTE_SECONDS and not self._noted:
            self._noted = True
            self._emit(Noted("the cluster has no workers at the moment; waiting for some"))


def present(client: Client) -> dict[str, str]:
    """The cluster's workers, sorted: address -> the name that they were started with.

    `Client.scheduler_info` may know of none: it shares its answer with a periodic call of its own that leaves them out.

    Raises
    ------
    OSError
        If the scheduler cannot be asked.
    """
    # A client that lost its scheduler blocks in `sync` instead of raising.
    if client.scheduler is None or client.status not in ("running", "connecting"):
        raise OSError("the scheduler is away")
    workers = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return {address: str(workers[address].get("name", "")) for address in sorted(workers)}


def _take_share(name: str, ranks: dict[str, int], dask_worker: Any = None) -> bool:  # noqa: ANN401 - Dask's own
    """Runs on every worker: so many share the endpoints, and this is its place among them."""
    plugin = dask_worker.plugins.get(name)
    if plugin is None or plugin.workspace is None or dask_worker.address not in ranks:
        return False
    plugin.workspace.share_out(len(ranks), ranks[dask_worker.address])
    return True


def _slow_down(name: str, slowed: list[Slowed], dask_worker: Any = None) -> None:  # noqa: ANN401 - Dask's own worker
    """Runs on every worker: take over what the others learned of overloaded endpoints."""
    plugin = dask_worker.plugins.get(name)
    for one in slowed:
        if plugin is not None and plugin.workspace is not None and one.worker != dask_worker.address:
            plugin.workspace.slow_down(Slowdown(one.model, one.overload, one.pause, one.reason, one.news))
