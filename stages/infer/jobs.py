"""What an engine takes and returns: jobs and who waits for them, results, what it learned, and its running totals.

Equal jobs in flight are sent once (`SharedJob`). Blocks and shared jobs belong to the event loop's thread, but for
`JobGroup.future` and `JobGroup.waiting`, which callers of other threads use.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalcube.stages.infer.counts import Report
from evalcube.stages.infer.reply import Reply
from evalcube.stages.infer.sharing import Setting

_PERIOD_SECONDS = 0.05
_TICK_SECONDS = 0.001
"""What a timer may be late of itself."""
_EACH = 5
"""Replies from one look at the rest of its turn to the next."""
_WEIGHT = 0.2
"""Of the newest look in the running means."""


class Lateness:
    """Looks again and again how late a timer is, and how long the rest of a turn takes in which a reply has come.

    Parameters
    ----------
    loop
        Whose lateness it is. All methods belong to its thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._late = self._turn = self._due = 0.0
        self._replies = 0

    def watch(self) -> None:
        """Look from now on."""
        self._due = time.monotonic() + _PERIOD_SECONDS
        self._loop.call_later(_PERIOD_SECONDS, self._look)

    def of_reply(self) -> float:
        """Seconds that a request whose reply goes on now has waited for this process, as is usual lately."""
        # Looked at from replies, as few turns, and long ones, hold most of them; of any place in the turn, by turns.
        self._replies += 1
        if self._replies % _EACH == 0:
            self._loop.call_soon(self._note_turn, time.monotonic())
        # Who waits for a reply goes on in the turn after the one in which it is read.
        return self._late + self._turn

    def _look(self) -> None:
        late = max(time.monotonic() - self._due - _TICK_SECONDS, 0.0)
        self._late += _WEIGHT * (late - self._late)
        self.watch()

    def _note_turn(self, begun: float) -> None:
        self._turn += _WEIGHT * (time.monotonic() - begun - self._turn)


class Job(NamedTuple):
    """One request to send."""

    digest: str
    """See `evalcube.stages.infer.apis.Request`."""
    body: bytes
    """Sent as it stands, but for the ending that asks for a stream."""
    headers: Mapping[str, str] | None = None
    """Headers of this request alone; no part of the digest."""
    sampler: str = ""
    """Whose parameters it has: those of one model's requests with the same name are the same."""


class Result(NamedTuple):
    """What became of one job."""

    kind: str
    """``stored``, ``failed`` or ``skipped`` (never sent, because the run stops)."""
    cause: str = ""
    """See `evalcube.stages.infer.reply.Reply.cause`."""
    detail: str = ""
    """What the endpoint said of a failure, on one line, for people."""
    attempts: int = 0
    """Exchanges with the endpoint; 0 where the request was never sent in this run."""
    prompt_tokens: int = 0
    """As the endpoint counted them; 0 where it does not say."""
    completion_tokens: int = 0
    """As the endpoint counted them; 0 where it does not say."""

    @classmethod
    def stored(cls, reply: Reply, attempts: int) -> Result:
        """The result of a job whose `reply` counts and is in the store, after `attempts`."""
        return cls("stored", reply.cause, "", attempts, reply.prompt_tokens, reply.completion_tokens)

    @classmethod
    def failed(cls, reply: Reply, attempts: int) -> Result:
        """The result of a job whose `reply` to the last of its `attempts` does not count."""
        return cls("failed", reply.cause, reply.detail, attempts)

    @classmethod
    def skipped(cls) -> Result:
        """The result of a job that was not sent, or not waited for, because the run stops."""
        return cls("skipped")


@dataclass(frozen=True)
class Slowdown:
    """What one engine learned of an endpoint, for the others that share it."""

    model: str
    """Label of any model at the endpoint."""
    pause: float = 0.0
    """Seconds in which nothing should start."""
    reason: str = ""
    """Why, for people; see `evalcube.stages.infer.retry.pause_reason`."""
    overload: bool = False
    """Whether requests in flight became fewer; for the log of events alone."""
    report: Report | None = None
    """What this engine counted, for the driver."""
    setting: Setting | None = None
    """What the driver decided for all."""
    worker: str = ""
    """Who learned it, or is told what was decided, by the name that the driver knows it by."""

    def report_unused(self, stops: int = 0) -> Report | None:
        """Return the report of a worker that has asked nothing yet since it was told; see `Setting.report_unused`."""
        return None if self.setting is None else self.setting.report_unused(self.worker, stops)


class Learned(NamedTuple):
    """What a queue learned of its endpoint so far; replaced as a whole, so that other threads need no lock."""

    overloads: int = 0
    """How often requests in flight became fewer here."""
    paused_until: float = -math.inf
    """The end of the last pause that was asked for, seconds on the loop's clock."""
    reason: str = ""
    """Why it was."""


@dataclass(frozen=True, slots=True)
class FoundLimits:
    """Limits of an endpoint that nobody declared, as one worker met them; None where there seems to be none."""

    requests: float | None = None
    """Requests per second."""
    window: int | None = None
    """Requests in flight that this worker found a use for, without being refused."""


