"""The requests of all models at one address with one key in; their replies, handed to the writer or given up, out."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress
from functools import partial

from stages.infer.endpoint import Endpoint
from stages.infer.gate import Gate
from stages.infer.jobs import Job, Result, Slowdown, Stats
from stages.infer.pending import Pending
from stages.infer.rates import Quota
from stages.infer.reply import Reply
from stages.infer.retry import Breaker, backoff, concerns_model, is_overload, longest_pause
from stages.infer.token_estimate import TokenEstimate
from stages.infer.wire import Sender, connector
from stages.infer.writer import Writer

_SAME_OVERLOAD_SECONDS = 2.0
"""What others tell within this time is the overload that this worker saw itself."""


class _Model:
    """What belongs to one model of a lane."""

    def __init__(self, endpoint: Endpoint, sender: Sender, patience: int) -> None:
        self.endpoint = endpoint
        self.sender = sender
        self.waiting: deque[Pending] = deque()
        self.held = 0
        """Requests that carriers have in hand, those that wait for another attempt too."""
        self.breaker = Breaker(patience)
        self.down: Reply | None = None
        """Why the model was given up."""
        self.over = asyncio.Event()
        """Set when nothing more is sent to it, for whichever reason."""
        self.estimate = TokenEstimate()


class Lane:
    """An endpoint's queues and the coroutines that empty them, one per connection.

    Models at one address with one key share everything that is the endpoint's: connections, rates, and the judgement
    that it cannot be reached. A free connection goes to the model that has the fewest, so that one whose requests
    take long, or fail again and again, leaves room for the others.
    """

    def __init__(self, endpoint: Endpoint, quota: Quota, stats: Stats, writer: Writer) -> None:
        self._quota = quota
        self._stats = stats
        self._writer = writer
        self._models: dict[str, _Model] = {}
        self._connections = connector(endpoint)
        self._patience = max(2, min(quota.connections, 8))
        self._breaker = Breaker(self._patience)
        self._down: Reply | None = None
        """Why the endpoint was given up."""
        self._halted = False
        self._overloaded_at = -math.inf
        self.learned = (0, -math.inf)
        """Overloads that this worker saw itself, and the end of the last pause that it was asked for."""
        self._width = 0
        self._gate = Gate()
        self._carriers: set[asyncio.Task[None]] = set()
        self._idle: deque[asyncio.Future[None]] = deque()

    def add(self, name: str, endpoint: Endpoint) -> None:
        """Serve a model too.

        Raises
        ------
        InferenceError
            If the endpoint's key is missing, or its address or proxy is none.
        """
        if name not in self._models:
            model = _Model(endpoint, Sender(endpoint, self._connections), self._patience)
            model.down = self._down
            if self._halted or model.down is not None:
                model.over.set()
            self._models[name] = model

    def put(self, name: str, pending: Pending) -> None:
        """Queue a job, or answer it at once where nothing is sent any more."""
        model = self._models[name]
        if model.over.is_set():
            self._turn_away(model, pending)
            return
        model.waiting.append(pending)
        self._wake(1)

    def resize(self, workers: int, rank: int) -> None:
        """Carry on as one of so many workers that share the endpoint."""
        share = self._quota.share(workers, rank)
        self._width = share.connections
        for _ in range(self._width - len(self._carriers)):
            carrier = asyncio.get_running_loop().create_task(self._carry())
            self._carriers.add(carrier)
        # Idle ones wake up and find that they are too many.
        self._wake(len(self._carriers) - self._width)
        self._gate.retune(share)

    def slow_down(self, told: Slowdown) -> None:
        """Take over what another worker learned."""
        if told.overload and self._now() - self._overloaded_at > _SAME_OVERLOAD_SECONDS:
            self._overloaded_at = self._now()
            self._gate.congested(self._gate.epoch)
        if told.pause > 0.0:
            self._gate.pause(told.pause)

    @property
    def idle(self) -> float:
        """Share of the connections for which no request waits."""
        return len(self._idle) / self._width if self._width else 0.0

    def halt(self) -> None:
        """Send nothing more but what is in flight."""
        self._halted = True
        for model in self._models.values():
            self._end(model)

    async def close(self) -> None:
        """Give up what is in flight, and close the connections."""
        carriers = tuple(self._carriers)
        for carrier in carriers:
            carrier.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)
        for model in self._models.values():
            await model.sender.close()
        await self._connections.close()

    def _wake(self, count: int) -> None:
        while count > 0 and self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                count -= 1

    def _end(self, model: _Model) -> None:
        model.over.set()
        waiting, model.waiting = model.waiting, deque()
        for pending in waiting:
            self._turn_away(model, pending)
        self._gate.dismiss(model)

    def _turn_away(self, model: _Model, pending: Pending) -> None:
        if self._halted or model.down is None:
            pending.resolve(Result.skipped())
        else:
            self._give_up(pending, model.down, 0)

    async def _carry(self) -> None:
        me = asyncio.current_task()
        while len(self._carriers) <= self._width or me is None:
            model = self._neediest()
            if model is None:
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
                continue
            pending = model.waiting.popleft()
            if not pending.wanted:
                pending.resolve(Result.skipped())
                continue
            model.held += 1
            try:
                await self._deliver(model, pending)
            except Exception as error:  # noqa: BLE001 - a bug must end the block, not the connection
                pending.fail(error)
            finally:
                model.held -= 1
        self._carriers.discard(me)

    def _neediest(self) -> _Model | None:
        """The model whose request is next; None if none waits."""
        best: _Model | None = None
        for model in self._models.values():
            if model.waiting and (best is None or model.held < best.held):
                best = model
        return best

    async def _deliver(self, model: _Model, pending: Pending) -> None:
        job = pending.job
        first = await self._attempt(model, job)
        if first is None:
            self._turn_away(model, pending)
            return
        reply, record = first
        attempts = 1
        if reply.retryable:
            reply, record, attempts = await self._insist(model, job, reply)
        if record is not None:
            self._breaker.succeeded()
            model.breaker.succeeded()
            self._stats.count(model.endpoint.name, reply, model.estimate.taken(job.body, reply))
            self._writer.put(pending, record, Result.stored(reply, attempts))
        elif self._halted and reply.retryable:
            pending.resolve(Result.skipped())
        else:
            self._judge(model, reply)
            self._give_up(pending, reply, attempts)

    async def _insist(self, model: _Model, job: Job, reply: Reply) -> tuple[Reply, bytes | None, int]:
        """Try again after a first failure; returns the last reply, its record if it is final, and all attempts."""
        endpoint, jitter = model.endpoint, int(job.digest[:8], 16) / 2**32
        policy = backoff(endpoint.retries, base=endpoint.backoff_base, jitter=jitter)
        next(policy)
        record, attempts = None, 1
        with suppress(StopIteration):
            while not await _pause(policy.send(reply), model.over):
                cause = reply.cause
                again = await self._attempt(model, job)
                if again is None:
                    break
                self._stats.retries[cause] += 1
                reply, record = again
                attempts += 1
        return reply, record, attempts

    def _judge(self, model: _Model, reply: Reply) -> None:
        """Give up the model, or the whole endpoint, where that was one failure too many."""
        if concerns_model(reply):
            if model.breaker.failed(reply) and model.down is None:
                model.down = reply
                self._end(model)
        elif self._breaker.failed(reply) and self._down is None:
            self._down = reply
            for each in self._models.values():
                each.down = each.down or reply
                self._end(each)

    def _give_up(self, pending: Pending, reply: Reply, attempts: int) -> None:
        self._stats.failures[reply.cause] += 1
        pending.resolve(Result.failed(reply, attempts))

    async def _attempt(self, model: _Model, job: Job) -> tuple[Reply, bytes | None] | None:
        """Send once when the limits allow it; None if the model is over before. The record is that of a final reply."""
        gate, stats = self._gate, self._stats
        tokens: float | None = model.estimate.guess(job.body) if gate.counts_tokens else 0.0
        if not gate.try_enter(tokens or 0.0):
            tokens = await gate.enter(partial(model.estimate.guess, job.body), model)
            if tokens is None:
                return None
        epoch = gate.epoch
        stats.sent += 1
        stats.in_flight += 1
        try:
            reply, record = await model.sender.send(job)
            self._heed(reply, epoch)
            if tokens:
                gate.correct(model.estimate.excess(tokens, job.body, reply))
            return reply, record
        finally:
            stats.in_flight -= 1
            gate.leave()

    def _heed(self, reply: Reply, epoch: int) -> None:
        """Go slower or faster, as an attempt suggests."""
        if reply.is_final:
            self._gate.succeeded()
            if reply.exhausted is None:
                return
        overloads, paused_until = self.learned
        if is_overload(reply) and self._gate.congested(epoch):
            self._overloaded_at = self._now()
            overloads += 1
        pause = longest_pause(reply)
        if pause > 0.0:
            self._gate.pause(pause)
            paused_until = max(paused_until, self._now() + pause)
        self.learned = overloads, paused_until

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def _pause(seconds: float, over: asyncio.Event) -> bool:
    """Wait, but not longer than until it is over; tells whether it is."""
    if seconds > 0:
        with suppress(TimeoutError):
            async with asyncio.timeout(
                seconds
            ):  # `wait_for` may lose a cancellation that comes with the event
                await over.wait()
    return over.is_set()
