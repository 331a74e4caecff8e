"""Requests in, durable records out: the asynchronous client, on an event loop and a thread of its own.

Policies are elsewhere: `reply` tells what an answer means, `retry` when to try again and when to give up, `limits` when
the next request may start. A worker has one `Engine` for all its blocks, so that one block's slow tail never idles an
endpoint; models at one address with one key are one `Lane`, and one whose requests go in batches is a `BatchLane`.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

from stages.infer.batch.note import Batches
from stages.infer.batch.queue import BatchLane
from stages.infer.endpoint import Endpoint, InferenceError
from stages.infer.jobs import Job, Result, Slowdown, Stats
from stages.infer.pending import Block, Pending
from stages.infer.queue import Lane
from stages.infer.rates import strictest
from stages.infer.writer import Store, Writer

if sys.platform == "win32":  # uvloop is not made for it
    from asyncio import new_event_loop
else:
    from uvloop import new_event_loop

_CLOSING_SECONDS = 30.0
_FEW_IDLE = 0.05
"""Share of connections that wait for a request for a moment, as answers come in faster than tasks can ask."""


class Outlet(Protocol):
    """How the requests of some models leave: `Lane` sends each by itself, `BatchLane` many together."""

    learned: tuple[int, float]

    @property
    def idle(self) -> float:
        """Share of the connections for which no request waits."""

    def add(self, name: str, endpoint: Endpoint) -> None:
        """Serve a model too."""

    def put(self, name: str, pending: Pending) -> None:
        """Queue a job."""

    def resize(self, workers: int, rank: int) -> None:
        """Carry on as one of so many workers."""

    def slow_down(self, told: Slowdown) -> None:
        """Take over what another worker learned."""

    def halt(self) -> None:
        """Send nothing more."""

    async def close(self) -> None:
        """Give up what is under way."""


class Engine:
    """Sends requests and stores the replies that count. Blocks of any thread may run in it at once.

    Parameters
    ----------
    endpoints
        By label of the model.
    store
        Where final replies are put before their request counts as done.
    workers, rank
        Number of engines that share the endpoints, and this one's place among them. With 0 workers nothing is sent
        until `share_out` tells better.
    batches
        What is kept of batches; needed where an endpoint has some.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        store: Store,
        *,
        workers: int = 1,
        rank: int = 0,
        batches: Batches | None = None,
    ) -> None:
        self.stats = Stats()
        self._batches = batches
        self._endpoints = dict(endpoints)
        self._place = (workers, rank)
        accounts = {name: endpoint.account for name, endpoint in self._endpoints.items()}
        self._accounts = accounts
        self._quotas = {
            account: strictest(self._endpoints[name].quota for name in accounts if accounts[name] == account)
            for account in set(accounts.values())
        }
        self._lanes: dict[tuple[str, str | None], Outlet] = {}
        self._told: dict[tuple[str, str | None], tuple[int, float]] = {}
        self._in_flight: dict[str, Pending] = {}
        self._callers: dict[Hashable, Block] = {}
        self._halted = False
        self._closed = False
        self._state = threading.Lock()
        self._loop = new_event_loop()
        self._writer = Writer(store, self._loop, self._fail)
        self._thread = threading.Thread(target=self._serve, name="evalcube-infer", daemon=True)
        self._thread.start()

    def run(self, model: str, jobs: Sequence[Job], *, caller: Hashable = None) -> list[Result]:
        """Send `jobs` to a model's endpoint and wait; the results come in the order of the jobs.

        Parameters
        ----------
        caller
            Name by which the call can be abandoned.

        Raises
        ------
        InferenceError
            If the endpoint's key is missing.
        Exception
            Whatever the store raises when it cannot store a record; then the block's other jobs are not sent.
        """
        block = Block(len(jobs))
        with self._state:
            if self._closed:
                return [Result.skipped()] * len(jobs)
            self._callers[caller] = block
            self._loop.call_soon_threadsafe(self._submit, model, jobs, block)
        try:
            return block.future.result()
        finally:
            block.waiting = False
            with self._state:
                if self._callers.get(caller) is block:
                    del self._callers[caller]

    def abandon(self, caller: Hashable, error: Exception) -> None:
        """Have a call raise `error`, as nobody waits for it; what is in flight ends as usual, the rest is not sent."""
        with self._state:
            block = self._callers.get(caller)
            if block is not None and not self._closed:
                self._loop.call_soon_threadsafe(block.fail, error)

    def share_out(self, workers: int, rank: int) -> None:
        """Take another share of the endpoints' limits; requests in flight above it end as usual."""
        with self._state:
            if not self._closed:
                self._loop.call_soon_threadsafe(self._resize, workers, rank)

    def slowdowns(self) -> list[Slowdown]:
        """What this engine learned of overloaded endpoints since the last call, for others that share them."""
        news = []
        for account, lane in tuple(self._lanes.items()):
            learned, told = lane.learned, self._told.get(account, (0, -math.inf))
            self._told[account] = learned
            if learned != told:
                model = next(name for name, other in self._accounts.items() if other == account)
                pause = learned[1] - self._loop.time() if learned[1] > told[1] else 0.0
                news.append(Slowdown(model, learned[0] > told[0], max(pause, 0.0)))
        return news

    def starved(self) -> list[str]:
        """Labels of the models to whose endpoints more could be sent at this moment, if there were requests."""
        idle = {account for account, lane in tuple(self._lanes.items()) if lane.idle > _FEW_IDLE}
        return [name for name, account in self._accounts.items() if account in idle]

    def slow_down(self, told: Slowdown) -> None:
        """Take over what another engine learned."""
        with self._state:
            if not self._closed and told.model in self._accounts:
                self._loop.call_soon_threadsafe(self._slow_down, told)

    def drain(self) -> None:
        """Start no further request; those in flight end as usual, the others come back as skipped."""
        with self._state:
            if not self._closed:
                self._loop.call_soon_threadsafe(self._halt)

    def close(self) -> None:
        """Stop at once: requests in flight are given up, records already received are stored."""
        with self._state:
            if self._closed:
                return
            self._closed = True
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(2 * _CLOSING_SECONDS)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSING_SECONDS)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _submit(self, model: str, jobs: Sequence[Job], block: Block) -> None:
        try:
            lane = self._lane(model)
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            block.fail(error)
            return
        for index, job in enumerate(jobs):
            pending = self._in_flight.get(job.digest)
            new = pending is None
            if pending is None:
                pending = Pending(job, self._in_flight)
            pending.add(block, index)
            if new:
                lane.put(model, pending)

    def _lane(self, model: str) -> Outlet:
        account, endpoint = self._accounts[model], self._endpoints[model]
        lane = self._lanes.get(account)
        if lane is None:
            lane = self._lanes[account] = self._new_lane(endpoint)
            lane.resize(*self._place)
            if self._halted:
                lane.halt()
        lane.add(model, endpoint)
        return lane

    def _new_lane(self, endpoint: Endpoint) -> Outlet:
        if endpoint.batch is None:
            return Lane(endpoint, self._quotas[endpoint.account], self.stats, self._writer)
        if self._batches is None:
            raise InferenceError(
                f"models[{endpoint.name}].batch: there is no place for the notes of batches."
            )
        return BatchLane(endpoint, self.stats, self._writer, self._batches)

    def _resize(self, workers: int, rank: int) -> None:
        self._place = (workers, rank)
        for lane in self._lanes.values():
            lane.resize(*self._place)

    def _slow_down(self, told: Slowdown) -> None:
        lane = self._lanes.get(self._accounts[told.model])
        if lane is not None:
            lane.slow_down(told)

    def _halt(self) -> None:
        self._halted = True
        for lane in self._lanes.values():
            lane.halt()

    def _fail(self, problem: Exception) -> None:
        """End all calls, as a reply to any of them might be lost like the one that could not be stored."""
        for pending in tuple(self._in_flight.values()):
            pending.fail(problem)

    async def _close(self) -> None:
        self._halt()
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))
        await self._writer.close(_CLOSING_SECONDS)
        for pending in tuple(self._in_flight.values()):
            pending.resolve(Result.skipped())  # given up in flight, or not stored because the store hangs


__all__ = ["Engine", "InferenceError", "Store"]
