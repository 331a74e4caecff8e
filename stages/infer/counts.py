"""What a controller adapts to: counts of an endpoint's requests, of one worker or of all together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import NamedTuple


@dataclass(slots=True)
class Counts:
    """Counts of the requests that started in one epoch of a controller; the last three are of all epochs."""

    epoch: int = 1
    sent: int = 0
    passed: int = 0
    """Those that the endpoint did not refuse."""
    refused: int = 0
    overloads: int = 0
    """Time-outs, and other words of overload."""
    pause: float = 0.0
    """Most seconds that were asked to wait."""
    spent: float = 0.0
    """Seconds that those waited which passed."""
    slow: int = 0
    """Of `answers`, those that took over a third of the time-out."""
    answers: int = 0
    """Those that passed and began while the window was full; the sums that follow are theirs."""
    waited: float = 0.0
    tokens: float = 0.0
    waited_square: float = 0.0
    both: float = 0.0
    tokens_square: float = 0.0
    all_sent: int = 0
    all_passed: int = 0
    all_refused: int = 0

    def at(self, epoch: int) -> Counts:
        """Those of another epoch that begins; a new object, as another thread may read this one."""
        found = Counts(epoch)
        found.all_sent, found.all_passed, found.all_refused = self.all_sent, self.all_passed, self.all_refused
        return found

    def answer(self, waited: float, tokens: float, *, slow: bool) -> None:
        """Count an answer to a request that began while the window was full."""
        self.answers += 1
        self.slow += slow
        self.waited += waited
        self.tokens += tokens
        self.waited_square += waited * waited
        self.both += waited * tokens
        self.tokens_square += tokens * tokens

    @property
    def let_through(self) -> int:
        """Requests of all epochs that were not refused, those too that wait for an answer."""
        return self.all_sent - self.all_refused

    @property
    def refused_share(self) -> float:
        """Share of the requests that were refused."""
        return self.refused / max(self.sent, 1)

    @property
    def per_token(self) -> float:
        """Seconds waited."""
        return self.waited / self.tokens

    def is_known(self, error: float, enough: int, least: int) -> bool:
        """Whether `per_token` has a relative error below one, or so many answers that this has to do."""
        if self.answers < least or self.waited <= 0.0:
            return False
        ratio = self.per_token
        spread = self.waited_square - 2.0 * ratio * self.both + ratio * ratio * self.tokens_square
        return self.answers >= enough or math.sqrt(max(spread, 0.0)) < error * self.waited


class Mark(NamedTuple):
    """What a request is judged by when its answer comes."""

    started: float
    """Seconds on the caller's clock."""
    in_flight: int
    """Requests in flight when it started, itself among them."""
    epoch: int
    """See `Controller.epoch`."""


class Report(NamedTuple):
    """What a worker tells the driver of an endpoint."""

    start: int
    most: int
    timeout: float
    """What the controller begins with, for all workers."""
    workers: int
    wanted: int
    """Requests that are in flight or could be, if it were for this worker."""
    held: int
    """Requests that may be in flight here, or more that are."""
    number: int
    """See `Setting.number`."""
    counts: tuple[float, ...]
    """The fields of `Counts`."""


def together(many: Iterable[Counts], epoch: int) -> Counts:
    """The counts of several workers, of one epoch; `all_sent` and its like are left to the caller."""
    rows = [astuple(one)[1:-3] for one in many if one.epoch == epoch]
    found = Counts(epoch, *(sum(column) for column in zip(*rows, strict=True)))
    found.pause = max((one.pause for one in many if one.epoch == epoch), default=0.0)
    return found
