"""Servers with limits and the workers that ask them, on a clock of their own: minutes in a moment, always the same."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from evalcube.stages.infer.counts import Mark
from evalcube.stages.infer.rates import Quota, Throttle
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.infer.retry import Policy, backoff, is_beyond_limit, turn_of
from evalcube.stages.infer.sharing import Setting, Shared

RETRY_BASE = 0.5
RESTING = 8
"""Requests for each connection that may wait for another attempt."""


@dataclass(frozen=True)
class Outcome:
    """Of a simulation, from its start on or after a warm-up."""

    accepted: int
    refused: int
    seconds: float
    found: float | None
    """Requests per second that were found."""
    failed: int = 0
    """Requests that were given up, in the whole simulation."""
    in_flight: float = 0.0
    waited: float = 0.0
    """Medians: requests in flight, and seconds waited for an answer."""
    overdue: int = 0
    """Requests that no answer came to in ten minutes, in the whole simulation."""

    @property
    def refused_share(self) -> float:
        return self.refused / max(self.accepted + self.refused, 1)

    def use(self, rate: float) -> float:
        """Share of a rate that was used."""
        return self.accepted / self.seconds / rate


@dataclass(frozen=True)
class Sweep:
    """What became of a number of requests."""

    accepted: int
    refused: int
    failed: int
    seconds: float
    tail: float
    """Seconds from the last answer to a request that was never refused until all were answered."""


@dataclass(eq=False)
class _Request:
    """One request on its way; `policy` decides how long it waits after a refusal."""

    policy: Policy
    refusals: int = 0


class _Simulation:
    def __init__(
        self,
        server: Any,
        latency: Callable[[random.Random], float],
        *,
        workers: int,
        connections: int,
        start: int,
        requests: float,
        status: int,
        jitter: float,
        skew: float,
        seed: int,
        turn: float = 0.0,
    ) -> None:
        self.server, self.latency, self.jitter = server, latency, jitter
        self.status = status
        self.random = random.Random(seed)
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.serving = 0
        self.accepted: list[float] = []
        self.refused: list[float] = []
        self.failed = self.overdue = 0
        self.waits: list[tuple[float, float, int]] = []
        """When an answer came, how long it was waited for, and what was in flight."""
        self.last_first = 0.0
        """When the last request was let through that was never refused."""
        self.throttles = [Throttle() for _ in range(workers)]
        self.lines: list[deque[_Request]] = [deque() for _ in range(workers)]
        """Those who wait at the limits, as in `Admission`."""
        self.left = [requests / workers] * workers
        self.busy, self.resting = [0] * workers, [0] * workers
        self.own = -(-connections // workers)
        self.size = [self.own] * workers
        self.turn = turn
        self.timers = [math.inf] * workers
        quota, names = Quota(connections, start=start), [str(rank) for rank in range(workers)]
        self.shared = Shared({"m": (quota, 600.0)}, ["m"])
        for rank, throttle in enumerate(self.throttles):
            throttle.gate.offset = self.random.uniform(-skew, skew)
            throttle.retune(quota, 0.0, 600.0, workers)
            self.at(0.001 * rank, lambda rank=rank: self.ask(rank))
        if workers > 1:
            setting = self.shared.decide(names, names, 0.0)["m"]
            for rank in self.ranks:
                self.obey(rank, setting)
            self.at(0.5, self.report)
        if turn:
            self.at(turn, self.next_turn)

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), what))

    def run(self, until: float) -> None:
        while self.events and self.events[0][0] <= until and any(self.open(rank) for rank in self.ranks):
            self.now, _, what = heapq.heappop(self.events)
            what()

    @property
    def ranks(self) -> range:
        return range(len(self.throttles))

    def more(self, rank: int) -> int:
        """How many requests nobody has taken in hand yet; none where it is another worker's turn to have some."""
        resting = self.turn and self.now // self.turn % len(self.throttles) == rank
        return 0 if resting else int(min(self.left[rank], 1e6))

    def next_turn(self) -> None:
        for rank in self.ranks:
            self.ask(rank)
        self.at(self.now + self.turn, self.next_turn)

    def open(self, rank: int) -> float:
        return self.left[rank] + self.busy[rank] + self.resting[rank]

    def ask(self, rank: int) -> None:
        """Take as many requests in hand as there are connections, as `HttpQueue` does."""
        size = self.size[rank]
        while self.more(rank) and self.busy[rank] < size and self.resting[rank] <= RESTING * size:
            self.left[rank] -= 1
            self.busy[rank] += 1
            throttle = self.throttles[rank]
            policy = backoff(
                5,
                base=RETRY_BASE,
                jitter=self.random.random(),
                patient=is_beyond_limit,
                turn=turn_of(throttle.gate, RETRY_BASE),
            )
            next(policy)
            self.lines[rank].append(_Request(policy))
        self.admit(rank)

    def admit(self, rank: int) -> None:
        """Start all who may start, and come back when the next one may, as `Admission` does."""
        if self.now >= self.timers[rank]:
            self.timers[rank] = math.inf
        throttle, line = self.throttles[rank], self.lines[rank]
        while line:
            wait = throttle.wait(0.0, self.now)
            if wait > 0.0:
                due = self.now + max(wait, 0.001)
                if due < self.timers[rank] - 1e-12:
                    self.timers[rank] = due
                    self.at(due, lambda: self.admit(rank))
                return
            throttle.start(0.0, self.now)
            self.send(rank, line.popleft())

    def send(self, rank: int, request: _Request) -> None:
        throttle = self.throttles[rank]
        sent = Mark(self.now, throttle.in_flight, throttle.gate.epoch)
        way = self.random.uniform(0.0, self.jitter) if self.jitter else 0.0
        self.at(self.now + 0.001 + way, lambda: self.arrive(rank, request, sent))

    def arrive(self, rank: int, request: _Request, sent: Mark) -> None:
        if self.server.asked(self.now, self.serving):
            self.accepted.append(self.now)
            self.serving += 1
            seconds = self.latency(self.random)
            # One that has slots or batches works on what it let in by itself.
            serve = getattr(self.server, "serve", lambda seconds, done, _: self.at(self.now + seconds, done))
            serve(seconds, lambda: self.served(rank, request, sent, seconds), self)
        else:
            self.refused.append(self.now)
            pause = self.server.pause(self.now)
            self.at(self.now + 0.001, lambda: self.turned_away(rank, request, sent, pause))

    def served(self, rank: int, request: _Request, sent: Mark, seconds: float) -> None:
        self.waits.append((self.now, self.now - sent.started, self.serving))
        self.serving -= 1
        throttle = self.throttles[rank]
        throttle.in_flight -= 1
        throttle.note_passed(self.now, sent, max(50.0 * seconds, 1.0))
        self.overdue += self.now - sent.started > 600.0
        if not request.refusals:
            self.last_first = self.now
        self.busy[rank] -= 1
        self.ask(rank)

    def turned_away(self, rank: int, request: _Request, sent: Mark, pause: float) -> None:
        throttle = self.throttles[rank]
        throttle.in_flight -= 1
        throttle.note_refused(self.now, sent, pause)
        if pause:
            throttle.pause(pause, self.now)
        request.refusals += 1
        self.busy[rank] -= 1
        reply = Reply(RetryClass.RETRY, f"http {self.status}", retry_after=pause or None)
        try:
            wait = request.policy.send(reply)
        except StopIteration:
            self.failed += 1
        else:
            self.resting[rank] += 1
            self.at(self.now + wait, lambda: self.again(rank, request))
        self.ask(rank)

    def again(self, rank: int, request: _Request) -> None:
        self.resting[rank] -= 1
        self.busy[rank] += 1
        if request.refusals == 1:
            self.lines[rank].appendleft(request)
        else:
            self.lines[rank].append(request)
        self.admit(rank)

    def report(self) -> None:
        """Workers tell the driver what they counted, and are told what it decided."""
        for rank, throttle in enumerate(self.throttles):
            counted = throttle.gate.report(throttle.in_flight, len(self.lines[rank]) + self.more(rank))
            self.at(
                self.now + self.late(),
                lambda rank=rank, counted=counted: self.shared.hear(str(rank), "m", counted),
            )
        names = [str(rank) for rank in self.ranks]
        for setting in self.shared.decide(names, names, self.now).values():
            for rank in self.ranks:
                self.at(self.now + self.late(), lambda rank=rank, setting=setting: self.obey(rank, setting))
        self.at(self.now + 0.5, self.report)

    def late(self) -> float:
        return 0.1 + 0.25 * self.random.random()

    def obey(self, rank: int, setting: Setting) -> None:
        self.throttles[rank].obey(setting, self.now, str(rank))
        self.size[rank] = max(self.own, self.throttles[rank].window)
        self.admit(rank)


