"""A plan of strikes in; a sweep that is struck, resumed until it is complete, and compared with a calm one out."""

from __future__ import annotations

import json
import math
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from evalcube import run
from tests.chaos import served, verdict
from tests.chaos.plan import Strike, make_plan
from tests.chaos.processes import Fleet, fleet, send
from tests.flows.shared_cluster import SHARED

_CONNECTIONS = 16
_TIMEOUT = 6.0
"""Seconds: shorter than a SIGSTOP, and far longer than anything takes on a busy machine."""
_CELLS = 6
_SILENCE = 240.0
"""Seconds without request, receipt or exit after which a driver hangs."""
_LAST_RUNS = 8
_COMMIT_PATIENCE, _COMMIT_SECONDS = 500, 15.0
"""Requests, and seconds of a run, after which a strike no longer waits for a receipt."""
_TICK = 0.01
_LOOK = 0.2
"""Seconds between two looks at all processes of the machine, each of which takes a twentieth."""


@dataclass(frozen=True)
class Campaign:
    """What is to be done."""

    seed: int
    strikes: int
    trials: int
    """At least; a cell has whole ones."""
    models: int = 4
    workers: int = 2
    latency: float = 0.05
    stop_seconds: float = 8.0
    local_share: float = 0.35
    """Share of the runs that have a cluster of their own."""

    @property
    def per_cell(self) -> int:
        """Trials of each cell."""
        return -(-self.trials // (self.models * _CELLS))

    @property
    def requests(self) -> int:
        """Requests of a calm run."""
        return self.per_cell * self.models * _CELLS

    def config(self, folder: Path, endpoint: str, name: str) -> Path:
        """Write the sweep's config."""
        model = {
            "endpoint": endpoint,
            "simulate": {"ability": 3.0, "tokens": 12, "latency": self.latency},
            "limits": {"connections": _CONNECTIONS, "retries": 6, "timeout": _TIMEOUT},
        }
        config = {
            "name": "chaos",
            "trials": self.per_cell,
            "cube": str(folder / f"{name}.zarr"),
            "cache": str(folder / f"{name}-cache"),
            "models": [{"name": f"model-{number}", **model} for number in range(self.models)],
            "samplers": {"greedy": {"temperature": 0, "max_tokens": 200}},
            "tasks": {
                "arithmetic": {"manifold": [{"grid": {"length": list(range(3, 2 + _CELLS))}}]},
                "boolean": {"manifold": [{"points": [{"length": 4}]}]},
            },
        }
        path = folder / f"{name}.yaml"
        path.write_text(json.dumps(config, indent=1))
        return path


@dataclass
class Outcome:
    """What came of a campaign."""

    violations: list[str] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    """How often each kind of process was struck."""
    runs: int = 0
    requests: int = 0
    trials: int = 0
    allowed: int = 0
    """Requests that may be sent: the trials and what was in flight at the strikes."""
    in_flight: int = 0
    """Requests seen in flight at the strikes, summed up."""
    seconds: float = 0.0
    garbage: str = ""


class Chaos:
    """One campaign on its way."""

    def __init__(self, campaign: Campaign, folder: Path, ships: Fleet, tell: Callable[[str], None]) -> None:
        self._campaign = campaign
        self._ships = ships
        self._tell = tell
        self._chance = random.Random(campaign.seed + 1)
        self._plan = make_plan(
            campaign.seed, campaign.strikes, campaign.requests, stop_seconds=campaign.stop_seconds
        )
        self._config = campaign.config(folder, ships.endpoint, "struck")
        self._ledger = folder / "struck.zarr" / "_evalcube" / "ledger.jsonl"
        self._started = 0.0
        self._killed = False
        self.outcome = Outcome(trials=campaign.requests, allowed=campaign.requests)

    def run(self) -> None:
        """Strike until the plan is done, and bring the sweep to its end."""
        pending, calm = list(self._plan), 0
        while calm < _LAST_RUNS:
            self._begin()
            while self._alive():
                if pending and self._strike_if_due(pending[0]):
                    pending.pop(0)
                self._keep_up()
                time.sleep(_TICK)
            if self._end():
                # What is complete asks and writes nothing more, so that the last strikes may never be due.
                if len(pending) > self._campaign.strikes // 10:
                    self.outcome.violations.append(f"complete with {len(pending)} strikes still to come")
                break
            calm += not pending
        else:
            self.outcome.violations.append(f"not complete after {_LAST_RUNS} runs without a strike")
        self.outcome.requests = self._ships.requests()

    def _begin(self) -> None:
        self._ships.serve()
        local = self._chance.random() < self._campaign.local_share
        if not local:
            self._ships.assemble()
        self._ships.drive(str(self._config), local=local)
        self._killed = False
        self.outcome.runs += 1
        self._started = self._progressed = time.monotonic()
        self._seen = self._state()

    def _alive(self) -> bool:
        driver = self._ships.driver
        return driver is not None and driver.poll() is None

    def _state(self) -> tuple[int, int]:
        return self._ships.requests(), self._ledger.stat().st_size if self._ledger.exists() else 0

    def _keep_up(self) -> None:
        """Start again what was struck; notice a driver that hangs."""
        self._ships.serve()
        if not self._ships.local and self._ships.find("scheduler"):
            self._ships.assemble()
        now, state = time.monotonic(), self._state()
        if state != self._seen:
            self._seen, self._progressed = state, now
        if now - self._progressed > _SILENCE:
            self.outcome.violations.append(f"run {self.outcome.runs} hung for {_SILENCE:g} s")
            send(self._ships.find("tree"), signal.SIGKILL)
            self._killed = True
            self._progressed = now

    def _strike_if_due(self, strike: Strike) -> bool:
        requests, receipts = self._state()
        since = time.monotonic() - self._started
        if requests < strike.at or since < (strike.delay if strike.moment == "start" else 0.0):
            return False
        if strike.moment == "commit":
            if (
                receipts == self._seen[1]
                and requests < strike.at + _COMMIT_PATIENCE
                and since < _COMMIT_SECONDS
            ):
                return False
            time.sleep(strike.delay)
        return self._strike(strike)

    def _strike(self, strike: Strike) -> bool:
        ships = self._ships
        victims = {target: self._victims(target) for target in strike.targets}
        pids = [pid for found in victims.values() for pid in found]
        if not pids:
            time.sleep(_LOOK)
            return False  # it is starting just now
        before = ships.in_flight()
        if strike.stopped:
            send(pids, signal.SIGSTOP)
            time.sleep(strike.stopped)
            send(pids, signal.SIGCONT)
        else:
            ships.end(pids)
        self._killed |= not strike.stopped and bool({"driver", "tree"}.intersection(strike.targets))
        self._killed |= ships.local and not strike.stopped and strike.targets != ("simulator",)
        times = 1 + math.ceil(strike.stopped / _TIMEOUT)
        self.outcome.allowed += _CONNECTIONS * times
        self.outcome.in_flight += before
        self.outcome.struck.update(strike.targets if not strike.stopped else [f"{strike.targets[0]} stopped"])
        what = f"SIGSTOP {strike.stopped:g} s" if strike.stopped else "SIGKILL"
        whom = ", ".join(f"{target} {' '.join(map(str, found))}" for target, found in victims.items())
        place = "own cluster" if ships.local else "scheduler"
        self._tell(
            f"{strike.number:4d}  {ships.requests():6d} requests, {before:3d} in flight  "
            f"{what} {whom}  ({strike.moment}, run {self.outcome.runs}, {place})"
        )
        return True

    def _victims(self, target: str) -> list[int]:
        found = self._ships.find(target)
        if target in ("worker", "nanny") and len(found) > 1 and self._chance.random() < 0.8:
            return [self._chance.choice(found)]
        return found

    def _end(self) -> bool:
        """Look at how a driver ended; tells whether the sweep is complete."""
        driver = self._ships.driver
        code = driver.wait() if driver is not None else 0
        log = self._ships.driver_log()
        if code in (0, 1, 2) and "Traceback" not in log:
            return code == 0
        if code == -signal.SIGKILL and self._killed:
            return False
        self.outcome.violations.append(f"run {self.outcome.runs} ended with code {code}:\n{log[-3000:]}")
        return False


def run_campaign(campaign: Campaign, folder: Path, tell: Callable[[str], None]) -> Outcome:
    """Run a campaign in an empty folder.

    Returns
    -------
    Outcome
        Its `violations` are empty if every promise was kept.
    """
    begun = time.monotonic()
    with fleet(folder, campaign.workers) as ships:
        ships.serve()
        calm = run_calmly(campaign, folder)
        tell(f"calm run: {campaign.requests} trials, {time.monotonic() - begun:.0f} s")
        chaos = Chaos(campaign, folder, ships, tell)
        chaos.run()
        outcome = chaos.outcome
        _judge(campaign, folder, ships, calm, outcome)
    outcome.seconds = time.monotonic() - begun
    return outcome


def run_calmly(campaign: Campaign, folder: Path) -> Path:
    """The same sweep without a strike, in this process and with a simulator of its own; its cube."""
    run(campaign.config(folder, "sim:", "calm"), cluster=SHARED).raise_for_status()
    return folder / "calm.zarr"


def _judge(campaign: Campaign, folder: Path, ships: Fleet, calm: Path, outcome: Outcome) -> None:
    cube, cache = folder / "struck.zarr", folder / "struck-cache"
    outcome.violations += verdict.differences(cube, calm)
    tally = served.read_tally(ships.tally)
    if tally.distinct != campaign.requests:
        outcome.violations.append(f"{tally.distinct} different requests, {campaign.requests} trials")
    if tally.requests > outcome.allowed:
        outcome.violations.append(f"{tally.requests} requests were sent, {outcome.allowed} are allowed")
    ships.dismiss()  # temporary files are theirs until then
    outcome.garbage = verdict.collect_garbage(cube, cache)
    left = [str(file.relative_to(folder)) for file in verdict.leftovers(cube, cache)]
    if left:
        outcome.violations.append(f"{len(left)} files are left behind: {left[:10]}")
