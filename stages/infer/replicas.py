"""Spreads one model's requests over the servers that all have it, and waits for those that are away.

Used on the event loop's thread only. A server leaves when a request fails in a way that may be the server's and a probe
finds nobody there; it returns when a later probe finds it again. What was in flight there goes to another one, or waits
where there is none and somebody starts it again. One that answers what the others do not (another model, a web page, a
refused key) fails no request that another one answers, and is left alone for a while if it goes on so.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Container, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalcube.stages.infer.endpoint import Endpoint, EngineInfo, identification
from evalcube.stages.infer.endpoint_queue import ModelQueue
from evalcube.stages.infer.jobs import Job, Stats
from evalcube.stages.infer.reply import Reply, RetryClass, one_line

SUSPECT = frozenset(
    {"connect", "dns", "tls", "reset", "cut reply", "timeout", "http 500"}
    | {f"http {status}" for status in (502, 503, 504, 520, 521, 522, 523, 524)}
)
"""Causes that may be those of a server which is gone or about to go."""
_CUT = frozenset({"connect", "reset", "cut reply"})
_STRANGE = frozenset({f"http {status}" for status in (401, 403, 404, 405)}) | frozenset(
    {"redirect", "invalid json", "wrong shape", "no choices"}
)
"""Causes that may be those of one server that is not set up as the others are."""
_PREFERRED = 1
"""Requests that the server which has seen a text before may have in flight beyond the fewest of any."""
_TRUSTED_SECONDS = 1.0
"""How long a server that was found is not probed again."""
_FIRST_PROBE, _LONGEST_PROBE = 0.25, 5.0
"""Seconds between probes of one that is away: at first, and at most."""
_SICK = 8
"""Failures in a row after which a server that can be reached is left alone, while others answer."""
_SICK_SECONDS = 10.0
_LOOK_SECONDS = 0.5
"""How often those who wait look whether they still have to."""
_READ_CHARACTERS = 4096

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Replica:
    """One server, as this process knows it."""

    __slots__ = ("answered", "asked", "away", "failures", "found_at", "in_flight", "place")

    def __init__(self, place: int) -> None:
        self.place = place
        self.in_flight = 0
        self.away = False
        self.answered = False
        """Whether a reply of it ever counted."""
        self.failures = 0
        """In a row."""
        self.found_at = float("-inf")
        """When it answered a probe last, seconds on the loop's clock."""
        self.asked: asyncio.Future[bool] | None = None
        """The probe under way."""


def choose(loads: Sequence[int | None], preferred: int) -> int | None:
    """Which server gets a request: the one that saw its text before, or else the one with the fewest in flight.

    Examples
    --------
    >>> choose([3, 1, None], preferred=1), choose([3, 1, None], preferred=0), choose([None], 0)
    (1, 1, None)
    """
    there = [server for server, load in enumerate(loads) if load is not None]
    if not there:
        return None
    fewest = min(load for load in loads if load is not None)
    # Whoever begins is spread by the text as well: workers that all began with the first one would burden it.
    order = [there[(preferred + step) % len(there)] for step in range(len(there))]
    if (loads[order[0]] or 0) <= fewest + _PREFERRED:
        return order[0]
    return next(server for server in order if loads[server] == fewest)


