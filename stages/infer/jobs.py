"""Values that an engine takes and returns: jobs, their results, what it learned, and its running totals."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalcube.stages.infer.lateness import Lateness
from evalcube.stages.infer.reply import Reply
from evalcube.stages.infer.sharing import Report, Setting


@dataclass(frozen=True, slots=True)
class Job:
    """One request to send."""

    digest: str
    """See `evalcube.stages.infer.request.Request`."""
    body: bytes
    """Sent as it stands, but for the ending that asks for a stream."""
    headers: Mapping[str, str] | None = None
    """Headers of this request alone; no part of the digest."""
    sampler: str = ""
    """Whose parameters it has: those of one model's requests with the same name are the same."""


@dataclass(frozen=True, slots=True)
class Result:
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


@dataclass(frozen=True, slots=True)
class Slowdown:
    """What one engine learned of an endpoint, for the others that share it."""

    model: str
    """Label of any model at the endpoint."""
    overload: bool
    """Whether requests in flight became fewer."""
    pause: float
    """Seconds in which nothing should start."""
    reason: str = ""
    """Why, for people; see `evalcube.stages.infer.retry.pause_reason`."""
    report: Report | None = None
    """What this engine counted, for the driver."""
    setting: Setting | None = None
    """What the driver decided for all."""


class Learned(NamedTuple):
    """What a queue learned of its endpoint so far; replaced as a whole, so that other threads need no lock."""

    overloads: int = 0
    """How often requests in flight became fewer here."""
    paused_until: float = -math.inf
    """The end of the last pause that was asked for, seconds on the loop's clock."""
    reason: str = ""
    """Why it was."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An endpoint to which nothing is sent for now, as it asked for that, while requests wait."""

    model: str
    """Label of any model at the endpoint."""
    seconds: float
    """Until it is asked again."""
    reason: str
    """Why, for people; see `evalcube.stages.infer.retry.pause_reason`."""


@dataclass(frozen=True, slots=True)
class Found:
    """Limits of an endpoint that nobody declared, as one worker met them; None where there seems to be none."""

    requests: float | None = None
    """Requests per second."""
    connections: int | None = None
    """Requests in flight."""
    window: int | None = None
    """Requests in flight that this worker found a use for, without being refused."""


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
    usage: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By label of the model, tokens of prompts and completions of replies that count; guessed if none are reported."""
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

    def count(self, model: str, reply: Reply, taken: tuple[float, float]) -> None:
        """Add a reply that counts.

        Parameters
        ----------
        model
            Label of the model.
        reply
            A final one.
        taken
            Tokens of prompt and completion, guessed where the reply does not report them.
        """
        self.replies += 1
        self.answered[model] += 1
        if self.lateness is not None:
            self.late[model] = self.late.get(model, 0.0) + self.lateness.of_reply()
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        prompts, completions = self.usage.get(model, (0.0, 0.0))
        self.usage[model] = prompts + taken[0], completions + taken[1]

    def snapshot(self) -> dict[str, Any]:
        """The totals as plain values that travel as a message."""
        return {
            "sent": self.sent,
            "replies": self.replies,
            "in_flight": self.in_flight,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "usage": dict(self.usage),
            "late": dict(self.late),
            "answered": dict(self.answered),
            "retries": dict(self.retries),
            "failures": dict(self.failures),
        }
