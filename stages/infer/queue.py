"""The queue of an endpoint over HTTP, and the coroutines that send its requests, one per connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

from evalcube.stages.infer.admission import Admission, Feedback
from evalcube.stages.infer.counts import Report
from evalcube.stages.infer.deadline import wait_unless_over
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.endpoint_queue import EndpointQueue, ModelQueue, Refusal
from evalcube.stages.infer.jobs import FoundLimits, Job, Result, SharedJob, Slowdown, Stats
from evalcube.stages.infer.rates import Quota
from evalcube.stages.infer.replicas import ModelServers
from evalcube.stages.infer.reply import Reply
from evalcube.stages.infer.retry import (
    Breaker,
    backoff,
    concerns_model,
    is_beyond_limit,
    is_refusal,
    is_unfit,
    is_unreachable,
    retry,
    turn_of,
)
from evalcube.stages.infer.turns import LoopShare
from evalcube.stages.infer.wire import Sender
from evalcube.stages.infer.writer import Writer

_TLS = "tls"
_FIRST_RETRIES, _FIRST_SECONDS = 2, 5.0
"""Retries of a model's first request, where it seems that it cannot be asked, and seconds before others are sent."""
_LENT = 8
"""Requests for each connection that may wait for another attempt while others use it."""


class HttpQueue(EndpointQueue):
    """Sends each request by itself: one coroutine per connection takes the next one, and stays with it to its end.

    While a refused request waits for another attempt, it lends its connection to another coroutine.
    Models at one address with one key share its connections and rates. A free connection goes to the model that has
    the fewest.
    """

    def __init__(self, endpoint: Endpoint, quota: Quota, stats: Stats, writer: Writer) -> None:
        super().__init__(endpoint, stats, writer)
        self._quota, self._timeout = quota, endpoint.timeout
        self._models: dict[str, ModelQueue] = {}
        self._wanted: dict[ModelQueue, None] = {}
        """Those that have requests, and maybe some that had; most of many have none at a moment."""
        self._most_failures = max(2, min(quota.connections, 8))
        self._breaker = Breaker(self._most_failures)
        self._resting: dict[str, tuple[float, str]] = {}
        """By digest, until when requests wait for another attempt, seconds on the loop's clock, and why."""
        self._workers = 1
        self._own = self._size = 0
        """Connections of this worker if all have equal parts, and coroutines for them."""
        self._lent = 0
        """Those that belong to requests which wait for another attempt, and which others use."""
        self._admission = Admission()
        self.feedback = Feedback(self._admission, self._now)
        self.servers = ModelServers(endpoint, self._models, stats)
        self._idle: deque[asyncio.Future[None]] = deque()

    @property
    def idle(self) -> float:
        """Share of the connections for which no request waits, in [0, 1]."""
        # While a first request is waited for, more of them would be no use.
        found_out = all(model.proven or not model.waiting for model in tuple(self._models.values()))
        lent = self._size if self._admission.throttle.window else 0
        return min(len(self._idle) / lent, 1.0) if lent and found_out else 0.0

    def current_pause(self, now: float) -> tuple[float, str] | None:
        """The end of a pause for which requests wait, on the loop's clock, and why; None if none does.

        Requests that wait for another attempt are among those that wait.
        """
        # A copy, made in one step: the loop's thread may add a model meanwhile.
        models = tuple(self._models.values())
        held, waiting = sum(model.held for model in models), any(model.waiting for model in models)
        resting = tuple(self._resting.values())
        if self.feedback.paused[0] <= now and resting and not self._admission.throttle.in_flight:
            return min(resting)
        return self.feedback.paused if held or waiting else None

    def add(self, name: str, endpoint: Endpoint) -> None:
        """Serve a model too; see `evalcube.stages.infer.endpoint_queue.EndpointQueue.add`."""
        if name not in self._models:
            share = LoopShare(partial(self._stats.neighbours, endpoint.name))
            sender = Sender(endpoint, self._connections(endpoint), self._keys, share)
            model = ModelQueue(endpoint, sender, self._most_failures)
            model.down = self._down
            if self._halted or model.down is not None:
                model.over.set()
            self._models[name] = model

    def put(self, name: str, shared: SharedJob) -> None:
        """Queue a job, or resolve it at once where nothing is sent any more."""
        model = self._models[name]
        if model.over.is_set():
            self._turn_away(model, shared)
            return
        refusal = model.refusal(shared.job.sampler)
        if refusal is not None:
            self._give_up(shared, refusal, 0)
            return
        model.waiting.append(shared)
        self._wanted[model] = None
        self._wake(1)

    def resize(self, workers: int, runs: int = 1, place: int = 0) -> None:
        """Use this worker's part of the connections and rates from now on."""
        quota, self._workers = self._quota.of_run(runs, place), max(workers, 1)
        if workers and not self._size:
            # Nothing was sent until now: no refusal of that time says that nothing is let through.
            self.feedback.begin_again()
        self._own = -(-quota.connections // workers) if workers else 0
        self._admission.retune(quota, self._timeout, workers)
        self._use()

    def _use(self) -> None:
        """Have as many coroutines as connections: those of an equal part, or more if more are lent."""
        self._size = max(self._own, self._admission.throttle.window)
        for _ in range(self._most_tasks - len(self._tasks)):
            self._spawn(self._work())
        # Nobody is cancelled where they are too many: a request in flight is paid for. Busy coroutines leave after
        # their request; idle ones have none, so they are woken up to leave.
        self._wake(len(self._tasks) - self._most_tasks)

    def given_up(self, name: str) -> bool:
        """See the base class."""
        model = self._models.get(name)
        return self._down is not None or (model is not None and model.down is not None)

    def revive(self) -> None:
        """Ask again what was given up."""
        if self._halted:
            return
        self._down, self._breaker = None, Breaker(self._most_failures)
        self.feedback.begin_again()
        for model in self._models.values():
            if model.down is not None:
                model.revive()

    def slow_down(self, slowdown: Slowdown) -> None:
        """See `evalcube.stages.infer.admission.Feedback.slow_down`."""
        self.feedback.slow_down(slowdown)
        self._use()

    def stop(self, stops: int) -> None:
        """See the base class."""
        self._admission.throttle.stop(stops, self._now())

    @property
    def report(self) -> Report | None:
        """What was counted of requests, for the driver; None where there is nothing to decide."""
        waiting = sum(len(model.waiting) for model in tuple(self._models.values()))
        throttle = self._admission.throttle
        return throttle.gate.report(throttle.in_flight, self._admission.waiting + waiting)

    @property
    def found_limits(self) -> FoundLimits:
        """Limits that nobody declared, as far as they are known."""
        gate = self._admission.throttle.gate
        searched = self._quota.is_searched and not gate.is_paced
        return FoundLimits(gate.top_rate, gate.window if searched else None)

    def halt(self) -> None:
        """Send nothing more but what is in flight."""
        self._halted = True
        for model in self._models.values():
            self._end(model)

    def _senders(self) -> Iterable[Sender]:
        return [model.sender for model in self._models.values()]

    @property
    def _most_tasks(self) -> int:
        return self._size + self._lent

    def _wake(self, count: int) -> None:
        while count > 0 and self._idle:
            idle = self._idle.popleft()
            if not idle.done():  # cancelled by `close`: the next one has to do it
                idle.set_result(None)
                count -= 1

    def _end(self, model: ModelQueue, reply: Reply | None = None) -> None:
        """Send a model nothing more, because of a reply or as the run stops."""
        model.down = model.down or reply
        # Set first: it ends the pauses of those who wait for another attempt, and turns away whatever is put from now.
        model.over.set()
        while model.waiting:
            self._turn_away(model, model.waiting.popleft())
        self._fail_refusals(model)
        self._admission.dismiss(model)  # those at the limits may wait for minutes

    def _turn_away(self, model: ModelQueue, shared: SharedJob) -> None:
        # An order counts first: a request that was never sent because the run stops is no failure.
        if self._halted or model.down is None:
            shared.resolve(Result.skipped())
        else:
            self._give_up(shared, model.down, 0)

    def _refuse_waiting(self, reply: Reply) -> None:
        for model in self._models.values():
            self._end(model, reply)

    async def _work(self) -> None:
        """Deliver one request after another, until the connections are fewer than the coroutines."""
        me = asyncio.current_task()
        while len(self._tasks) <= self._most_tasks or me is None:
            model = self._next_model()
            if model is None:
                # A bare future, not a condition: putting a job wakes one coroutine.
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
                # The job may be gone by now, taken by another: look for the next model again.
                continue
            shared = model.waiting.popleft()
            if not shared.is_wanted:  # its block was abandoned, which leaves it in the queue
                shared.resolve(Result.skipped())
                continue
            model.held += 1
            try:
                await self._deliver(model, shared)
            except Exception as error:  # noqa: BLE001 - a bug must end the block, not the connection
                # A cancellation is none of these: it ends the coroutine, and the engine resolves the job.
                shared.fail(error)
            finally:
                model.held -= 1
                self.servers.done_with(shared.job)
                if model.refusals and not (model.held or model.waiting):
                    model.ask_control()  # nobody else's answer is to come
                    self._offer(model)
        # At once: the loop reports the task's end a turn later, and others must not leave as well in this turn.
        self._tasks.discard(me)

    def _next_model(self) -> ModelQueue | None:
        """The model whose request is next: of those with one that waits, that with the fewest in hand."""
        best: ModelQueue | None = None
        for model in tuple(self._wanted):
            if not model.waiting:
                del self._wanted[model]
            elif (model.proven or not model.held) and (best is None or model.held < best.held):
                best = model
        return best

    async def _deliver(self, model: ModelQueue, shared: SharedJob) -> None:
        job, began = shared.job, self._now()
        first = await self._attempt(model, job, first=shared is model.control)
        if first is None:
            self._turn_away(model, shared)
            return
        (reply, record), attempts = first, 1
        if reply.retryable:
            reply, record, attempts = await self._retry(model, job, first)
        refused = model.resent.pop(job.digest, None)
        attempts += 0 if refused is None else refused.attempts
        if record is not None and reply.is_final:
            self._breaker.note_success()
            model.note_success(job.sampler)
            if model.refusals:
                self._decide_refusals(model, began, self._workers, self._admission.throttle.gate.rank)
                self._offer(model)
            self._stats.count(model.endpoint.name, reply, model.estimate.tokens_taken(job.body, reply))
            if shared is model.control:
                model.control = None
                return
            # Put before this connection takes its next request: a kill loses at most one reply per connection.
            await self._writer.put(shared, record, Result.stored(reply, attempts))
        elif self._halted and reply.retryable:
            # Its retries were cut short by the halt. A failure would be the model's fault; this is the run's.
            shared.resolve(Result.skipped())
        elif record is not None and not model.over.is_set() and model.is_about_request(shared, reply):
            alike = refused is not None and refused.reply.cause == reply.cause
            model.refusals.append(Refusal(shared, reply, record, attempts, self._now(), alike))
            if model.breaker.note_failure(reply):
                model.ask_control()
                self._offer(model)
        else:
            self._fail(model, shared, reply, attempts)

    def _fail(self, model: ModelQueue, shared: SharedJob, reply: Reply, attempts: int) -> None:
        """End a request without an answer, and whatever else that ends."""
        if shared is model.control:
            self._fail_refusals(model)
        self._record_failure_of(model, reply)
        ended, sampler = model.refuse(shared.job.sampler, reply), shared.job.sampler
        refusal = (model.refusal(sampler) if reply.refused else None) or reply
        self._give_up(shared, refusal, attempts)
        for waiting in ended:
            self._give_up(waiting, refusal, 0)

    def _offer(self, model: ModelQueue) -> None:
        self._wanted[model] = None
        self._wake(len(model.waiting))

    def _record_failure_of(self, model: ModelQueue, reply: Reply) -> None:
        """Give up the model, or the whole endpoint, where that was one failure too many."""
        if is_beyond_limit(reply) and 0.0 < model.endpoint.patience <= self.feedback.shut_seconds:
            # Nothing was let through for so long: others would only wait as long again.
            self._end_all(reply)
            return
        if concerns_model(reply) or reply.is_refusal or reply.page:
            if model.breaker.note_failure(reply) or (reply.cause == _TLS and not model.proven):
                self._end(model, reply)
        elif not model.proven and is_unreachable(reply):
            self._end_all(reply)
        else:
            self._record_failure(reply, self._breaker)

    def _prove(self, model: ModelQueue) -> None:
        """Send a model as much as the limits allow: what is wrong with its address, name or key shows at once."""
        if not model.proven:
            model.proven = True
            self._wake(len(model.waiting))
            self.servers.identify(model)

    async def _retry(
        self, model: ModelQueue, job: Job, first: tuple[Reply, bytes | None]
    ) -> tuple[Reply, bytes | None, int]:
        """The last reply after a first failure, its record if it is final, and the number of all attempts."""
        endpoint = model.endpoint
        retries = endpoint.retries
        if is_unfit(first[0]) and not model.proven:
            retries = min(retries, _FIRST_RETRIES)
        # From the digest: spread evenly over requests, and no random state that a worker would have to seed.
        jitter = int(job.digest[:8], 16) / 2**32
        deadline = self._now() + endpoint.patience
        policy = backoff(
            retries,
            base=endpoint.backoff_base,
            jitter=jitter,
            patient=lambda reply: is_beyond_limit(reply) and self._now() < deadline,
            turn=turn_of(self._admission.throttle.gate, endpoint.backoff_base),
        )

        async def attempt(last: Reply, attempts: int) -> tuple[Reply, bytes | None] | None:
            # Once before all others; not again and again, as there may be other reasons why it alone is refused.
            return await self._attempt(model, job, first=attempts == 1 and is_refusal(last))

        async def rest(seconds: float, last: Reply) -> bool:
            with self._lending() if is_refusal(last) else nullcontext():
                return await self._rest(model, job, seconds, last)

        return await retry(first, attempt, policy, rest, self._stats.retries)

    @contextmanager
    def _lending(self) -> Iterator[None]:
        """Let others use the connection of a request that waits for another attempt."""
        if self._lent >= _LENT * self._size:
            yield
            return
        self._lent += 1
        if not self._idle and len(self._tasks) < self._most_tasks:
            self._spawn(self._work())
        try:
            yield
        finally:
            self._lent -= 1
            self._wake(len(self._tasks) - self._most_tasks)

    async def _rest(self, model: ModelQueue, job: Job, seconds: float, last: Reply) -> bool:
        """Wait for another attempt, but not longer than until the model is over; returns whether it is."""
        if seconds <= 0.0:
            return model.over.is_set()
        # The cause is one of our own words, none of the endpoint's.
        why = "refused" if is_refusal(last) else last.cause
        self._resting[job.digest] = self._now() + seconds, f"{why}: tried again"
        try:
            return await wait_unless_over(seconds, model.over)
        finally:
            del self._resting[job.digest]

    async def _attempt(
        self, model: ModelQueue, job: Job, *, first: bool = False
    ) -> tuple[Reply, bytes | None] | None:
        """Send once when the limits allow it; None if the model is over before. The record is that of a final reply.

        With `first` it goes before all others that wait for the limits.
        """
        admission, stats = self._admission, self._stats
        tokens: float | None = model.estimate.guess(job.body) if admission.throttle.counts_tokens else 0.0
        # Most requests may start at once, and then need neither a future nor a turn of the loop.
        if not admission.try_enter(tokens or 0.0):
            tokens = await admission.enter(partial(model.estimate.guess, job.body), model, first=first)
            if tokens is None:
                return None
        mark = admission.mark
        self.feedback.note_start(mark)
        stats.sent += 1
        stats.in_flight += 1
        stats.note_asking(model.endpoint.name)
        try:
            if not model.proven:
                asyncio.get_running_loop().call_later(_FIRST_SECONDS, self._prove, model)
            reply, record = await self.servers.send(model, job)
            if not model.proven and not (is_unfit(reply) or reply.refused):
                self._prove(model)
            self.feedback.adapt_rate(reply, mark)
            if tokens:
                admission.throttle.correct(model.estimate.excess(tokens, job.body, reply), self._now())
            return reply, record
        finally:
            # Also after a cancellation: a place that is never left would be missing for the rest of the run.
            stats.in_flight -= 1
            stats.note_asking(model.endpoint.name)
            admission.leave()

    async def close(self) -> None:
        """See the base class; what looks at servers ends first, as it uses the connections."""
        await self.servers.close()
        await super().close()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
