"""Whether a worker's failures are its own or its endpoint's."""

import asyncio
from types import SimpleNamespace

import pytest
from distributed import Reschedule

from evalcube.deploy.clusters.asking import PendingAnswer
from evalcube.flows.events import InDoubt, as_message, from_message
from evalcube.flows.run.worker import quarantine
from evalcube.flows.run.worker.quarantine import Doubts, Ruling, Standing, hold_if_in_doubt, ruling_on
from evalcube.stages.infer.jobs import Result
from evalcube.stages.infer.reply import Reply, RetryClass
from tests.cases import with_cases

WELL = Standing(given_up=False, answered=5, in_flight=2, problem="")
CUT_OFF = Standing(given_up=True, answered=0, in_flight=0, problem="refused")
REFUSED = Standing(given_up=True, answered=0, in_flight=0, problem="")


def after(standing, answered):
    return standing._replace(answered=standing.answered + answered)


@with_cases(
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


@pytest.fixture
def refused(monkeypatch):
    """Doubts of a worker that an endpoint refuses, at the time 100, and whom they ask and tell."""
    told = Told(monkeypatch, a=WELL, b=REFUSED)
    monkeypatch.setattr(quarantine, "time", SimpleNamespace(monotonic=lambda: 100.0))
    doubts = Doubts(None, "run", told)
    doubts.heard(InDoubt("b", "gpt", "http 403", "api:443"))
    return doubts, told


def test_doubts__asks_again_every_two_seconds_until_two_minutes_have_passed(refused):
    doubts, told = refused

    for now, asked in ((100.0, 1), (101.0, 1), (101.9, 1), (102.0, 2), (220.0, 2), (222.0, 3)):
        doubts.poll(["a", "b"], now)
        assert (len(told.asked), told.told) == (asked, [])
    doubts.poll(["a", "b"], 222.5)
    doubts.poll(["a", "b"], 230.0)

    assert (told.told, told.aside, len(told.asked)) == ([(["b"], "gpt", "shared")], {}, 3)


def test_doubts__compares_replies_with_those_of_the_first_answer(refused):
    doubts, told = refused

    for start, answered in enumerate((0, 2, 3)):
        assert told.aside == {}
        told.standings["a"] = after(WELL, answered)
        doubts.poll(["a", "b"], 100.0 + 3 * start)
        doubts.poll(["a", "b"], 101.0 + 3 * start)

    assert list(told.aside) == ["b"]


def test_doubts__asks_no_more_than_eight_others(refused):
    doubts, told = refused
    others = [f"w{number}" for number in range(12)]

    doubts.poll(["b", *others], 100.0)

    assert told.asked == [["b", *others[:8]]]


def test_standing__is_that_of_the_workers_own_traffic(monkeypatch):
    traffic = SimpleNamespace(answered={"gpt": 4}, in_flight=3)
    work = SimpleNamespace(
        context=SimpleNamespace(routes={"gpt": SimpleNamespace(endpoint="e"), "new": SimpleNamespace(endpoint="f")}),
        traffic=lambda _: traffic,
        given_up=lambda model: model == "gpt",
        revived={"gpt": 2, "new": 0},
    )  # fmt: skip
    monkeypatch.setattr(quarantine, "why_unreachable", lambda endpoint: f"no way to {endpoint}")
    monkeypatch.setattr(quarantine, "workspace_on", lambda worker, _: worker and work)

    def standing(worker, model):
        return asyncio.run(quarantine._standing("plugin", model, worker))

    assert standing(None, "gpt") is None
    assert standing("w", "gpt") == Standing(True, 4, 3, "no way to e", 2)
    assert standing("w", "new") == Standing(False, 0, 3, "no way to f", 0)
    work.traffic = lambda _: None
    assert standing("w", "gpt") == Standing(True, 0, 0, "no way to e", 2)


@pytest.mark.parametrize(
    ("ruling", "revived", "faulty"),
    [(Ruling.AGAIN, ["gpt"], set()), (Ruling.SHARED, [], {"gpt"})],
)
def test_hear__asks_again_or_delivers(monkeypatch, ruling, revived, faulty):
    again = []
    work = SimpleNamespace(faulty=set(), revive=again.append)
    monkeypatch.setattr(quarantine, "workspace_on", lambda worker, _: worker and work)

    quarantine._hear("plugin", "gpt", ruling.value, None)
    assert (again, work.faulty) == ([], set())
    quarantine._hear("plugin", "gpt", ruling.value, "w")

    assert (again, work.faulty) == (revived, faulty)


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


def test_hold_if_in_doubt__begins_anew_once_the_way_is_open_again(worker):
    work = Work(given_up=True)
    worker.log_event = lambda *_: work.revived.update(gpt=1)

    with pytest.raises(Reschedule):
        hold_if_in_doubt(work, "gpt", [failed("connect")], worker)


def test_hold_if_in_doubt__waits_three_minutes_at_most_and_tells_the_commonest_cause(worker, monkeypatch):
    clock = iter((0.0, 179.0, 180.0))
    waited = []
    monkeypatch.setattr(
        quarantine, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=waited.append)
    )

    hold_if_in_doubt(
        Work(given_up=True), "gpt", [failed("connect"), failed("http 403"), failed("http 403")], worker
    )

    assert [report.cause for _, report in worker.reports] == ["http 403"]
    assert (len(waited), list(clock)) == (1, [])


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