_TOTALS = (
    "sent replies in_flight prompt_tokens completion_tokens usage late answered retries failures".split()
)


@dataclass
class Stats:
    """Running totals of one engine; written by its loop, read by anyone."""

    sent: int = 0
    """Attempts, retries included."""
    replies: int = 0
    """Replies that count."""
    in_flight: int = 0
    """Requests at the endpoints now, those in batches too."""
    prompt_tokens: int = 0
    """Of replies that count, as the endpoints counted them."""
    completion_tokens: int = 0
    """Of replies that count, as the endpoints counted them."""
    usage: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """By label of the model, tokens of prompts and completions of replies that count, guessed if none are reported; and
    of prompts those that the endpoint had in its cache."""
    late: dict[str, float] = field(default_factory=dict)
    """By label of the model, seconds that requests with replies that count waited for this process: for its CPU."""
    lateness: Lateness | None = None
    """Of the engine's loop."""
    answered: Counter[str] = field(default_factory=Counter)
    """Replies that count, by label of the model."""
    retries: Counter[str] = field(default_factory=Counter)
    """Retried attempts by cause."""
    failures: Counter[str] = field(default_factory=Counter)
    """Requests given up, by cause."""
    asked: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By label of the model, when its first request was sent and its last one ended; on the monotonic clock."""

    def note_asking(self, model: str) -> None:
        """A request of this model, by its label, is sent or has ended."""
        now = time.monotonic()
        self.asked[model] = self.asked.get(model, (now, now))[0], now

    def neighbours(self, model: str) -> int:
        """How many other models have sent a request, or had a reply, within the last second."""
        since = time.monotonic() - 1.0
        return sum(ended >= since and name != model for name, (_, ended) in tuple(self.asked.items()))

    def count(self, model: str, reply: Reply, taken: tuple[float, float]) -> None:
        """Add a reply that counts."""
        self.replies += 1
        self.answered[model] += 1
        if self.lateness is not None:
            self.late[model] = self.late.get(model, 0.0) + self.lateness.of_reply()
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        prompts, completions, cached = self.usage.get(model, (0.0, 0.0, 0.0))
        self.usage[model] = prompts + taken[0], completions + taken[1], cached + reply.cached_tokens

    def snapshot(self) -> dict[str, Any]:
        """The totals as plain values that travel as a message."""
        totals = {name: getattr(self, name) for name in _TOTALS}
        return {name: dict(total) if isinstance(total, dict) else total for name, total in totals.items()}


class JobGroup:
    """The jobs of one caller; its future is done with the last of them, or with the first that cannot be stored.

    Parameters
    ----------
    size
        Number of jobs.
    """

    __slots__ = ("_left", "_results", "future", "waiting")

    def __init__(self, size: int) -> None:
        # Of `concurrent.futures`: the caller waits on a thread without an event loop.
        self.future: Future[list[Result]] = Future()
        self.waiting = True
        """Whether somebody still wants the results. A plain flag: a caller that clears it late costs one request."""
        self._results = [Result.skipped()] * size
        self._left = size
        if not size:
            self._finish()

    def settle(self, index: int, result: Result) -> None:
        """Note `result` as that of job number `index`; to be called once for each."""
        self._results[index] = result
        self._left -= 1
        if not self._left:
            self._finish()

    def fail(self, error: BaseException) -> None:
        """End the block without results; its caller gets `error` raised."""
        # Jobs of a block that ended already may fail one after another: only the first error counts.
        if self.waiting:
            self.waiting = False
            self.future.set_exception(error)

    def _finish(self) -> None:
        if self.waiting:
            self.waiting = False
            self.future.set_result(self._results)


class SharedJob:
    """One job that is queued or in flight, and the blocks that wait for it.

    Parameters
    ----------
    job
        What is to be sent.
    register
        Where jobs are found by digest; this one takes itself out when it is over.
    """

    __slots__ = ("_register", "_waiters", "job")

    def __init__(self, job: Job, register: MutableMapping[str, SharedJob]) -> None:
        self.job = job
        self._register = register
        self._waiters: list[tuple[JobGroup, int]] = []
        register[job.digest] = self

    def add(self, block: JobGroup, index: int) -> None:
        """Let `block` have the result too, as that of its job number `index`."""
        self._waiters.append((block, index))

    @property
    def is_wanted(self) -> bool:
        """Whether any block still waits for it."""
        return any(block.waiting for block, _ in self._waiters)

    def resolve(self, result: Result) -> None:
        """Give `result` to all who wait; a second call does nothing."""
        for block, index in self._end():
            block.settle(index, result)

    def fail(self, error: BaseException) -> None:
        """End all blocks that wait with `error`."""
        for block, _ in self._end():
            block.fail(error)

    def _end(self) -> list[tuple[JobGroup, int]]:
        self._register.pop(self.job.digest, None)
        # Taken out first: whoever resolves it a second time finds nobody.
        waiters, self._waiters = self._waiters, []
        return waiters
