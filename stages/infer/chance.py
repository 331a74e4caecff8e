"""Tells refusals that come by chance, whatever the rate, from those of a limit. Pure: no clock.

A limit of the rate refuses next to nothing at a rate that is clearly lower. Where the same share is refused at rates
that are far apart, going slower is no use; whether that is so is seen at full speed, where a limit would refuse more.

References
----------
E. S. Page (1954). Continuous inspection schemes. Biometrika 41(1/2), 100-115. https://doi.org/10.1093/biomet/41.1-2.100
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

_LEAST_SHARE, _MOST_SHARE = 0.06, 0.7
"""Refused shares between which chance is thought of."""
_JITTER = 0.01
"""Share of requests that a limit refuses at rates below it, as some come too early."""
_STAGES = 12
"""Rates that are remembered."""
_REFUSED = 4
"""Refusals from which on they are compared."""
_LIKELIER = 3.5
"""Logarithm of how much likelier chance must be than a limit: it is only tried then."""
_STEPS = 64
"""Limits that are tried, in even ratios between the lowest and the highest that may be."""
_MORE, _TIMES = 0.25, 2.0
"""By how much, and how many times, a limit is taken to refuse more than chance does."""
_CERTAIN = 9.0
"""Logarithm of how much likelier a limit must be."""
_FEWEST, _MOST = 50, 1000
"""Requests, the newest among them, that count in the share, at first and later."""
_FORGOTTEN = 0.03
"""Share below which chance need not be reckoned with any more."""


class _Stage(NamedTuple):
    """What became of requests at one rate."""

    rate: float
    """Requests per second."""
    passed: int
    refused: int


class ChanceRefusals:
    """What is known of refusals at one endpoint that do not depend on the rate."""

    def __init__(self) -> None:
        self.share = 0.0
        """Of requests, those that are refused whatever the rate; 0 as long as none seem to be."""
        self._stages: deque[_Stage] = deque(maxlen=_STAGES)
        self._counted = _FEWEST
        """Requests that the share is known from, as it were."""
        self._excess = 0.0
        """Logarithm of how much likelier a limit is than chance alone, since that was likeliest."""

    def assume(self, share: float) -> None:
        """Reckon from now on with so many refusals by chance."""
        self.share, self._excess, self._counted = share, 0.0, _FEWEST
        self._stages.clear()

    def note(self, rate: float, sent: int, refused: int) -> None:
        """Note what became of requests at a pace.

        Parameters
        ----------
        rate
            Requests per second.
        sent, refused
            Requests at this rate, and those of them that were refused.
        """
        if sent > 0:
            self._stages.append(_Stage(rate, max(sent - refused, 0), refused))

    def guess(self) -> float:
        """Share of refusals that seem to come by chance, whatever the rate; 0 where a limit explains them as well."""
        refused = sum(stage.refused for stage in self._stages)
        sent = refused + sum(stage.passed for stage in self._stages)
        share = refused / max(sent, 1)
        if refused < _REFUSED or not _LEAST_SHARE <= share <= _MOST_SHARE:
            return 0.0
        highest = max(stage.rate for stage in self._stages)
        lowest = min(stage.rate for stage in self._stages) / 2.0
        limits = [lowest * (highest / lowest) ** (step / _STEPS) for step in range(_STEPS + 1)]
        limited = max(
            self._likelihood([1.0 - limit / stage.rate for stage in self._stages]) for limit in limits
        )
        if self._likelihood([share] * len(self._stages)) < limited + _LIKELIER:
            return 0.0
        # Rather too much than too little, as what is more than this will be taken for a limit.
        return min(share + math.sqrt(share * (1.0 - share) / sent), _MOST_SHARE)

    def _likelihood(self, shares: Sequence[float]) -> float:
        """Logarithm of the likelihood of what was refused, if these are the shares at each of the rates."""
        total = 0.0
        for (_, passed, refused), expected in zip(self._stages, shares, strict=True):
            share = min(max(expected, _JITTER), 1.0 - _JITTER)
            total += refused * math.log(share) + passed * math.log(1.0 - share)
        return total

    def count(self, refused: bool) -> None:
        """Note what became of a request at full speed."""
        if not self.share:
            return
        limited = self._limited
        likelihood = limited / self.share if refused else (1.0 - limited) / (1.0 - self.share)
        self._excess = max(self._excess + math.log(likelihood), 0.0)
        self._counted = min(self._counted + 1, _MOST)
        self.share = min(self.share + (refused - self.share) / self._counted, _MOST_SHARE)
        if self.share < _FORGOTTEN:
            self.share = 0.0

    def is_exceeded(self, in_flight: int) -> bool:
        """Whether more is refused at full speed than by chance.

        Parameters
        ----------
        in_flight
            Requests that wait for an answer: as refusals come at once, all of them may have been let through.
        """
        return self._excess + in_flight * math.log((1.0 - self._limited) / (1.0 - self.share)) > _CERTAIN

    @property
    def _limited(self) -> float:
        """Share that is refused where there is a limit, too."""
        return min(max(_TIMES * self.share, self.share + _MORE), 0.95)
