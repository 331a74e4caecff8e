"""Finds out whether a worker's requests fail alone: then it is set aside, and others ask what failed there.

A worker that gives an endpoint up, or gets no connection to it, cannot know whether others do. It holds its failures
back and reports; the driver asks it and some others how they stand. Where all fail alike it is the endpoint's trouble,
and the failures are delivered as such.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from distributed import Client, Reschedule, Worker

from evalcube.deploy.clusters.asking import PendingAnswer, ask_each
from evalcube.flows.events import InDoubt, as_message, topic
from evalcube.flows.run.preflight import Members
from evalcube.flows.run.worker.context import CONNECT_SECONDS, place, why_unreachable
from evalcube.flows.run.worker.plugin import plugin_name, workspace_on
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Result
from evalcube.stages.infer.retry import UNREACHABLE

_HOLD_SECONDS = 180.0
"""So long failures are held back at most: a driver that does not answer has other troubles."""
_POLL_SECONDS = 0.25
_AGAIN_SECONDS = 2.0
_UNDECIDED_SECONDS = 120.0
"""After which what nothing decides is the endpoint's trouble."""
_ASKED = 8
"""Other workers that are asked, at most."""
_REVIVALS = 3
"""So often a worker asks an endpoint again that it gave up and that can be connected to."""


class Standing(NamedTuple):
    """How a worker stands with an endpoint."""

    given_up: bool
    """Whether it asks it nothing more."""
    answered: int
    """Replies that it got."""
    in_flight: int
    """Its requests that are under way, to whichever endpoint."""
    problem: str
    """Why it cannot connect; empty if it can."""
    revived: int = 0
    """How often it has asked again after it had given up."""


class Ruling(Enum):
    """What becomes of failures that were held back."""

    ALONE = "alone"
    """The worker alone has them: it is set aside."""
    SHARED = "shared"
    """It is the endpoint's trouble: they are delivered."""
    AGAIN = "again"
    """The way is open again: they are asked once more."""


def ruling_on(
    own: Standing, peers: Mapping[str, Standing], before: Mapping[str, Standing], cause: str
) -> Ruling | None:
    """Whether a worker fails alone; None while that cannot be known."""
    if not peers:
        return Ruling.SHARED
    # Each has just tried to connect: where no other can either, the endpoint itself is away.
    if own.problem:
        return Ruling.ALONE if any(not standing.problem for standing in peers.values()) else Ruling.SHARED
    # It connects again: an outage that is over, so that nobody is to blame.
    if cause in UNREACHABLE and own.revived < _REVIVALS:
        return Ruling.AGAIN
    if not own.given_up:
        return Ruling.SHARED
    if all(standing.given_up or standing.problem for standing in peers.values()):
        return Ruling.SHARED
    # More replies than there were requests under way: one of them was sent after this worker had given up.
    fresh = any(
        not standing.given_up
        and address in before
        and standing.answered - before[address].answered > before[address].in_flight
        for address, standing in peers.items()
    )
    return Ruling.ALONE if fresh else None


@dataclass(eq=False)
class _Doubt:
    report: InDoubt
    began: float
    before: Mapping[str, Standing] = field(default_factory=dict)
    question: PendingAnswer[dict[str, Standing | None]] | None = None
    asked_at: float = 0.0


