"""Sends blocks of requests and returns when their replies are durable: the client, with an event loop of its own.

A worker has one `Engine` for all its blocks, so that one block's slow tail never idles an endpoint. Any thread may call
it; the loop runs on a thread of its own, not on Dask's, whose heartbeats thousands of requests would delay. Models at
one address with one key are one `HttpQueue`; a model whose requests go in batches has a `BatchQueue`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from evalcube._together import Together
from evalcube.stages.infer.batch.lines import Batches
from evalcube.stages.infer.batch.queue import BatchQueue
from evalcube.stages.infer.counts import Report
from evalcube.stages.infer.endpoint import Endpoint, EngineInfo, InferenceError
from evalcube.stages.infer.endpoint_queue import EndpointQueue
from evalcube.stages.infer.jobs import (
    FoundLimits,
    Job,
    JobGroup,
    Lateness,
    Learned,
    Result,
    SharedJob,
    Slowdown,
    Stats,
)
from evalcube.stages.infer.queue import HttpQueue
from evalcube.stages.infer.rates import Quota, strictest
from evalcube.stages.infer.writer import Store, Writer

if sys.platform == "win32":  # uvloop is not made for it
    from asyncio import new_event_loop
else:
    from uvloop import new_event_loop

_CLOSING_SECONDS = 30.0
_OTHER_FILES = 256
"""Of a process, beside its connections to endpoints: cubes, caches, and Dask's own."""
_FEW_IDLE = 0.05
"""Share of connections that wait for a request for a moment, as answers come in faster than tasks can ask."""
_LOOK_SECONDS, _STOPPED_SECONDS = 0.5, 5.0
"""Between two looks at the clock, and from which on a process was stopped between them, and is not only busy."""
_SWITCH_SECONDS = 0.001
"""Between two switches of Python's threads while there is an engine: for as long it waits each time that it has read or
written a socket while other threads make questions or grade."""
_GARBAGE = 50_000
"""New objects after which Python looks for garbage meanwhile. Blocks under way are many objects, none of them garbage,
and with Python's own 700 a tenth of the time went into looking through them."""


@contextmanager
def _tune_interpreter() -> Iterator[None]:
    switches, (garbage, *older) = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(min(switches, _SWITCH_SECONDS))
    if garbage:  # not where somebody has switched that off
        gc.set_threshold(max(garbage, _GARBAGE), *older)
    try:
        yield
    finally:
        sys.setswitchinterval(switches)
        gc.set_threshold(garbage, *older)


_tuned_for_engines = Together(_tune_interpreter)


