"""What replies of an endpoint say of its limits: this worker goes slower or faster, and others are notified."""

from __future__ import annotations

import math
from collections.abc import Callable

from evalcube.stages.infer.admission import Admission, Mark
from evalcube.stages.infer.jobs import Slowdown
from evalcube.stages.infer.limiter import NO_NEWS
from evalcube.stages.infer.reply import Reply
from evalcube.stages.infer.retry import is_let_through, is_overload, is_refusal, longest_pause, pause_reason

_SAME_OVERLOAD_SECONDS = 2.0
"""What other workers report within this time is the overload that this worker saw itself."""


class Feedback:
    """Adapts what may start at one endpoint to its replies, and to what other workers learned from theirs.

    Used on the event loop's thread; `learned` and `paused` are read from others.

    Parameters
    ----------
    admission
        Lets the endpoint's requests start.
    now
        The loop's clock, seconds.
    """

    def __init__(self, admission: Admission, now: Callable[[], float]) -> None:
        self._admission = admission
        self._now = now
        self._overloaded_at = -math.inf
        self._let_through_at = math.inf
        """When the endpoint last let a request through, or when the first one was sent."""
        self.paused = (-math.inf, "")
        """End of the pause that lasts longest, and why."""
        self.learned = (0, -math.inf, "")
        """See `evalcube.stages.infer.endpoint_queue.EndpointQueue.learned`."""

    @property
    def shut_seconds(self) -> float:
        """For how long the endpoint has let nothing through; not above 0 where nothing was sent yet."""
        return self._now() - self._let_through_at

    def begin_again(self) -> None:
        """Forget for how long nothing was let through."""
        self._let_through_at = math.inf

    def started(self, mark: Mark) -> None:
        """Note that a request is sent."""
        self._let_through_at = min(self._let_through_at, mark.started)

    def adapt_rate(self, reply: Reply, mark: Mark) -> None:
        """Go slower or faster, as an attempt suggests."""
        admission = self._admission
        if is_let_through(reply):
            self._let_through_at = self._now()
            admission.let_through(mark)
        if reply.is_final:
            admission.succeeded()
            if reply.exhausted is None:
                return
        overloads, paused_until, reason = self.learned
        pause = longest_pause(reply)
        if is_refusal(reply):
            admission.refused(mark, pause)
        elif is_overload(reply) and admission.congested(mark.epoch):
            self._overloaded_at = self._now()
            overloads += 1
        if pause > 0.0:
            self._pause_all(pause, pause_reason(reply))
            if self._now() + pause > paused_until:
                paused_until, reason = self._now() + pause, pause_reason(reply)
        self.learned = overloads, paused_until, reason

    def slow_down(self, slowdown: Slowdown) -> None:
        """Take over what another worker learned; an overload that this one just saw itself counts once."""
        if slowdown.overload and self._now() - self._overloaded_at > _SAME_OVERLOAD_SECONDS:
            self._overloaded_at = self._now()
            self._admission.congested()
        if slowdown.news != NO_NEWS:
            self._admission.hear(slowdown.news)
        if slowdown.pause > 0.0:
            self._pause_all(slowdown.pause, slowdown.reason)

    def _pause_all(self, seconds: float, reason: str) -> None:
        """Let nothing start for some time; of several pauses the one that ends last counts."""
        self._admission.pause(seconds)
        if self._now() + seconds > self.paused[0]:
            self.paused = self._now() + seconds, reason
