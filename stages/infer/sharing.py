"""Shares one controller of an endpoint among the workers: each counts, and does its part of what was decided.

A worker that is alone looks at its own counts. Of several the driver takes in the counts, and decides for all. Servers
that allow no bursts refuse a request that comes too soon after another worker's: so the turns of a pace are counted on
a clock that all workers share, and each takes its own. Pure: the caller brings the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from typing import NamedTuple

from evalcube.stages.infer.controller import IN_A_ROW, Controller
from evalcube.stages.infer.counts import Counts, Mark, Report, together

_BURST_SECONDS = 0.02
"""Turns that may be caught up with, where a busy machine let them pass."""
_LATEST = 0.15
"""Of the time between two of a worker's turns, in which one may still be used: a later start would come too soon before
the next worker's."""
_TOLERANCE = 1e-6
"""Of a turn; what rounding takes away."""


class Pace(NamedTuple):
    """A rate for all workers together, and where its turns lie."""

    rate: float
    """Requests per second."""
    since: float
    """Seconds on the clock that workers share, from which on it holds."""
    turn: float
    """Number of the turn at that moment, which need not be whole."""

    def turn_at(self, now: float) -> float:
        """Number of the turn at a moment, seconds on the shared clock."""
        return self.turn + (now - self.since) * self.rate


def followed(pace: Pace | None, rate: float | None, since: float, workers: int) -> Pace | None:
    """Another rate from some time on, so that no two turns come close together; None for none."""
    if rate is None or (pace is not None and pace.rate == rate):
        return None if rate is None else pace
    # Small numbers are exact; what is taken away is a whole number of rounds.
    turn = 0.0 if pace is None else pace.turn_at(since) % (2 * workers)
    return Pace(rate, since, turn)


class Turns:
    """One worker's turns; none are needed while there is no pace."""

    def __init__(self) -> None:
        self.pace: Pace | None = None
        """The present one; None where no turns are needed."""
        self._workers, self._rank, self._used = 1, 0, 0
        self._later: tuple[Pace, int, int] | None = None

    def follow(self, pace: Pace | None, now: float, workers: int, rank: int) -> None:
        """Take another pace from when it says, None for none, as number `rank` of `workers` that take turns."""
        if pace is not None and self.pace is not None and pace.since > now:
            self._later = pace, workers, rank
            return
        self.pace, self._workers, self._rank, self._later = pace, max(workers, 1), rank, None
        if pace is not None:
            self._used = math.floor(self._own(pace, now) + _TOLERANCE)

    def wait(self, now: float) -> float:
        """Seconds until a request may start."""
        self._switch(now)
        if self.pace is None:
            return 0.0
        own = self._own(self.pace, now)
        passed = math.floor(own + _TOLERANCE)
        in_time = self._workers == 1 or own - passed < _LATEST or self._saved(self.pace) > 1
        if passed > self._used and in_time:
            return 0.0
        wait = (max(passed, self._used) + 1 - own) * self._workers / self.pace.rate
        return wait if self._later is None else min(wait, self._later[0].since - now)

    def take(self, now: float) -> None:
        """Use a turn."""
        self._switch(now)
        if self.pace is not None:
            own, saved = self._own(self.pace, now), self._saved(self.pace)
            passed = math.floor(own + _TOLERANCE)
            self._used = max(self._used + 1, passed - saved + 1)
            if self._workers == saved == 1 and own - passed >= _LATEST:
                # Nobody else has turns: those to come are as much later.
                self.pace, self._used = Pace(self.pace.rate, now, 0.0), 0

    def _saved(self, pace: Pace) -> int:
        """How many turns that passed may be caught up with, the present one among them."""
        return max(1, int(_BURST_SECONDS * pace.rate / self._workers))

    def _switch(self, now: float) -> None:
        if self._later is not None and now >= self._later[0].since:
            self.follow(self._later[0], now, *self._later[1:])

    def _own(self, pace: Pace, now: float) -> float:
        return (pace.turn_at(now) - self._rank) / self._workers


