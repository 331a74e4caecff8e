"""The servers behind an endpoint: each request goes to one of them, and each is asked what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping

from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engines import EngineInfo, identification
from evalcube.stages.infer.jobs import Job, Stats
from evalcube.stages.infer.model_queue import ModelQueue
from evalcube.stages.infer.replicas import Replicas
from evalcube.stages.infer.reply import Reply, RetryClass

_MOST_MOVES = 3
"""Times that a request goes on to another server, or waits for its own, because that went while it was there."""


class ModelServers:
    """Sends requests to the servers of one endpoint, and finds out what serves its models there.

    Parameters
    ----------
    endpoint
        Whose addresses they are.
    models
        The endpoint's models by name, which may become more.
    stats
        Where a request that goes on to another server is counted again.
    """

    def __init__(self, endpoint: Endpoint, models: Mapping[str, ModelQueue], stats: Stats) -> None:
        self._models = models
        self._stats = stats
        self._moves: dict[str, int] = {}
        """By digest, how often servers went while a request that is in hand was there."""
        self._watchers: set[asyncio.Task[None]] = set()
        self.engines: dict[tuple[str, int], EngineInfo] = {}
        """See `evalcube.stages.infer.endpoint_queue.EndpointQueue.engines`."""
        # One server that nobody starts again needs none of it, and pays for none of it.
        several = len(endpoint.urls) > 1 or endpoint.outage > 0.0
        self._replicas = Replicas(endpoint, self._is_there, self._watch, self._back) if several else None

    def send(self, model: ModelQueue, job: Job) -> Awaitable[tuple[Reply, bytes | None]]:
        """Send once; returns the reply, and its record if it is final."""
        if self._replicas is None:
            return model.sender.send(job)
        return self._send_to_one(self._replicas, model, job)

    def done_with(self, job: Job) -> None:
        """Forget where a request has been."""
        if self._moves:
            self._moves.pop(job.digest, None)

    def identify(self, model: ModelQueue) -> None:
        """Begin to find out what serves a model on each server."""
        if model.endpoint.model:
            for place in range(len(model.endpoint.urls)):
                self._watch(self._identify(model, place))

    async def close(self) -> None:
        """Give up what is under way beside the requests: it uses the connections too."""
        watchers = tuple(self._watchers)
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

    async def _send_to_one(
        self, replicas: Replicas, model: ModelQueue, job: Job
    ) -> tuple[Reply, bytes | None]:
        """Send to one of several servers, and to another one if that is gone or strange: no failure of the request."""
        strange: dict[int, Reply] = {}
        while True:
            place = await replicas.take(job.body, model.over, strange)
            if place is None:
                self._stats.sent -= 1
                return next(reversed(strange.values()), replicas.absence()), None
            try:
                reply, record = await model.sender.send(job, place)
            finally:
                replicas.leave(place)
            if replicas.is_strange(place, reply, strange):
                strange[place] = reply
            elif not await replicas.lost(place, reply):
                return reply, record
            else:
                self._moves[job.digest] = moves = self._moves.get(job.digest, 0) + 1
                if moves > _MOST_MOVES:
                    # Whatever ends servers may well be this request, and the next one would go with it.
                    return reply._replace(retry_class=RetryClass.FAILED), None
            self._stats.retries[reply.cause] += 1
            self._stats.sent += 1

    async def _identify(self, model: ModelQueue, place: int) -> None:
        """Find out what serves a model on one of its servers."""
        endpoint, steps = model.endpoint, identification(model.endpoint.model)
        path = next(steps)
        try:
            while True:
                path = steps.send(await model.sender.look_up(place, endpoint.address(place, path)))
        except StopIteration as found:
            if found.value is not None:
                # Replaced as a whole: another thread reads it.
                self.engines = {**self.engines, (endpoint.name, place): found.value}

    def _back(self, place: int) -> None:
        """Look at a server that has come back: it may be another one by now."""
        for model in self._models.values():
            if model.proven and model.endpoint.model:
                self._watch(self._identify(model, place))

    async def _is_there(self, place: int) -> bool:
        # Whoever believes other authorities than the server's sees nobody there.
        senders = {model.endpoint.ca_file: model.sender for model in self._models.values()}
        for sender in senders.values():
            if await sender.is_there(place):
                return True
        return False

    def _watch(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)