def simulate_sweep(
    server: Any, requests: int, *, workers: int = 1, connections: int = 64, status: int = 429, seed: int = 0
) -> Sweep:
    """What became of a sweep of so many requests, which ends; see `simulate`."""
    world = _Simulation(
        server,
        lambda _: 0.05,
        workers=workers,
        connections=connections,
        start=connections,
        requests=requests,
        status=status,
        jitter=0.001,
        skew=0.0,
        seed=seed,
    )
    world.run(math.inf)
    return Sweep(
        len(world.accepted), len(world.refused), world.failed, world.now, world.now - world.last_first
    )


def simulate(
    server: Any,
    *,
    latency: Callable[[random.Random], float] | float = 0.05,
    workers: int = 1,
    connections: int = 64,
    start: int = 64,
    seconds: float = 180.0,
    warm_up: float = 60.0,
    jitter: float = 0.001,
    skew: float = 0.0,
    seed: int = 0,
    status: int = 429,
    turn: float = 0.0,
) -> tuple[Outcome, Outcome]:
    """The outcome of the warm-up, and of the time after it, with more to ask than the server takes.

    Answers take `latency` seconds, or what it draws; `jitter` is the most by which one is late, `skew` the most by
    which workers' clocks are wrong. Connections, at first `start`, are those of all workers together. Refusals have a
    `status`: 503 without a pause may as well be an outage, and is not tried again for ever. For `turn` seconds each,
    one worker after another has nothing to ask.
    """
    draw = latency if callable(latency) else lambda _: latency
    world = _Simulation(
        server,
        draw,
        workers=workers,
        connections=connections,
        start=start,
        requests=math.inf,
        status=status,
        jitter=jitter,
        skew=skew,
        seed=seed,
        turn=turn,
    )
    world.run(seconds)

    def outcome(begin: float, end: float) -> Outcome:
        accepted = sum(begin <= at < end for at in world.accepted)
        refused = sum(begin <= at < end for at in world.refused)
        waits = [row for row in world.waits if begin <= row[0] < end] or [(0.0, 0.0, 0)]
        return Outcome(
            accepted,
            refused,
            end - begin,
            world.throttles[0].gate.top_rate,
            world.failed,
            median(row[2] for row in waits),
            median(row[1] for row in waits),
            world.overdue,
        )

    return outcome(0.0, warm_up), outcome(warm_up, seconds)
