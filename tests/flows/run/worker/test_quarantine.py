"""Whether a worker's failures are its own or its endpoint's."""

from types import SimpleNamespace

import pytest
from distributed import Reschedule

from evalcube.deploy.clusters.asking import PendingAnswer
from evalcube.flows.events import InDoubt, as_message, from_message
from evalcube.flows.run.worker import quarantine
from evalcube.flows.run.worker.quarantine import Doubts, Ruling, Standing, hold_if_in_doubt, ruling_on
from evalcube.stages.infer.jobs import Result
from evalcube.stages.infer.reply import Reply, RetryClass

WELL = Standing(given_up=False, answered=5, in_flight=2, problem="")
CUT_OFF = Standing(given_up=True, answered=0, in_flight=0, problem="refused")
REFUSED = Standing(given_up=True, answered=0, in_flight=0, problem="")


def after(standing, answered):
    return standing._replace(answered=standing.answered + answered)


@pytest.mark.parametrize(
    ("own", "other", "cause", "verdict"),
    [
        (CUT_OFF, WELL, "connect", Ruling.ALONE),
        (CUT_OFF, CUT_OFF, "connect", Ruling.SHARED),
        (REFUSED, after(WELL, 3), "http 403", Ruling.ALONE),
        (REFUSED, after(WELL, 2), "http 403", None),  # these were sent before
        (REFUSED, REFUSED, "http 403", Ruling.SHARED),
        (REFUSED, CUT_OFF, "http 403", Ruling.SHARED),
        (REFUSED, WELL, "connect", Ruling.AGAIN),
        (REFUSED._replace(revived=3), after(WELL, 3), "connect", Ruling.ALONE),
        (WELL._replace(revived=3), WELL, "connect", Ruling.SHARED),
    ],
)
def test_ruling_on__is_alone_only_if_others_are_answered(own, other, cause, verdict):
    assert ruling_on(own, {"b": other}, {"b": WELL}, cause) is verdict


def test_ruling_on__where_nobody_else_is_there_it_is_the_endpoint():
    assert ruling_on(CUT_OFF, {}, {}, "connect") is Ruling.SHARED


class Told:
    """Questions and what is answered to them, in place of a cluster."""

    def __init__(self, monkeypatch, **standings):
        self.asked, self.told, self.aside, self.standings = [], [], {}, standings
        monkeypatch.setattr(quarantine, "ask_each", self._ask)
        monkeypatch.setattr(
            quarantine, "PendingAnswer", lambda _, answer: SimpleNamespace(done=True, answer=lambda: answer)
        )

    def _ask(self, client, function, name, model, *words, workers, **_):  # noqa: ARG002 - the interface
        if function is quarantine._hear:
            self.told.append((workers, model, *words))
            return {}
        self.asked.append(workers)
        return {one: self.standings[one] for one in workers if one in self.standings}

    def set_aside(self, address, why):
        self.aside[address] = why


REPORT = InDoubt("b", "gpt", "connect", "api:443")


def follow(told, there, polls=4):
    assert PendingAnswer
    found = Doubts(None, "run", told)
    found.heard(REPORT)
    found.heard(REPORT)  # from another block of it
    for now in range(polls):
        found.poll(there, 100.0 + now)


def test_doubts__sets_aside_who_is_alone(monkeypatch):
    told = Told(monkeypatch, a=WELL, b=CUT_OFF)

    follow(told, ["a", "b"])

    assert told.asked == [["b", "a"]]
    assert told.told == []
    assert told.aside["b"].startswith(
        "its requests to api:443 (gpt) fail (connect), and those of others do not"
    )


def test_doubts__tells_a_worker_that_is_not_alone_to_deliver(monkeypatch):
    told = Told(monkeypatch, a=CUT_OFF, b=CUT_OFF)

    follow(told, ["a", "b"])

    assert (told.told, told.aside) == ([(["b"], "gpt", "shared")], {})


def test_doubts__of_a_worker_that_is_gone_or_does_not_answer_are_not_judged(monkeypatch):
    told = Told(monkeypatch, a=WELL)

    follow(told, ["a", "b"])
    follow(told, ["a"])

    assert (told.told, told.aside) == ([], {})


class Work:
    context = SimpleNamespace(run="run", routes={})

    def __init__(self, *, given_up=False, doubts=True, abandoned=False):
        self.faulty, self.revived = {"gpt"}, {"gpt": 0}
        self._given_up, self._abandoned, self.doubts = given_up, abandoned, doubts

    def may_doubt(self, _):
        return self.doubts

    def given_up(self, _):
        return self._given_up

    def is_abandoned(self, _):
        return self._abandoned


def failed(cause):
    return Result.failed(Reply(RetryClass.RETRY, cause), 1)


@pytest.fixture
def worker(monkeypatch):
    reports = []
    monkeypatch.setattr(quarantine, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(quarantine, "place", lambda _: "api:443")
    monkeypatch.setitem(Work.context.routes, "gpt", SimpleNamespace(endpoint=None))
    return SimpleNamespace(
        address="b",
        reports=reports,
        get_current_task=lambda: "infer-1",
        log_event=lambda topic, message: reports.append((topic, from_message(message))),
    )


def test_hold_if_in_doubt__reports_and_waits_until_the_task_is_taken_away(worker):
    with pytest.raises(Reschedule):
        hold_if_in_doubt(Work(abandoned=True), "gpt", [failed("connect")], worker)

    assert worker.reports == [("evalcube-run", REPORT)]
    assert from_message(as_message(REPORT)) == REPORT


def test_hold_if_in_doubt__delivers_once_it_is_judged(worker):
    work = Work(given_up=True)
    work.may_doubt = lambda _: not worker.reports

    hold_if_in_doubt(work, "gpt", [failed("http 403")], worker)

    assert [report.cause for _, report in worker.reports] == ["http 403"]


@pytest.mark.parametrize(
    ("work", "results"),
    [
        (Work(), [failed("http 400"), failed("timeout")]),  # the requests' own
        (
            Work(given_up=True, doubts=False),
            [failed("connect")],
        ),  # nobody else is there, or it is judged already
        (Work(given_up=True), [Result("stored")]),
    ],
)
def test_hold_if_in_doubt__other_results_are_delivered_at_once(worker, work, results):
    hold_if_in_doubt(work, "gpt", results, worker)

    assert worker.reports == []


def test_hold_if_in_doubt__an_answer_shows_that_the_endpoint_is_there(worker):
    work = Work()

    hold_if_in_doubt(work, "gpt", [Result("stored")], worker)

    assert work.faulty == set()