class Doubts:
    """Failures that workers hold back until it is known whether they alone have them.

    Parameters
    ----------
    client
        A connected client.
    run
        Name of the run.
    admission
        Takes workers out of the run.
    """

    def __init__(self, client: Client, run: str, admission: Members) -> None:
        self._client, self._run, self._admission = client, run, admission
        self._open: dict[tuple[str, str], _Doubt] = {}

    def heard(self, report: InDoubt) -> None:
        """Take in a report."""
        self._open.setdefault((report.worker, report.model), _Doubt(report, time.monotonic()))

    def poll(self, there: Sequence[str], now: float) -> None:
        """Ask workers how they stand with endpoints, and rule on their failures; never waits."""
        for key, doubt in list(self._open.items()):
            worker = doubt.report.worker
            if worker not in there:
                del self._open[key]
            elif doubt.question is None and now - doubt.asked_at >= _AGAIN_SECONDS:
                peers = [address for address in there if address != worker][:_ASKED]
                doubt.asked_at, doubt.question = now, self._ask(doubt.report.model, [worker, *peers])
            elif doubt.question is not None and doubt.question.done:
                question, doubt.question = doubt.question, None
                ruling = self._rule(doubt, question, now)
                if ruling is not None:
                    del self._open[key]
                    self._carry_out(doubt.report, ruling)

    def _ask(self, model: str, workers: Sequence[str]) -> PendingAnswer[dict[str, Standing | None]]:
        seconds = CONNECT_SECONDS + _AGAIN_SECONDS
        # Dask awaits what such a function returns.
        function: Any = _standing
        asked = ask_each(
            self._client, function, plugin_name(self._run), model, workers=workers, seconds=seconds
        )
        return PendingAnswer(self._client, asked)

    def _rule(
        self, doubt: _Doubt, question: PendingAnswer[dict[str, Standing | None]], now: float
    ) -> Ruling | None:
        try:
            standings = {address: each for address, each in question.answer().items() if each is not None}
        except OSError:
            return None
        own = standings.pop(doubt.report.worker, None)
        if own is None:
            return None
        # The first answers are what later ones are compared with: only replies since then show that others are served.
        doubt.before = doubt.before or standings
        ruling = ruling_on(own, standings, doubt.before, doubt.report.cause)
        return Ruling.SHARED if ruling is None and now - doubt.began > _UNDECIDED_SECONDS else ruling

    def _carry_out(self, report: InDoubt, ruling: Ruling) -> None:
        if ruling is Ruling.ALONE:
            self._admission.set_aside(
                report.worker,
                f"its requests to {report.where} ({report.model}) fail ({report.cause}), and those of others do not. "
                f"What failed there is asked by others",
            )
            return
        question = ask_each(
            self._client, _hear, plugin_name(self._run), report.model, ruling.value, workers=[report.worker]
        )
        PendingAnswer(self._client, question)


async def _standing(name: str, model: str, dask_worker: Any = None) -> Standing | None:  # noqa: ANN401
    """Runs on workers: how this one stands with a model's endpoint."""
    work = workspace_on(dask_worker, name)
    if work is None:
        return None
    problem = await asyncio.to_thread(why_unreachable, work.context.routes[model].endpoint)
    traffic = work.traffic("")
    answered = 0 if traffic is None else traffic.answered.get(model, 0)
    in_flight = 0 if traffic is None else traffic.in_flight
    return Standing(work.given_up(model), answered, in_flight, problem, work.revived[model])


def _hear(name: str, model: str, ruling: str, dask_worker: Any = None) -> None:  # noqa: ANN401
    """Runs on a worker: what becomes of the failures that it holds back."""
    work = workspace_on(dask_worker, name)
    if work is not None and ruling == Ruling.AGAIN.value:
        work.revive(model)
    elif work is not None:
        work.faulty.add(model)


def hold_if_in_doubt(work: Workspace, model: str, results: Sequence[Result], worker: Worker) -> None:
    """Runs in tasks: hold failures back that may be this worker's own trouble, until the driver has ruled."""
    if any(result.kind == "stored" for result in results):
        work.faulty.discard(model)  # the endpoint is there
    causes = Counter(result.cause for result in results if result.kind == "failed")
    if not causes or not work.may_doubt(model):
        return
    if not work.given_up(model) and not UNREACHABLE.intersection(causes):
        return
    task, cause = worker.get_current_task(), causes.most_common(1)[0][0]
    revived = work.revived[model]
    where = place(work.context.routes[model].endpoint)
    report = InDoubt(worker.address, model, cause, where)
    worker.log_event(topic(work.context.run), as_message(report))
    deadline = time.monotonic() + _HOLD_SECONDS
    while work.may_doubt(model) and time.monotonic() < deadline:
        if work.is_abandoned(task) or work.revived[model] > revived:
            # Back to Dask, which begins the task anew, here or on another worker; nothing of it was delivered.
            raise Reschedule
        time.sleep(_POLL_SECONDS)