_LOOK_SECONDS, _DRIVER_SECONDS = 0.1, 0.45
"""Between two looks at the counts of a worker that is alone, and of several, who report every half second."""
_NOTICE = 0.8
"""Seconds until all workers have heard of another pace."""
_BRAKE_SECONDS = 0.25
"""Between two requests of a worker whose last ones were all refused: thousands would be until the driver hears."""
_AGAIN = 5.0
"""Seconds after which a worker that seems to have missed what was decided is told again."""
_FULL = 0.8
"""Of the window, from which on an answer says what is delivered at it."""


class Setting(NamedTuple):
    """What was decided for all workers."""

    epoch: int
    window: int
    pace: Pace | None
    found: float | None
    """Requests per second that are let through at most."""
    parts: Mapping[str, int]
    """Of the window, by worker; equal ones where there are none."""
    turns: tuple[str, ...]
    """Workers who take turns at the pace."""
    number: int
    """Of settings, so that a worker says which one it has."""


class Gate:
    """What one worker may start at an endpoint that it shares, and what became of it."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.window = 1
        """Most requests in flight, now."""
        self.offset = 0.0
        """What makes this worker's clock the one that all of them have, seconds."""
        self.controller: Controller | None = None
        """Of a worker that is alone."""
        self._workers, self._rank, self._start, self._most, self._timeout = 1, 0, 1, 1, math.inf
        self._setting: Setting | None = None
        self._turns = Turns()
        self._later: tuple[int, float] | None = None
        """The epoch to come, and when."""
        self._looked = self._started = -math.inf
        self._row = 0

    @property
    def is_paced(self) -> bool:
        """Whether requests have to wait for a turn."""
        return self._turns.pace is not None

    @property
    def is_braked(self) -> bool:
        """Whether the last ones were all refused, and it is the driver who decides."""
        return self._workers > 1 and not self.lets_through

    @property
    def found(self) -> float | None:
        """Requests per second of all workers that are let through at most."""
        return None if self._setting is None else self._setting.found

    @property
    def lets_through(self) -> bool:
        """Whether the last ones were not all refused."""
        return self._row < IN_A_ROW

    def report(self, in_flight: int, waiting: int) -> Report | None:
        """For the driver, with requests that are in flight here and that wait; None where this worker is alone."""
        if self._workers == 1:
            return None
        start, most = self._start * self._workers, self._most * self._workers
        wanted, held = min(in_flight + waiting, most), max(in_flight, self.window)
        number = 0 if self._setting is None else self._setting.number
        return Report(start, most, self._timeout, self._workers, wanted, held, number, astuple(self.counts))

    def resize(
        self, start: int, most: int, timeout: float, now: float, workers: int = 1, rank: int = 0
    ) -> None:
        """Be number `rank` of `workers`, with another part; a window that is declared starts with the most."""
        self._workers, self._rank = max(workers, 1), max(rank, 0)
        self._start, self._most, self._timeout = start, max(most, 1), timeout
        if self._workers > 1:
            self.controller = None
        elif self.controller is None:
            self.controller = Controller(start, self._most, timeout, now)
            self._setting = None
            self.counts = self.counts.at(self.controller.epoch)
        else:
            self.controller.resize(self._most, timeout, 1)
        whole = start * self._workers if self._setting is None else self._setting.window
        if self._setting is not None and self.controller is not None:
            whole = int(self.controller.window)
        self.window = self._part(whole)
        pace = None if self._setting is None else self._setting.pace
        self._turns.follow(pace, now + self.offset, self._workers, self._rank)

    def _part(self, window: int) -> int:
        whole, rest = divmod(window, self._workers)
        return min(max(whole + (self._rank < rest), 1), self._most)

    def obey(self, setting: Setting, now: float, worker: str = "") -> None:
        """Do this worker's part of what was decided, which is found under its name."""
        before, self._setting = self._setting, setting
        self.window = setting.parts.get(worker) or self._part(setting.window)
        if before is None or (setting.pace, setting.turns) != (before.pace, before.turns):
            takes = worker in setting.turns
            place = setting.turns.index(worker) if takes else self._rank
            number = len(setting.turns) if takes else self._workers
            self._turns.follow(setting.pace, now + self.offset, number, place)
        if setting.epoch != self.counts.epoch:
            since = -math.inf if setting.pace is None else setting.pace.since - self.offset
            self._later = (setting.epoch, since)
            self._switch(now)

    def _switch(self, now: float) -> None:
        if self._later is not None and now >= self._later[1] - 1e-6:
            self.counts = self.counts.at(self._later[0])
            self._later = None

    def wait(self, now: float) -> float:
        """Seconds until a request may start by the pace."""
        wait = self._turns.wait(now + self.offset) if self.is_paced else 0.0
        return max(wait, self._started + _BRAKE_SECONDS - now) if self.is_braked else wait

    def start(self, now: float) -> None:
        """Note that a request starts; `now` matters only where there is a pace."""
        self._started = now
        if self.is_paced:
            self._switch(now)
            self._turns.take(now + self.offset)
        self.counts.all_sent += 1
        self.counts.sent += self._later is None

    @property
    def epoch(self) -> int:
        """Of a request that starts now: none while the pace is another one than the one decided on."""
        return self.counts.epoch if self._later is None else -1

    def passed(self, now: float, mark: Mark, tokens: float) -> None:
        """Note that a request was let through, and how many tokens came back."""
        self._row = 0
        counts = self.counts
        counts.all_passed += 1
        if mark.epoch == counts.epoch:
            counts.passed += 1
            counts.most_passed = max(counts.most_passed, mark.in_flight)
            if mark.in_flight >= _FULL * self.window:
                counts.answers += 1
                counts.waited += now - mark.started
                counts.tokens += tokens or 1.0
        self.look(now)

    def refused(self, now: float, mark: Mark, pause: float) -> bool:
        """Note that a request was refused, and asked to wait for `pause` seconds; returns whether anything changed."""
        self._row += 1
        counts = self.counts
        counts.all_refused += 1
        if mark.epoch == counts.epoch:
            counts.refused += 1
            counts.least_refused = min(counts.least_refused, mark.in_flight)
            counts.pause = max(counts.pause, pause)
            counts.delay = max(counts.delay, now - mark.started)
        if counts.refused == 2 * IN_A_ROW > counts.passed:
            # A tenth of a second is long where refusals come at once.
            self._looked = -math.inf
        return self.look(now)

    def overloaded(self, now: float, mark: Mark) -> bool:
        """Note a time-out or another word of overload; returns whether requests become fewer by it."""
        if mark.epoch != self.counts.epoch:
            return False
        first = not self.counts.overloads
        self.counts.overloads += 1
        self._looked = -math.inf
        self.look(now)
        return first

    def look(self, now: float) -> bool:
        """Decide anew, if this worker is alone; returns whether anything changed."""
        controller = self.controller
        if controller is None:
            return False
        # In the first rounds at each answer, as many come at once; of refusals more are awaited, or chance would tell.
        if now - self._looked < _LOOK_SECONDS and (not controller.growing or self.counts.refused):
            return False
        self._looked = now
        if not controller.look(now, self.counts):
            return False
        pace = followed(self._turns.pace, controller.pace, now + self.offset, 1)
        self.obey(
            Setting(controller.epoch, int(controller.window), pace, controller.found, {}, ("",), 0), now
        )
        return True


