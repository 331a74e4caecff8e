"""What an engine knows of a queue of requests to one endpoint, whichever way they travel.

`evalcube.stages.infer.queue.HttpQueue` sends each request by itself, `evalcube.stages.infer.batch.queue.BatchQueue`
many together. All methods belong to the event loop's thread; only `lessons`, `found_limits`, `idle` and `current_pause`
are read from others.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator
from typing import NamedTuple

from evalcube.stages.infer.apis import build_control
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.jobs import JobGroup, Result, SharedJob, Slowdown, Stats
from evalcube.stages.infer.keys import KeyHolder
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.infer.retry import Breaker
from evalcube.stages.infer.wire import Connector, Sender, connector
from evalcube.stages.infer.writer import Writer

_REFUSED = Reply(RetryClass.FINAL, "refused")
_TOO_MANY = "more than a fifth refused"


class EndpointQueue(ABC):
    """Requests to one endpoint, from `put` until each is resolved: stored, failed or skipped.

    Parameters
    ----------
    endpoint
        Any model's at that address.
    stats
        Where requests are counted.
    writer
        Where final replies go.
    """

    def __init__(self, endpoint: Endpoint, stats: Stats, writer: Writer) -> None:
        self._stats = stats
        self._writer = writer
        self._keys = KeyHolder(endpoint)
        self._connectors: dict[str | None, Connector] = {}
        """By the file of authorities that are believed: what one model trusts, others at the address need not."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._down: Reply | None = None
        """Why the endpoint was given up."""
        self._halted = False

    def add(self, name: str, endpoint: Endpoint) -> None:  # noqa: B027 - a queue may serve but one model
        """Serve a model too; does nothing if it is served already."""

    @abstractmethod
    def put(self, name: str, shared: SharedJob) -> None:
        """Queue a job of the model `name`, or resolve it at once where nothing is sent any more."""

    @abstractmethod
    def resize(self, workers: int, runs: int = 1, place: int = 0) -> None:
        """Go on as one of `workers` of a run, one of `runs` that share the endpoint; with 0 send nothing for now."""

    def given_up(self, name: str) -> bool:  # noqa: ARG002 - other queues need it
        """Whether a model is asked nothing more, as its endpoint or itself cannot be asked."""
        return self._down is not None

    @abstractmethod
    def revive(self) -> None:
        """Ask again what was given up: the endpoint, or models of it."""

    def slow_down(self, slowdown: Slowdown) -> None:  # noqa: B027 - nothing slows batches down
        """Take over what another worker learned of the endpoint."""

    def stop(self, stops: int) -> None:  # noqa: B027 - no batch is in flight as a request is
        """Send nothing more until the driver has lent something anew, as this process was stopped, so often by now."""

    @abstractmethod
    def halt(self) -> None:
        """Send nothing more; what is in flight may end as usual."""

    async def close(self) -> None:
        """Give up what is in flight, and close the connections."""
        # A copy, as each task takes itself out. Gathered, since a cancelled exchange needs further turns of the loop to
        # hand back its connection, which must not be closed meanwhile.
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for sender in self._senders():
            await sender.close()
        for connections in self._connectors.values():
            await connections.close()

    def _connections(self, endpoint: Endpoint) -> Connector:
        """Those of a model, shared with all that believe the same authorities."""
        pool = self._connectors.get(endpoint.ca_file)
        if pool is None:
            pool = self._connectors[endpoint.ca_file] = connector(endpoint)
        return pool

    @abstractmethod
    def _senders(self) -> Iterable[Sender]:
        """Whatever uses the connections."""

    @abstractmethod
    def _refuse_waiting(self, reply: Reply) -> None:
        """Resolve what waits, after the endpoint was given up because of a reply."""

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        # The loop itself holds its tasks weakly: without the set, one that waits could be collected as garbage.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _give_up(self, shared: SharedJob, reply: Reply, attempts: int) -> None:
        self._stats.failures[reply.cause] += 1
        shared.resolve(Result.failed(reply, attempts))

    def _decide_refusals(self, model: ModelQueue, began: float, workers: int, rank: int) -> None:
        """Decide on the refusals before an answer: who is refused again and again while others are not, is refused."""
        for (shared, reply, record, attempts, *_), is_outcome in model.decide(began, workers, rank):
            if is_outcome:
                self._stats.count(model.endpoint.name, _REFUSED, (0.0, 0.0))
                self._writer.put(shared, record, Result.stored(_REFUSED, attempts))
            else:
                self._give_up(shared, reply._replace(cause=_TOO_MANY), attempts)

    def _fail_refusals(self, model: ModelQueue) -> None:
        """Have refusals be no outcomes: they are about the model, or nobody knows."""
        refusals, model.refusals, model.control = model.refusals, [], None
        for refusal in refusals:
            if self._halted:
                refusal.shared.resolve(Result.skipped())
            else:
                self._give_up(refusal.shared, refusal.reply, refusal.attempts)

    def _record_failure(self, reply: Reply, breaker: Breaker) -> None:
        """Give up the endpoint where that was one failure too many."""
        if not reply.is_refusal and breaker.note_failure(reply):
            self._end_all(reply)

    def _end_all(self, reply: Reply) -> None:
        """Ask the endpoint nothing more."""
        if self._down is None:
            self._down = reply
            self._refuse_waiting(reply)


