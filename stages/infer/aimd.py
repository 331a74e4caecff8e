"""Bounds the requests in flight by additive increase and multiplicative decrease (AIMD), as TCP does.

An endpoint that says that it is overloaded gets half of the requests, and then one more for each round of answers.
Pure: no clock, no socket.

References
----------
D.-M. Chiu, R. Jain (1989). Analysis of the increase and decrease algorithms for congestion avoidance in computer
networks. Computer Networks and ISDN Systems 17(1), 1-14. https://doi.org/10.1016/0169-7552(89)90019-6
"""

from __future__ import annotations

_DECREASE = 0.5
_SMALL_DECREASE = 0.85
_ROUNDS = 5
_LEAST_ANSWERS = 50
"""Answers after which one more is tried at an endpoint that bounds the requests in flight: each try costs a refusal."""


class Window:
    """Bound on the requests in flight: at least 1, and at most the connections that the worker was given.

    Parameters
    ----------
    ceiling
        Connections of this worker; with 0 nothing may be sent.
    """

    __slots__ = ("_exact", "_refused", "ceiling", "epoch", "limit")

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self._exact = float(ceiling)
        self._refused = False
        """Whether the endpoint is known to bound the requests in flight."""
        self.limit = ceiling
        """Most requests in flight, now."""
        self.epoch = 0
        """Number of decreases; a request takes it along when it starts."""

    def resize(self, ceiling: int) -> None:
        """Take another `ceiling`; if the former one was not reached, a higher one is no reason to send more."""
        reached = self.limit >= self.ceiling
        self.ceiling = ceiling
        self._set(float(ceiling) if reached else self._exact)

    def succeeded(self) -> None:
        """Note an answer."""
        if self.limit < self.ceiling:
            rounds = max(_ROUNDS * self._exact, _LEAST_ANSWERS) if self._refused else max(self._exact, 1.0)
            self._set(self._exact + 1.0 / rounds)

    def congested(self, epoch: int) -> bool:
        """Note an overload for a request that started in `epoch`; returns whether the window became smaller.

        All requests that were in flight together report the same overload, so only the first of them counts.
        """
        if epoch != self.epoch:
            return False
        self.epoch += 1
        self._set(self._exact * (_SMALL_DECREASE if self._refused else _DECREASE))
        return True

    def bound(self, level: float) -> None:
        """Go on with about `level` requests in flight, as the endpoint refuses more."""
        self._refused = True
        self.epoch += 1
        self._set(level)

    def open(self) -> None:
        """Allow as many as the connections again."""
        self._refused = False
        self._set(float(self.ceiling))

    def _set(self, exact: float) -> None:
        self._exact = min(max(exact, 1.0), float(self.ceiling))
        self.limit = int(self._exact)