class Shared:
    """The controllers of all endpoints, at the driver, for several workers."""

    def __init__(self) -> None:
        self._of: dict[str, _Merged] = {}
        self._looked = -math.inf

    def hear(self, worker: str, model: str, report: Sequence[object], now: float) -> None:
        """Take in what a worker counted."""
        told = Report(*report)  # type: ignore[arg-type]
        merged = self._of.get(model)
        if merged is None:
            merged = self._of[model] = _Merged(told, now)
        merged.hear(worker, told)

    def decide(self, workers: Collection[str], now: float) -> Mapping[str, Setting]:
        """By model, what is decided anew; to be told all `workers`."""
        if len(workers) < 2:
            self._of.clear()
        if now - self._looked < _DRIVER_SECONDS:
            return {}
        self._looked = now
        decided = {model: merged.decide(workers, now) for model, merged in self._of.items()}
        return {model: setting for model, setting in decided.items() if setting is not None}


class _Merged:
    def __init__(self, told: Report, now: float) -> None:
        self.controller = Controller(told.start, told.most, told.timeout, now, told.workers)
        self._counts: dict[str, Counts] = {}
        self._reports: dict[str, Report] = {}
        self._ended = Counts(0)
        """All of workers that were started again."""
        self._told: deque[Setting] = deque(maxlen=20)
        """The last settings: a worker obeys those that it has not named yet sooner or later."""
        self._workers, self._number, self._told_at = told.workers, 0, -math.inf

    def hear(self, worker: str, told: Report) -> None:
        counts = Counts(*told.counts)  # type: ignore[arg-type]
        before = self._counts.get(worker)
        if before is not None and counts.all_sent < before.all_sent:
            self._ended = together((self._ended, before), 0)
        self._counts[worker], self._reports[worker] = counts, told
        if told.workers != self._workers:
            self._workers = told.workers
            self.controller.resize(told.most, told.timeout, told.workers)

    def decide(self, workers: Collection[str], now: float) -> Setting | None:
        """What is to be told, if anything is new."""
        controller, last = self.controller, self._told[-1] if self._told else None
        self._reports = {worker: told for worker, told in self._reports.items() if worker in workers}
        # While another pace is on its way it is not overtaken.
        if last is None or last.pace is None or now >= last.pace.since:
            controller.look(now, together([*self._counts.values(), self._ended], controller.epoch))
        asking = sorted(worker for worker, told in self._reports.items() if told.wanted)
        turns = tuple(asking or sorted(workers))
        pace = followed(last and last.pace, controller.pace, now + _NOTICE, len(turns))
        if last is not None and pace is not None and turns != last.turns and pace == last.pace:
            pace = Pace(pace.rate, now + _NOTICE, pace.turn_at(now + _NOTICE))
        setting = Setting(
            controller.epoch,
            int(controller.window),
            pace,
            controller.found,
            self._share_out(workers, last.parts if last else {}),
            turns,
            self._number,
        )
        missed = any(told.number != self._number for told in self._reports.values())
        if setting == last and not (missed and now - self._told_at > _AGAIN):
            return None
        self._told_at, self._number = now, self._number + 1
        self._told.append(setting._replace(number=self._number))
        return self._told[-1]

    def _share_out(self, workers: Collection[str], before: Mapping[str, int]) -> Mapping[str, int]:
        """Give what some cannot use to those who can, as far as it is free."""
        reports, window = self._reports, int(self.controller.window)
        if not len(reports) == len(workers) == self._workers:
            return {}
        wanted = shares(window, {worker: told.wanted for worker, told in reports.items()})
        if (sum(before.values()), before.keys()) == (window, wanted.keys()) and all(
            abs(wanted[worker] - part) <= part // 8 for worker, part in before.items()
        ):
            return before
        held = {
            worker: max(told.held, *self._parts_of(worker, told.number)) for worker, told in reports.items()
        }
        free, parts = max(window - sum(held.values()), 0), {}
        for worker, part in wanted.items():
            # What another one still holds is not lent twice: the sum is never above the window.
            more = min(max(part - held[worker], 0), free)
            parts[worker] = min(part, held[worker]) + more
            free -= more
        return parts

    def _parts_of(self, worker: str, after: int) -> list[int]:
        """What a worker was told since the setting of that number, which it has."""
        return [0, *(told.parts.get(worker, 0) for told in self._told if told.number > after)]


def shares(window: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Equal parts of a window, at least one each; what one does not want the others have.

    Examples
    --------
    >>> shares(12, {"a": 1, "b": 9, "c": 9})
    {'a': 1, 'b': 5, 'c': 6}
    >>> shares(12, {"a": 1, "b": 1, "c": 1})
    {'a': 4, 'b': 4, 'c': 4}
    """
    found, left = {}, window
    for place, worker in enumerate(sorted(wanted, key=lambda one: (wanted[one], one))):
        found[worker] = max(min(left // (len(wanted) - place), wanted[worker]), 1)
        left -= found[worker]
    return {worker: part + max(left, 0) // len(wanted) for worker, part in found.items()}
