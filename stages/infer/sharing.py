"""One controller and the limits of an endpoint, shared among workers: each counts, and uses what it was lent.

A worker that is alone looks at its own counts. Of several the driver takes in the counts, and decides for all. What it
lends, connections and parts of the rates, is never more in total than there is: a part is lent again only once its
worker has reported that it holds less, or is gone. Pure: the caller brings the time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, NamedTuple

from evalcube.stages.infer.controller import IN_A_ROW, Controller, Pace, Turns, next_pace
from evalcube.stages.infer.counts import Counts, Loan, Mark, Report, lend, shares, together

if TYPE_CHECKING:
    from evalcube.stages.infer.rates import Quota

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
    loans: Mapping[str, Loan]
    """What each worker may use."""
    turns: tuple[str, ...]
    """Workers who take turns at the pace."""
    number: int
    """Of settings, so that a worker says which one it has."""

    def loan(self, worker: str) -> Loan:
        """Return what a worker may use, which is nothing if it is not named."""
        return self.loans.get(worker, Loan())

    def report_unused(self, worker: str, stops: int) -> Report:
        """Return the report of a worker that has asked the endpoint nothing yet, and was stopped so often."""
        loan = self.loan(worker)
        return Report(0, loan if loan.stops == stops else Loan(stops=stops), self.number, astuple(Counts()))


class Gate:
    """What one worker may start at an endpoint that it shares, and what became of it."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.window = 0
        """Most requests in flight, now."""
        self.rate = 0.0
        """Share of the declared rates, in [0, 1]."""
        self.rank = 0
        """Place of this worker among all, so that their parts add up."""
        self.offset = 0.0
        """What makes this worker's clock the one that all of them have, seconds."""
        self.controller: Controller | None = None
        """Of a worker that is alone."""
        self.stops = 0
        """How often this process was stopped; what was lent before does not count."""
        self._asks = False
        """Whether it waits for the driver's answer after a stop."""
        self._workers, self._most, self._number = 0, 0, 0
        self._setting: Setting | None = None
        self._turns = Turns()
        self._later: tuple[int, float] | None = None
        """The epoch to come, and when."""
        self._looked = self._started = -math.inf
        self._row = 0

    @property
    def phase(self) -> float:
        """Part of an interval that this worker waits first, in [0, 1), so that the workers take turns."""
        return self.rank / max(self._workers, 1)

    @property
    def is_paced(self) -> bool:
        """Whether requests have to wait for a turn."""
        return self._turns.pace is not None

    @property
    def is_braked(self) -> bool:
        """Whether the last ones were all refused, and it is the driver who decides."""
        return self._workers > 1 and not self.lets_through

    @property
    def top_rate(self) -> float | None:
        """Requests per second of all workers that are let through at most."""
        return None if self._setting is None else self._setting.found

    @property
    def lets_through(self) -> bool:
        """Whether the last ones were not all refused."""
        return self._row < IN_A_ROW

    def report(self, in_flight: int, waiting: int) -> Report | None:
        """For the driver, with requests that are in flight here and that wait; None where it need not decide."""
        if self._workers == 1 and not self.stops:
            return None
        wanted = min(in_flight + waiting, self._most) if self._workers else 0
        # More may be in flight than the window allows by now: no request is cancelled because the window shrank.
        held = Loan(max(in_flight, self.window), self.rate, self.stops)
        return Report(wanted, held, self._number, astuple(self.counts))

    def resize(self, start: int, most: int, timeout: float, now: float, workers: int = 1) -> None:
        """Be one of `workers`: alone with a controller of its own, else with what the driver lends.

        Until it lends anything a worker keeps what it has: one that was alone all, one that joins nothing. With 0
        workers nothing starts.
        """
        self._workers, self._most = workers, most
        if workers != 1:
            self.controller = None
            if not workers:
                self.window, self.rate = 0, 0.0
            return
        if self.controller is None:
            self.controller = Controller(start, most, timeout, now)
            self._setting, self.counts = None, self.counts.at(self.controller.epoch)
            self._turns.follow(None, now + self.offset, 1, 0)
        else:
            self.controller.resize(most, timeout, 1)
        if not self._asks:
            self.window, self.rate, self.rank = int(self.controller.window), 1.0, 0

    def stop(self, stops: int) -> None:
        """Start nothing until the driver answers after so many stops: others may have what this worker had."""
        self.stops, self._asks = stops, True
        self.window, self.rate = 0, 0.0

    def obey(self, setting: Setting, now: float, worker: str = "") -> None:
        """Do this worker's part of what was decided, which is found under its name."""
        loan = setting.loan(worker)
        # What was sent before a stop, or overtaken by a later setting, says nothing of what is free now.
        if not self._workers or loan.stops != self.stops or setting.number < self._number:
            return
        self._number, self._asks = setting.number, False
        if self.controller is not None:
            self.window, self.rate = int(self.controller.window), 1.0
            return
        self.window, self.rate = min(loan.connections, self._most), loan.rate
        self.rank = sum(name < worker for name in setting.loans)
        self._take_turns(setting, now, worker, self.rank)

    def _take_turns(self, setting: Setting, now: float, worker: str, rank: int) -> None:
        """Follow a setting's pace, as one of those who take turns or in the place `rank` of all."""
        before, self._setting = self._setting, setting
        if before is None or (setting.pace, setting.turns) != (before.pace, before.turns):
            takes = worker in setting.turns
            index = setting.turns.index(worker) if takes else rank
            number = len(setting.turns) if takes else self._workers
            self._turns.follow(setting.pace, now + self.offset, number, index)
        # From when the new pace holds: answers to what was sent before still tell of the old one.
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

    def note_passed(self, now: float, mark: Mark, tokens: float) -> None:
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

    def note_refused(self, now: float, mark: Mark, pause: float) -> bool:
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

    def note_overload(self, now: float, mark: Mark) -> bool:
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
        pace = next_pace(self._turns.pace, controller.pace, now + self.offset, 1)
        if not self._asks:
            self.window = int(controller.window)
        setting = Setting(controller.epoch, int(controller.window), pace, controller.top_rate, {}, ("",), 0)
        self._take_turns(setting, now, "", 0)
        return True


