"""Tells refusals that come by chance, whatever the rate, from those of a limit. Pure: no clock.

A limit of the rate refuses next to nothing at a rate that is clearly lower. Where the same share is refused at rates
that are far apart, going slower is no use; whether that is so is seen at full speed, where a limit would refuse more.

References
----------
E. S. Page (1954). Continuous inspection schemes. Biometrika 41(1/2), 100-115. https://doi.org/10.1093/biomet/41.1-2.100
"""

from __future__ import annotations

import math

_LEAST_SHARE, _MOST_SHARE = 0.05, 0.6
"""Refused shares between which chance is thought of."""
_LOWER = 0.6
"""Of the highest rate that was refused: rates from here down are clearly lower ones."""
_REFUSED, _REFUSED_LOWER, _SENT = 10, 5, 40
"""Refusals, those at clearly lower rates, and requests, that are enough to say so."""
_BORNE = 60
"""Requests of which a limit refuses fewer than chance would, where the rate is about right."""
_MORE, _TIMES = 0.25, 2.0
"""By how much, and how many times, a limit is taken to refuse more than chance does."""
_CERTAIN = 9.0
"""Logarithm of how much likelier a limit must be."""
_WEIGHT = 0.001
"""Of the newest request in the share, once that is known."""
_FORGOTTEN = 0.03
"""Share below which chance need not be reckoned with any more."""


class ChanceRefusals:
    """What is known of refusals at one endpoint that do not depend on the rate."""

    def __init__(self) -> None:
        self.share = 0.0
        """Of requests, those that are refused whatever the rate; 0 as long as none seem to be."""
        self._stages: list[tuple[float, int, int]] = []
        """Rates that were too high, one after another: the rate, requests sent at it, and refused ones."""
        self._excess = 0.0
        """Logarithm of how much likelier a limit is than chance alone, since that was likeliest."""

    def assume(self, share: float) -> None:
        """Reckon from now on with so many refusals by chance."""
        self.share, self._excess = share, 0.0
        self._stages.clear()

    def cut(self, rate: float, sent: int, refused: int) -> bool:
        """Note a rate that seemed too high; returns whether that seems to be by chance, which `share` is from then on.

        Parameters
        ----------
        rate
            Requests per second.
        sent, refused
            Requests at this rate, and those of them that were refused.
        """
        if sent >= _BORNE and refused < _LEAST_SHARE * sent:
            self._stages.clear()
            return False
        self._stages.append((rate, sent, refused))
        highest = max(rate for rate, _, _ in self._stages)
        lower = [(sent, refused) for rate, sent, refused in self._stages if rate <= _LOWER * highest]
        all_sent, all_refused = (sum(stage[i] for stage in self._stages) for i in (1, 2))
        lower_sent, lower_refused = (sum(stage[i] for stage in lower) for i in (0, 1))
        if all_refused < _REFUSED or lower_refused < _REFUSED_LOWER or all_sent < _SENT:
            return False
        if not _LEAST_SHARE * lower_sent <= lower_refused <= _MOST_SHARE * lower_sent:
            return False
        self.assume(lower_refused / lower_sent)
        return True

    def count(self, refused: bool) -> None:
        """Note what became of a request at full speed."""
        if not self.share:
            return
        limited = self._limited
        likelihood = limited / self.share if refused else (1.0 - limited) / (1.0 - self.share)
        self._excess = max(self._excess + math.log(likelihood), 0.0)
        self.share += _WEIGHT * (refused - self.share)
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
