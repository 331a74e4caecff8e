"""What belongs to one model of an endpoint: the requests that wait for it, and whether it can be asked at all."""

from __future__ import annotations

import asyncio
from collections import deque

from evalcube.stages.infer.coalescing import SharedJob
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.reply import Reply
from evalcube.stages.infer.retry import Breaker
from evalcube.stages.infer.token_estimate import TokenEstimate
from evalcube.stages.infer.wire import Sender


class ModelQueue:
    """Requests of one model, and what is known of it.

    Parameters
    ----------
    endpoint
        The model's own settings.
    sender
        Sends its requests.
    patience
        Failures in a row after which it is given up.
    """

    def __init__(self, endpoint: Endpoint, sender: Sender, patience: int) -> None:
        self.endpoint = endpoint
        self.sender = sender
        self.waiting: deque[SharedJob] = deque()
        self.held = 0
        """Requests that coroutines have in hand, those that wait for another attempt too."""
        self._patience = patience
        self.breaker = Breaker(patience)
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

    def revive(self) -> None:
        """Begin again with a model that was given up: one request finds out whether it can be asked now."""
        self.down, self.proven, self.breaker = None, False, Breaker(self._patience)
        self._refused.clear()
        self.over.clear()

    def succeeded(self, sampler: str) -> None:
        """Note a reply that counts, to a request with that sampler's parameters."""
        self.breaker.succeeded()
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