class Shared:
    """The limits of all endpoints of a run, at the driver, and what workers have of them.

    `limits` are by label of the model: those of its endpoint, and seconds that a request may take. An endpoint has the
    label of one of its models, which are the `first` ones; another one is taken in once a worker reports under it.
    """

    def __init__(
        self, limits: Mapping[str, tuple[Quota, float]] | None = None, first: Collection[str] = ()
    ) -> None:
        self.runs: Mapping[str, tuple[int, int]] = {}
        """By label of a model: number of runs that share its endpoint, and this one's place among them."""
        self._limits = limits or {}
        self._of = {model: _Endpoint(*self._limits[model]) for model in first}
        self._looked = -math.inf

    @property
    def settings(self) -> Mapping[str, Setting]:
        """By model, what was decided last."""
        return {model: each.last for model, each in self._of.items() if each.last is not None}

    def hear(self, worker: str, model: str, report: Sequence[object]) -> None:
        """Take in what a worker counted."""
        if model in self._limits:
            wanted, held, number, counts = report
            endpoint = self._of.setdefault(model, _Endpoint(*self._limits[model]))
            endpoint.hear(worker, Report(wanted, Loan(*held), number, counts))  # type: ignore[arg-type, misc]

    def count(self, members: Collection[str], present: Collection[str]) -> int:
        """Return the number of workers that share the endpoints; one is alone only once no other holds anything."""
        lone = len(members) == 1 and any(
            each.is_lent(set(present) - set(members)) for each in self._of.values()
        )
        return 2 if lone else len(members)

    def decide(
        self, members: Collection[str], present: Collection[str], now: float, *, at_once: bool = False
    ) -> Mapping[str, Setting]:
        """By model, what is decided anew for the workers that take part; all that are present are to be told.

        Present are these and others that may still hold something: none that are gone, or that have been silent for so
        long that they ask before their next request. With `at_once` it cannot wait, as members have changed.
        """
        if not at_once and now - self._looked < _DRIVER_SECONDS:
            return {}
        self._looked = now
        workers = self.count(members, present)
        decided = {}
        for model, endpoint in self._of.items():
            endpoint.divide(*self.runs.get(model, (1, 0)))
            decided[model] = endpoint.decide(members, present, workers, now)
        return {model: setting for model, setting in decided.items() if setting is not None}


