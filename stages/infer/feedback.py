"""What replies of an endpoint say of its limits: this worker goes slower or faster, and others are notified."""

from __future__ import annotations

import math
from collections.abc import Callable

from evalcube.stages.infer.admission import Admission
from evalcube.stages.infer.jobs import Learned, Slowdown
from evalcube.stages.infer.reply import Reply
from evalcube.stages.infer.retry import is_let_through, is_overload, is_refusal, longest_pause, pause_reason
from evalcube.stages.infer.sharing import Mark


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
        self._let_through_at = math.inf
        """When the endpoint last let a request through, or when the first one was sent."""
        self.paused = (-math.inf, "")
        """End of the pause that lasts longest, and why."""
        self.learned = Learned()
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
            admission.passed(mark, reply.completion_tokens)
        if reply.is_final and reply.exhausted is None:
            return
        pause = longest_pause(reply)
        if is_refusal(reply):
            admission.refused(mark, pause)
        elif is_overload(reply) and admission.overloaded(mark):
            self.learned = self.learned._replace(overloads=self.learned.overloads + 1)
        if pause > 0.0:
            self._pause_all(pause, pause_reason(reply))
            until = self._now() + pause
            if until > self.learned.paused_until:
                self.learned = self.learned._replace(paused_until=until, reason=pause_reason(reply))

    def slow_down(self, slowdown: Slowdown) -> None:
        """Take over what was decided for all workers, or what another one learned."""
        if slowdown.setting is not None:
            self._admission.obey(slowdown.setting)
        if slowdown.pause > 0.0:
            self._pause_all(slowdown.pause, slowdown.reason)

    def _pause_all(self, seconds: float, reason: str) -> None:
        """Let nothing start for some time; of several pauses the one that ends last counts."""
        self._admission.pause(seconds)
        if self._now() + seconds > self.paused[0]:
            self.paused = self._now() + seconds, reason