class Engine:
    """Sends requests and stores the replies that count. Blocks of any thread may run in it at once.

    Parameters
    ----------
    endpoints
        By label of the model.
    store
        Where final replies are put before their request counts as done.
    workers, runs
        As of `share_out`. With 0 workers nothing is sent until that is called: who starts alone must not take all the
        connections.
    lent
        By label of the model, what a driver decided before there was an engine.
    clock
        Goes on while the machine sleeps. Given where a driver may have lent to others what this engine had, once it
        finds that it was stopped for a while.
    batches
        What is kept of batches; needed where an endpoint has some.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        store: Store,
        *,
        workers: int = 1,
        runs: Mapping[str, tuple[int, int]] | None = None,
        lent: Mapping[str, Slowdown] | None = None,
        clock: Callable[[], float] | None = None,
        batches: Batches | None = None,
    ) -> None:
        self.stats = Stats()
        self._batches = batches
        self._endpoints = dict(endpoints)
        self._place = (workers, runs or {})
        self._accounts = {name: endpoint.account for name, endpoint in self._endpoints.items()}
        self._lent = {self._accounts[name]: each for name, each in (lent or {}).items()}
        """By address and key, what was decided last."""
        self._stops = 0
        self._queues: dict[tuple[str, str | None], EndpointQueue] = {}
        self._reported: dict[tuple[str, str | None], Learned] = {}
        self._counted: dict[tuple[str, str | None], Report | None] = {}
        """What `slowdowns` returned last, by address and key."""
        self._in_flight: dict[str, SharedJob] = {}
        """Jobs that are queued or in flight, by digest."""
        self._callers: dict[Hashable, JobGroup] = {}
        self._halted = False
        self._closed = False
        # Held while a call is handed to the loop: `close` sets `_closed` under it, so that nothing is handed over to a
        # loop that has stopped, where it would wait for ever.
        self._state = threading.Lock()
        self._loop = new_event_loop()
        self.stats.lateness = Lateness(self._loop)
        self._loop.call_soon(self.stats.lateness.watch)
        if clock is not None:
            self._loop.call_soon(self._watch_stops, clock, clock())
        self._writer = Writer(store, self._loop, self._fail)
        # A daemon: a worker that is ordered to exit must not wait for an endpoint.
        self._thread = threading.Thread(target=self._serve, name="evalcube-infer", daemon=True)
        self._thread.start()

    def run(
        self,
        model: str,
        jobs: Sequence[Job],
        *,
        caller: Hashable = None,
        unwanted: Callable[[], Exception | None] = lambda: None,
    ) -> list[Result]:
        """Send `jobs` to a model's endpoint and wait; the results come in the order of the jobs.

        Blocks the calling thread. Equal digests in flight, of whichever call, are sent once.
        """
        block = JobGroup(len(jobs))
        with self._state:
            if self._closed:
                return [Result.skipped()] * len(jobs)
            self._callers[caller] = block
            error = unwanted()
            if error is not None:
                del self._callers[caller]
                raise error
            self._loop.call_soon_threadsafe(self._submit, model, jobs, block)
        try:
            return block.future.result()
        finally:
            # Where the wait itself was interrupted: jobs that only this block wants are then dropped from the queues.
            block.waiting = False
            with self._state:
                # A retried task may have begun another call under the same name.
                if self._callers.get(caller) is block:
                    del self._callers[caller]

    def abandon(self, caller: Hashable, error: Exception) -> None:
        """Have a call raise an error, as nobody waits for it; what is in flight ends as usual, the rest is not sent."""
        with self._state:
            block = self._callers.get(caller)
            if block is not None and not self._closed:
                self._loop.call_soon_threadsafe(block.fail, error)

    def share_out(self, workers: int, runs: Mapping[str, tuple[int, int]] | None = None) -> None:
        """Share the endpoints' limits with others; requests in flight above what is lent then end as usual."""
        self._tell(self._resize, workers, runs or {})

    def given_up(self, model: str) -> bool:
        """Whether a model is asked nothing more here, as its endpoint or itself could not be asked."""
        queue = self._queues.get(self._accounts[model])
        return queue is not None and queue.given_up(model)

    def revive(self, model: str) -> None:
        """Ask again where a model's endpoint was given up."""
        queue = self._queues.get(self._accounts[model])
        if queue is not None:
            self._tell(queue.revive)

    def slowdowns(self) -> list[Slowdown]:
        """What this engine learned of overloaded endpoints since the last call, for others that share them."""
        news = []
        queues = self._http_queues()
        for account in dict.fromkeys((*queues, *tuple(self._lent))):
            queue, reported_last = queues.get(account), self._counted.get(account)
            reported = self._reported.get(account, Learned())
            learned = Learned() if queue is None else queue.feedback.lessons
            report = self._lent[account].report_unused(self._stops) if queue is None else queue.report
            self._reported[account], self._counted[account] = learned, report
            if learned != reported or report != reported_last:
                # Seconds from now, as the clocks of two machines have nothing in common.
                later = learned.paused_until > reported.paused_until
                pause = max(learned.paused_until - self._loop.time(), 0.0) if later else 0.0
                reason, overload = learned.reason if pause else "", learned.overloads > reported.overloads
                news.append(Slowdown(self._label(account), pause, reason, overload, report))
        return news

    def found_limits(self) -> dict[str, FoundLimits]:
        """By label of any model, limits of its endpoint that nobody declared and that were found out."""
        limits = {self._label(account): queue.found_limits for account, queue in self._http_queues().items()}
        return {label: each for label, each in limits.items() if each != FoundLimits()}

    def engines(self) -> dict[str, list[EngineInfo]]:
        """By label of the model, what serves it, as far as servers say so: each engine once."""
        by_model: dict[str, set[EngineInfo]] = {}
        for queue in self._http_queues().values():
            for (label, _), info in queue.servers.engines.items():
                by_model.setdefault(label, set()).add(info)
        return {label: sorted(infos) for label, infos in by_model.items()}

    def waiting(self) -> dict[str, dict[str, object]]:
        """By label of any model, for how many seconds nothing is sent to its endpoint while requests wait, and why."""
        pauses: dict[str, dict[str, object]] = {}
        now = self._loop.time()
        for account, queue in self._http_queues().items():
            paused = queue.current_pause(now)
            if paused is not None and paused[0] > now:
                pauses[self._label(account)] = {"seconds": paused[0] - now, "reason": paused[1]}
        return pauses

    def _http_queues(self) -> dict[tuple[str, str | None], HttpQueue]:
        """Those that do not gather batches, which have nothing to tell of limits."""
        # A copy, made in one step: the loop's thread may add a queue meanwhile.
        queues = tuple(self._queues.items())
        return {account: queue for account, queue in queues if isinstance(queue, HttpQueue)}

    def _label(self, account: tuple[str, str | None]) -> str:
        """Any model's; the account itself holds the key, and would travel over the network."""
        return next(name for name, each in self._accounts.items() if each == account)

    def starved_models(self) -> list[str]:
        """Labels of the models to whose endpoints more could be sent at this moment, if there were requests."""
        idle = {account for account, queue in self._http_queues().items() if queue.idle > _FEW_IDLE}
        return [name for name, account in self._accounts.items() if account in idle]

    def slow_down(self, slowdown: Slowdown) -> None:
        """Take over what another engine learned; of a model that this one does not know, nothing."""
        self._tell(self._slow_down, slowdown)

    def stop(self) -> None:
        """Send nothing more until the driver has lent something anew: it may have lent to others what was here."""
        self._tell(self._stop)

    def drain(self) -> None:
        """Start no further request; those in flight end as usual, the others come back as skipped."""
        self._tell(self._halt)

    def close(self) -> None:
        """Stop at once: requests in flight are given up, records already received are stored."""
        with self._state:
            if self._closed:
                return
            self._closed = True
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(2 * _CLOSING_SECONDS)
        finally:
            # Also when a store hangs beyond that: a thread that stays behind must not keep the worker from its exit.
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSING_SECONDS)

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        """Have the loop call something, unless it is closed."""
        with self._state:
            if not self._closed:
                self._loop.call_soon_threadsafe(function, *arguments)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            with _tuned_for_engines():
                self._loop.run_forever()
        finally:
            self._loop.close()

    def _submit(self, model: str, jobs: Sequence[Job], block: JobGroup) -> None:
        try:
            queue = self._queue(model)
        except Exception as error:  # noqa: BLE001 - raised again where the block is waited for
            block.fail(error)
            return
        for index, job in enumerate(jobs):
            shared = self._in_flight.get(job.digest)
            new = shared is None
            if shared is None:
                shared = SharedJob(job, self._in_flight)
            # The block first: a queue that sends nothing any more resolves the job at once, for those who wait by then.
            shared.add(block, index)
            if new:
                queue.put(model, shared)

    def _queue(self, model: str) -> EndpointQueue:
        account, endpoint = self._accounts[model], self._endpoints[model]
        queue = self._queues.get(account)
        if queue is None:
            queue = self._queues[account] = self._new_queue(endpoint)
            if self._stops:
                queue.stop(self._stops)
            self._begin(account, queue)
            if self._halted:
                queue.halt()
        queue.add(model, endpoint)
        return queue

    def _new_queue(self, endpoint: Endpoint) -> EndpointQueue:
        if endpoint.batch is None:
            return HttpQueue(endpoint, self._quota(endpoint.account), self.stats, self._writer)
        if self._batches is None:
            raise InferenceError(
                f"models[{endpoint.name}].batch: there is no place for the notes of batches."
            )
        return BatchQueue(endpoint, self.stats, self._writer, self._batches)

    def _begin(self, account: tuple[str, str | None], queue: EndpointQueue) -> None:
        """Give a queue what it has of its endpoint."""
        workers, runs = self._place
        shared = [runs[name] for name, each in self._accounts.items() if each == account and name in runs]
        queue.resize(workers, *max(shared, default=(1, 0)))
        if account in self._lent:
            queue.slow_down(self._lent[account])

    def _resize(self, workers: int, runs: Mapping[str, tuple[int, int]]) -> None:
        self._place = (workers, runs)
        for account, queue in self._queues.items():
            self._begin(account, queue)

    def _watch_stops(self, clock: Callable[[], float], before: float) -> None:
        """Look again and again whether this process was stopped: by a signal, a debugger, or with its machine."""
        now = clock()
        if now - before > _STOPPED_SECONDS:
            self._stop()
        self._loop.call_later(_LOOK_SECONDS, self._watch_stops, clock, now)

    def _stop(self) -> None:
        self._stops += 1
        for queue in self._queues.values():
            queue.stop(self._stops)

    def _quota(self, account: tuple[str, str | None]) -> Quota:
        quota = strictest(
            self._endpoints[name].quota for name, each in self._accounts.items() if each == account
        )
        if not quota.is_searched:
            return quota
        # What nobody asked for must not take the files that others need.
        room = _open_files() // len(set(self._accounts.values()))
        return replace(quota, connections=max(min(quota.connections, room), 1))

    def _slow_down(self, slowdown: Slowdown) -> None:
        account = self._accounts.get(slowdown.model)
        if account is None:
            return
        if slowdown.setting is not None:
            self._lent[account] = slowdown
        if account in self._queues:
            self._queues[account].slow_down(slowdown)

    def _halt(self) -> None:
        self._halted = True
        for queue in self._queues.values():
            queue.halt()

    def _fail(self, problem: Exception) -> None:
        """End all calls, as a reply to any of them might be lost like the one that could not be stored."""
        for shared in tuple(self._in_flight.values()):
            shared.fail(problem)

    async def _close(self) -> None:
        self._halt()
        await asyncio.gather(*(queue.close() for queue in self._queues.values()))
        # After the queues: they put their last records while they end.
        await self._writer.close(_CLOSING_SECONDS)
        # Given up in flight, or not stored because the store hangs: somebody waits for each of them.
        for shared in tuple(self._in_flight.values()):
            shared.resolve(Result.skipped())


def _open_files() -> int:
    """How many connections a process may have beside its other files."""
    try:
        import resource
    except ImportError:  # on Windows nothing bounds them
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft - min(soft // 2, _OTHER_FILES)


__all__ = ["Engine", "InferenceError", "Store"]