class Replicas:
    """The servers of one endpoint.

    Parameters
    ----------
    endpoint
        Whose addresses they are.
    probe
        Returns whether the server of that number answers; never raises.
    spawn
        Starts a coroutine that ends with the queue.
    back
        Called with the number of a server that has come back.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        probe: Callable[[int], Awaitable[bool]],
        spawn: Spawn,
        back: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._all = [Replica(number) for number in range(len(endpoint.urls))]
        self._outage = endpoint.outage
        self._given_up = None if endpoint.given_up is None else Path(endpoint.given_up)
        self._probe = probe
        self._spawn = spawn
        self._back = back
        self._gone_at: float | None = None
        """Since when all are away."""
        self._over = ""
        """Why none of them will come back."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def away(self) -> int:
        """How many are away."""
        return sum(replica.away for replica in self._all)

    async def take(
        self, body: bytes, over: asyncio.Event, refused: Container[int] = frozenset()
    ) -> int | None:
        """The number of the server to ask, which then has one more in flight; None if there is none to wait for."""
        preferred = zlib.crc32(body)
        while True:
            loads = [None if each.away or each.place in refused else each.in_flight for each in self._all]
            server = choose(loads, preferred)
            if server is not None:
                self._all[server].in_flight += 1
                return server
            # Those that are there have refused the request, or none is.
            if over.is_set() or self.away < len(loads) or not self._is_worth_waiting():
                return None
            await self._wait()

    def leave(self, place: int) -> None:
        """End a request at that server."""
        self._all[place].in_flight -= 1
        self._wake(1)

    async def is_lost(self, place: int, reply: Reply) -> bool:
        """Whether a request failed because its server is gone, so that it has to go elsewhere."""
        replica = self._all[place]
        if reply.cause not in SUSPECT or not reply.retryable or reply.retry_after is not None:
            if reply.is_final:
                replica.failures, replica.answered = 0, True
            return False
        replica.failures += 1
        # One that was there a moment ago may be slow or have too much to do; one that cuts connections may be gone.
        trusted = reply.cause not in _CUT and self._now() - replica.found_at < _TRUSTED_SECONDS
        if replica.away or not (trusted or await self._is_there(replica)):
            return True
        # The request's own failure counts; further ones go elsewhere.
        self._leave_alone_if_sick(replica)
        return False

    def is_strange(self, place: int, reply: Reply, refused: Container[int]) -> bool:
        """Whether a failure may be that of its server alone, and another one is there that may know better.

        Whoever fails at once has the fewest in flight, and would get most requests.
        """
        if reply.cause not in _STRANGE or reply.retry_after is not None:
            return False
        replica = self._all[place]
        replica.failures += 1
        self._leave_alone_if_sick(replica)
        # One that has not been asked yet may answer, too: else the first request would decide for all servers.
        return any(
            peer.failures < _SICK and (peer.answered or not peer.failures)
            for peer in self._all
            if peer is not replica and not peer.away and peer.place not in refused
        )

    def absence(self) -> Reply:
        """The reply to a request that no server is there for."""
        if self._over:
            return Reply(RetryClass.FATAL, "server", self._over)
        count = len(self._all)
        text = "the server is away" if count == 1 else f"none of the {count} servers answers"
        return Reply(RetryClass.RETRY, "connect", text)

    async def _is_there(self, replica: Replica) -> bool:
        if replica.asked is None:
            # All requests of a server that went fail at once: one probe answers for all of them.
            replica.asked = asyncio.get_running_loop().create_future()
            self._spawn(self._ask(replica, replica.asked))
        # Shielded: a request that is cancelled must not end the probe that others wait for.
        there = await asyncio.shield(replica.asked)
        if there:
            replica.found_at = self._now()
        elif not replica.away:
            self._send_away(replica, _FIRST_PROBE)
        return there

    async def _ask(self, replica: Replica, answer: asyncio.Future[bool]) -> None:
        there = await self._probe(replica.place)
        replica.asked = None
        answer.set_result(there)

    def _leave_alone_if_sick(self, replica: Replica) -> None:
        """Ask one no more for a while that can be reached and fails all the same, where another one answers."""
        peer_answers = any(peer.failures == 0 and not peer.away for peer in self._all if peer is not replica)
        if replica.failures >= _SICK and peer_answers and not replica.away:
            self._send_away(replica, _SICK_SECONDS)

    def _send_away(self, replica: Replica, pause: float) -> None:
        replica.away = True
        if self.away == len(self._all):
            self._gone_at = self._now()
        self._spawn(self._watch(replica, pause))

    async def _watch(self, replica: Replica, pause: float) -> None:
        """Probe a server that is away until it is back, or nobody starts it any more."""
        await asyncio.sleep(pause)
        wait = _FIRST_PROBE
        while not await self._probe(replica.place):
            if self._read_end():
                break
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_PROBE if self._given_up is None else 4 * _FIRST_PROBE)
        else:
            replica.away, replica.failures, replica.found_at = False, 0, self._now()
            self._gone_at = None
            self._back(replica.place)
        self._wake(len(self._waiting))

    def _read_end(self) -> bool:
        """Whether whoever started the server has given it up, and left a note why."""
        if self._given_up is not None and not self._over:
            with suppress(OSError):
                text = self._given_up.read_text(encoding="utf-8", errors="replace")[:_READ_CHARACTERS]
                self._over = one_line(text) or "the server was given up"
        return bool(self._over)

    def _is_worth_waiting(self) -> bool:
        since = self._now() if self._gone_at is None else self._gone_at
        return not self._over and self._now() - since < self._outage

    async def _wait(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        with suppress(TimeoutError):
            # Nothing wakes them when the run stops or the outage has lasted too long: so they look.
            async with asyncio.timeout(_LOOK_SECONDS):
                await future  # a timeout cancels it, so that `_wake` passes it over

    def _wake(self, count: int) -> None:
        while count > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                count -= 1

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


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
        """By label of the model and number of the server, what serves it; replaced as a whole."""
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
            for server in range(len(model.endpoint.urls)):
                self._watch(self._identify(model, server))

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
            server = await replicas.take(job.body, model.over, strange)
            if server is None:
                self._stats.sent -= 1
                return next(reversed(strange.values()), replicas.absence()), None
            try:
                reply, record = await model.sender.send(job, server)
            finally:
                replicas.leave(server)
            if replicas.is_strange(server, reply, strange):
                strange[server] = reply
            elif not await replicas.is_lost(server, reply):
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
        for sender in {model.endpoint.ca_file: model.sender for model in self._models.values()}.values():
            if await sender.is_there(place):
                return True
        return False

    def _watch(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)
