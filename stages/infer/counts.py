"""Counts of an endpoint's requests, to which a controller adapts, and parts of its limits that are lent to workers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
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
        new = Counts(epoch)
        new.all_sent, new.all_passed, new.all_refused = self.all_sent, self.all_passed, self.all_refused
        return new

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
    total = Counts(epoch)
    for part in many:
        for field in fields(Counts)[1:]:
            name, of_all = field.name, field.name.startswith("all_")
            if part.epoch == epoch or of_all:
                sum_so_far, more = getattr(total, name), getattr(part, name)
                setattr(total, name, _JOIN.get(name, add)(sum_so_far, more))
    return total


def lend(whole: float, parts: Mapping[str, float], held: Mapping[str, float]) -> dict[str, float]:
    """Return the parts as far as they are free: what a worker holds is not lent to another one.

    Examples
    --------
    >>> lend(20, {"a": 10, "b": 10}, {"a": 18})
    {'a': 10, 'b': 2}
    """
    # What is held counts in full, even if it is to become less: it is in use until its worker says otherwise.
    free, lent = max(whole - sum(held.values()), 0), {}
    for worker, part in parts.items():
        has = held.get(worker, 0)
        more = min(max(part - has, 0), free)
        lent[worker] = min(part, has) + more
        free -= more
    return lent


def shares(window: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return equal parts of a window, which add up to it; what one does not want others have.

    Each has at least one, wanted or not, where there are so many.

    Examples
    --------
    >>> shares(12, {"a": 1, "b": 9, "c": 9})
    {'a': 1, 'b': 5, 'c': 6}
    >>> shares(11, {"a": 1, "b": 1, "c": 1})
    {'a': 4, 'b': 4, 'c': 3}
    >>> shares(1, {"a": 0, "b": 9, "c": 9})
    {'a': 0, 'b': 0, 'c': 1}
    """
    parts, left, least = {}, window, window >= len(wanted)
    for rank, worker in enumerate(sorted(wanted, key=lambda each: (wanted[each], each))):
        parts[worker] = min(left // (len(wanted) - rank), max(wanted[worker], least))
        left -= parts[worker]
    whole, remainder = divmod(left, max(len(parts), 1))
    return {worker: part + whole + (rank < remainder) for rank, (worker, part) in enumerate(parts.items())}