_BYTES_PER_TOKEN = 4.0
_UNBOUNDED_COMPLETION = 1024.0
_WEIGHT = 0.05
"""Weight of the newest reply in the running means."""
_UNSENT = frozenset({"connect", "dns", "tls", "proxy", "address"})
_BOUND = re.compile(rb'"max_(?:completion_|output_)?tokens":(\d{1,9})')


class TokenEstimate:
    """Estimates one model's tokens per request, better with every reply.

    A prompt is guessed from the request's length. Before the first reply a completion is taken to be as long as the
    request allows: that starts slowly, but never too fast.
    """

    def __init__(self) -> None:
        self._per_byte = 1.0 / _BYTES_PER_TOKEN
        self._completion: float | None = None

    def guess(self, body: bytes) -> float:
        """Tokens of prompt and completion together that a request with the canonical JSON `body` will take."""
        return sum(self._parts(body))

    def tokens_taken(self, body: bytes, reply: Reply) -> tuple[float, float]:
        """Return the tokens of prompt and completion that a reply took: as it says, or else by their bytes."""
        prompt, completion = reply.prompt_tokens, reply.completion_tokens
        if reply.cause:
            return prompt, completion
        return prompt or len(body) * self._per_byte, completion or reply.text_bytes / _BYTES_PER_TOKEN

    def _parts(self, body: bytes) -> tuple[float, float]:
        completion = self._completion
        if completion is None:
            bound = _BOUND.search(body)
            completion = float(bound[1]) if bound else _UNBOUNDED_COMPLETION
        return len(body) * self._per_byte, completion

    def excess(self, guessed: float, body: bytes, reply: Reply) -> float:
        """Tokens that a request took beyond what was guessed, negative if it took less; learns from it.

        A refused request took none. Where nothing is reported, as after a timeout, the guess stands.
        """
        self._learn(body, reply.prompt_tokens, reply.completion_tokens)
        used = reply.prompt_tokens + reply.completion_tokens
        if used:
            return used - guessed
        refused = (
            reply.cause in _UNSENT or reply.cause.startswith("http ") or (reply.is_final and reply.cause)
        )
        return -guessed if refused else 0.0

    def _learn(self, body: bytes, prompt_tokens: int, completion_tokens: int) -> None:
        if prompt_tokens:
            self._per_byte += _WEIGHT * (prompt_tokens / max(len(body), 1) - self._per_byte)
        if completion_tokens:
            mean = self._completion
            self._completion = (
                float(completion_tokens) if mean is None else mean + _WEIGHT * (completion_tokens - mean)
            )


class Refusal(NamedTuple):
    """A request that was refused, while nobody knows whether that is about it or about the model."""

    shared: SharedJob
    reply: Reply
    record: bytes
    attempts: int
    came: float
    """When it was refused, seconds on the loop's clock."""
    is_again: bool
    """Whether it was refused in the same way before an answer to another request, and again after it."""


