"""What a controller adapts to: counts of an endpoint's requests, of one worker or of all together."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from operator import add
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
    delay: float = 0.0
    """Most seconds that a refusal took."""
    most_passed: int = 0
    """Most in flight when one started that passed."""
    least_refused: int = sys.maxsize
    """Fewest in flight when one started that was refused."""
    answers: int = 0
    """Those that passed and began while the window was full; the sums that follow are theirs."""
    waited: float = 0.0
    tokens: float = 0.0
    all_sent: int = 0
    all_passed: int = 0
    all_refused: int = 0

    def at(self, epoch: int) -> Counts:
        """Those of another epoch that begins; a new object, as another thread may read this one."""
        found = Counts(epoch)
        found.all_sent, found.all_passed, found.all_refused = self.all_sent, self.all_passed, self.all_refused
        return found

    @property
    def let_through(self) -> int:
        """Requests of all epochs that were not refused, those too that wait for an answer."""
        return self.all_sent - self.all_refused


class Mark(NamedTuple):
    """What a request is judged by when its answer comes."""

    started: float
    """Seconds on the caller's clock."""
    in_flight: int
    """Requests in flight when it started, itself among them."""
    epoch: int
    """See `Controller.epoch`."""


class Loan(NamedTuple):
    """What one worker may use of an endpoint."""

    connections: int = 0
    """Requests in flight at most."""
    rate: float = 0.0
    """Share of the declared rates, in [0, 1]."""
    stops: int = 0
    """How often the worker had been stopped when it asked: after another stop it has to ask again."""


class Report(NamedTuple):
    """What a worker tells the driver of an endpoint."""

    wanted: int
    """Requests that are in flight or could be, if it were for this worker."""
    held: Loan
    """What may be in flight here, or more that is."""
    number: int
    """See `evalcube.stages.infer.sharing.Setting.number`."""
    counts: tuple[float, ...]
    """The fields of `Counts`."""


_JOIN = {"pause": max, "delay": max, "least_refused": min}


def together(many: Iterable[Counts], epoch: int) -> Counts:
    """The counts of several workers: what is of one epoch, and what is of all."""
    found = Counts(epoch)
    for one in many:
        for field in fields(Counts)[1:]:
            name, of_all = field.name, field.name.startswith("all_")
            if one.epoch == epoch or of_all:
                mine, other = getattr(found, name), getattr(one, name)
                setattr(found, name, _JOIN.get(name, add)(mine, other))
    return found