class _Endpoint:
    """Limits of one endpoint, and who has what of them."""

    def __init__(self, quota: Quota, timeout: float) -> None:
        self._declared = self._quota = quota
        self._timeout = timeout
        self.last: Setting | None = None
        self._controller: Controller | None = None
        """Of several workers."""
        self._counts: dict[str, Counts] = {}
        self._reports: dict[str, Report] = {}
        self._ended = Counts(0)
        """All of workers that were started again."""
        self._lent: dict[str, dict[int, Loan]] = {}
        """By worker, and by number of the setting, what it was lent since the last one that it reported."""
        self._parts: Mapping[str, int] = {}
        """What each worker is to have, once that is free."""
        self._number, self._told_at = 0, -math.inf

    def divide(self, runs: int, place: int) -> None:
        """Use the part of one of several runs."""
        self._quota = self._declared.of_run(runs, place)

    def hear(self, worker: str, report: Report) -> None:
        counts = Counts(*report.counts)  # type: ignore[arg-type]
        before = self._counts.get(worker)
        if before is not None and counts.all_sent < before.all_sent:
            # Fewer than before under one address: the worker was started again, and what its former process sent counts
            # on.
            self._ended = together((self._ended, before), 0)
        self._counts[worker], self._reports[worker] = counts, report
        later = {
            number: loan for number, loan in self._lent.get(worker, {}).items() if number > report.number
        }
        # Settings up to the reported number are in force there; only later ones may still be on their way.
        self._lent[worker] = later

    def is_lent(self, workers: Collection[str]) -> bool:
        """Whether some workers hold anything."""
        return any(loan.connections or loan.rate for loan in self._holdings(workers).values())

    def _holdings(self, workers: Collection[str]) -> dict[str, Loan]:
        """The most that each worker may have: what it reported, or was lent since and has sooner or later."""
        held = {}
        for worker in workers:
            # The most of all of them: its report and the driver's message may have crossed.
            loans = [*self._lent.get(worker, {}).values()]
            if worker in self._reports:
                loans.append(self._reports[worker].held)
            held[worker] = Loan(
                max((loan.connections for loan in loans), default=0),
                max((loan.rate for loan in loans), default=0.0),
                max((loan.stops for loan in loans), default=0),
            )
        return held

    def decide(
        self, members: Collection[str], present: Collection[str], workers: int, now: float
    ) -> Setting | None:
        """What is to be told, if anything is new."""
        self._reports = {worker: self._reports[worker] for worker in self._reports if worker in present}
        self._lent = {worker: self._lent[worker] for worker in self._lent if worker in present}
        quota = self._quota
        if workers < 2:
            # A worker that is alone decides itself, and may use all.
            self._controller = None
            loans = {
                worker: Loan(quota.connections, 1.0, loan.stops)
                for worker, loan in self._holdings(members).items()
            }
            setting = Setting(0, quota.connections, None, None, loans, tuple(members), self._number)
        else:
            setting = self._decide_for_several(members, present, now)
        reported = [self._reports.get(worker) for worker in members]
        # Nobody acknowledges a setting: whoever reports an older one is told again, though not at each look.
        missed = any(each is None or each.number != self._number for each in reported) and workers > 1
        if setting == self.last and not (missed and now - self._told_at > _AGAIN):
            return None
        self._told_at, self._number = now, self._number + 1
        self.last = setting._replace(number=self._number)
        for worker, loan in setting.loans.items():
            self._lent.setdefault(worker, {})[self._number] = loan
        return self.last

    def _decide_for_several(self, members: Collection[str], present: Collection[str], now: float) -> Setting:
        """What is decided for several workers."""
        quota, last = self._quota, self.last
        bounds = quota.connections, self._timeout, min(len(members), quota.connections)
        if self._controller is None:
            # Begun anew: what a worker found out while it was alone is not reported.
            self._controller = Controller(quota.first, quota.connections, self._timeout, now, bounds[2])
            last = None
        controller = self._controller
        controller.resize(*bounds)
        # While another pace is on its way it is not overtaken.
        if last is None or last.pace is None or now >= last.pace.since:
            controller.look(now, together([*self._counts.values(), self._ended], controller.epoch))
        asking = sorted(
            worker for worker in members if (report := self._reports.get(worker)) and report.wanted
        )
        turns = tuple(asking or sorted(members))
        pace = next_pace(last and last.pace, controller.pace, now + _NOTICE, len(turns))
        if last is not None and pace is not None and turns != last.turns and pace == last.pace:
            pace = Pace(pace.rate, now + _NOTICE, pace.turn_at(now + _NOTICE))
        window = int(controller.window)
        loans = self._lend(window, members, present)
        return Setting(controller.epoch, window, pace, controller.top_rate, loans, turns, self._number)

    def _lend(self, window: int, members: Collection[str], present: Collection[str]) -> Mapping[str, Loan]:
        """Give what some cannot use to those who can, as far as it is free."""
        reports, before = self._reports, self._parts
        wanted = {each: reports[each].wanted if each in reports else 0 for each in members}
        parts = shares(window, wanted)
        # What moves is idle for a moment, which a small difference is not worth, nor one in what does not divide.
        if (sum(before.values()), before.keys()) == (window, parts.keys()) and all(
            abs(parts[worker] - part) <= (part // 8 or 0 < part <= wanted[worker])
            for worker, part in before.items()
        ):
            parts = dict(before)
        self._parts, held = parts, self._holdings(present)
        connections = lend(window, parts, {worker: loan.connections for worker, loan in held.items()})
        fractions = {worker: part / max(window, 1) for worker, part in parts.items()}
        rates = lend(1.0, fractions, {worker: loan.rate for worker, loan in held.items()})
        return {
            worker: Loan(int(connections[worker]), rates[worker], held[worker].stops) for worker in members
        }