class ModelQueue:
    """Requests of one model, and what is known of it.

    Parameters
    ----------
    endpoint
        The model's own settings.
    sender
        Sends its requests.
    most_failures
        Failures in a row after which it is given up.
    """

    def __init__(self, endpoint: Endpoint, sender: Sender, most_failures: int) -> None:
        self.endpoint = endpoint
        self.sender = sender
        self.waiting: deque[SharedJob] = deque()
        self.held = 0
        """Requests that coroutines have in hand, those that wait for another attempt too."""
        self._most_failures = most_failures
        self.breaker = Breaker(most_failures)
        self.down: Reply | None = None
        """Why the model was given up."""
        self.proven = False
        """Whether it can be asked at all: until then one request at a time is sent, which finds out."""
        self._answered: set[str] = set()
        """Samplers of requests that were answered."""
        self._refused: dict[str, Reply] = {}
        """By sampler, the reply that ended its requests."""
        self.over = asyncio.Event()
        """Set when nothing more is sent to it, for whichever reason."""
        self.estimate = TokenEstimate()
        self.refusals: list[Refusal] = []
        """Those that nobody has decided on."""
        self.resent: dict[str, Refusal] = {}
        """Those whose requests are sent once more, by digest."""
        self._outcomes = 0
        """Refusals that were."""
        self.control: SharedJob | None = None
        """A request that nobody refuses and that is under way, to tell what a refusal is about."""

    def is_about_request(self, shared: SharedJob, reply: Reply) -> bool:
        """Whether `reply` may be about what this request asks, and not about its parameters."""
        about_sampler = reply.refused and shared.job.sampler not in self._answered
        return (
            reply.is_refusal and self.endpoint.refusals != 0 and not (about_sampler or shared is self.control)
        )

    def ask_control(self) -> None:
        """Queue a harmless request before all others, unless there is one: it tells what refusals are about."""
        if self.control is None and not self.over.is_set():
            refused = self.refusals[-1].shared.job
            body = build_control(refused.body, self.endpoint.api)
            # In no register: no trial waits for it, and its answer is not stored.
            self.control = SharedJob(refused._replace(digest=hashlib.sha256(body).hexdigest(), body=body), {})
            self.control.add(JobGroup(1), 0)
            self.waiting.appendleft(self.control)

    def decide(self, began: float, workers: int, rank: int) -> Iterator[tuple[Refusal, bool]]:
        """Decide on refusals before an answer to a request that began then; yields them, and whether they are outcomes.

        Those that came once are sent again, unless there are more than may be: the parts of the workers, which differ
        by their ranks, add up to that.
        """
        # An answer to a request that began later shows that not everything was refused by then.
        before = [refusal for refusal in self.refusals if refusal.came <= began]
        self.refusals = [refusal for refusal in self.refusals if refusal.came > began]
        most = self.endpoint.refusals
        part = None if most is None else most * (rank + 1) // workers - most * rank // workers
        for refusal in before:
            if part is not None and self._outcomes >= part:
                yield refusal, False
            # Refused in the same way before and after an answer to another one: it is about this request.
            elif refusal.is_again:
                self._outcomes += 1
                yield refusal, True
            else:
                self.resent[refusal.shared.job.digest] = refusal
                self.waiting.append(refusal.shared)

    def revive(self) -> None:
        """Begin again with a model that was given up: one request finds out whether it can be asked now."""
        self.down, self.proven, self.breaker = None, False, Breaker(self._most_failures)
        self._refused.clear()
        self.over.clear()

    def note_success(self, sampler: str) -> None:
        """Note a reply that counts, to a request with that sampler's parameters."""
        self.breaker.note_success()
        self._answered.add(sampler)

    def refusal(self, sampler: str) -> Reply | None:
        """Why no request with that sampler's parameters can succeed; None as long as nothing says so."""
        return self._refused.get(sampler)

    def refuse(self, sampler: str, reply: Reply) -> list[SharedJob]:
        """End the requests with a sampler's parameters if `reply` refuses one of them; returns those that waited.

        As long as none with these parameters was answered: later, it is about the one request.
        """
        if not reply.refused or sampler in self._answered or sampler in self._refused:
            return []
        self._refused[sampler] = reply._replace(cause=f"{reply.cause}: {reply.refused}")
        ended = [shared for shared in self.waiting if shared.job.sampler == sampler]
        self.waiting = deque(shared for shared in self.waiting if shared.job.sampler != sampler)
        return ended
