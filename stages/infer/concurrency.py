"""Tells whether an endpoint refuses because of the requests in flight, and not because of their rate. Pure.

At an even pace, a limit of the rate refuses whatever is in flight, and a limit of the requests in flight refuses when
many are. Where answers take equally long, the two are the same, and nothing is to be told apart.
"""

from __future__ import annotations

import math
from collections import deque

_WEIGHT = 0.01
"""Of the newest request in the running means."""
_LEAST_REFUSED, _MOST_REFUSED = 6, 16
_LEAST_ACCEPTED = 60
_CLEAR = 1.2
"""Standard deviations that lie between the two means, if it is what is in flight; each worker sees a part of it."""
_FEWEST = 3.0
"""In flight, on average, from which on it is looked for: below, a pace says the same."""
_VARIED = 0.35
"""Of a Poisson variable's standard deviation: less comes about by the pace alone."""


class InFlightEvidence:
    """What was in flight when requests were let through, and when they were refused."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._count = 0
        self._mean = self._square = 0.0
        self._refused: deque[int] = deque(maxlen=_MOST_REFUSED)

    def accepted(self, in_flight: int) -> None:
        """Note a request that was let through when so many were in flight, itself among them."""
        self._count += 1
        weight = max(_WEIGHT, 1.0 / self._count)
        change = in_flight - self._mean
        self._mean += weight * change
        self._square += weight * (change * change - self._square)

    def refused(self, in_flight: int) -> None:
        """Note a request that was refused when so many were in flight, itself among them."""
        self._refused.append(in_flight)

    def level(self, workers: int) -> float | None:
        """Requests in flight that seem to be the most; None where it does not depend on them, or is not known.

        Parameters
        ----------
        workers
            Number of workers, of which this is one's evidence.
        """
        if (
            self._mean * workers < _FEWEST
            or len(self._refused) < _LEAST_REFUSED
            or self._count < _LEAST_ACCEPTED
        ):
            return None
        refused = sum(self._refused) / len(self._refused)
        deviation = math.sqrt(self._square)
        if deviation < _VARIED * math.sqrt(self._mean) or (
            refused - self._mean < _CLEAR / math.sqrt(workers) * deviation
        ):
            return None
        return max(refused - 1.0, 1.0)
