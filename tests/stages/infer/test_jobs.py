"""What becomes of jobs and who waits for them, an engine's totals, and how late its process is."""

import json
from types import SimpleNamespace

import pytest

from evalcube.stages.infer import jobs
from evalcube.stages.infer.jobs import Job, JobGroup, Lateness, Result, SharedJob, Slowdown, Stats
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.infer.sharing import Loan, Setting

REPLY = Reply(
    RetryClass.FAILED, "http 400", detail="no", prompt_tokens=5, completion_tokens=7, cached_tokens=2
)
STORED = Result("stored")


def test_result__keeps_of_a_reply_what_matters():
    assert Result.stored(REPLY, 2) == Result("stored", "http 400", "", 2, 5, 7)
    assert Result.failed(REPLY, 3) == Result("failed", "http 400", "no", 3, 0, 0)
    assert Result.skipped() == Result("skipped", attempts=0)


def test_job_group__is_done_with_the_last_of_its_jobs():
    group = JobGroup(2)
    group.settle(1, STORED)
    assert (group.waiting, group.future.done()) == (True, False)
    group.settle(0, Result("failed"))

    assert group.future.result(0) == [Result("failed"), STORED]
    assert not group.waiting
    assert JobGroup(0).future.result(0) == []
    assert not JobGroup(0).waiting


def test_job_group__ends_with_the_first_error_or_with_nobody_who_waits():
    group, left = JobGroup(2), JobGroup(1)
    group.fail(OSError("full"))
    group.fail(OSError("again"))
    group.settle(0, STORED)
    group.settle(1, STORED)
    left.waiting = False
    left.settle(0, STORED)
    left.fail(OSError("late"))

    with pytest.raises(OSError, match="full"):
        group.future.result(0)
    assert not left.future.done()


def test_shared_job__gives_all_who_wait_its_result_once():
    register = {}
    shared = SharedJob(Job("d", b""), register)
    groups = [JobGroup(1), JobGroup(2)]
    assert not shared.is_wanted
    shared.add(groups[0], 0)
    shared.add(groups[1], 1)
    assert register == {"d": shared}
    groups[0].waiting = False
    assert shared.is_wanted

    shared.resolve(STORED)
    shared.resolve(Result("failed"))
    groups[1].settle(0, STORED)

    assert groups[1].future.result(0) == [STORED, STORED]
    assert register == {}
    assert not shared.is_wanted


def test_shared_job__that_cannot_be_stored_ends_all_who_wait():
    register = {}
    shared, group = SharedJob(Job("d", b""), register), JobGroup(3)
    shared.add(group, 0)

    shared.fail(OSError("full"))

    with pytest.raises(OSError, match="full"):
        group.future.result(0)
    assert register == {}


def test_slowdown__reports_nothing_used_only_of_what_was_decided():
    setting = Setting(1, 8, None, None, {"w": Loan(3, 0.5, 2)}, (), 4)

    assert Slowdown("m").report_unused() is None
    report = Slowdown("m", setting=setting, worker="w").report_unused(2)
    assert (report.wanted, report.held, report.number) == (0, Loan(3, 0.5, 2), 4)
    assert Slowdown("m", setting=setting, worker="w").report_unused(3).held == Loan(stops=3)


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(now=100.0)
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now.now))
    return now


def test_stats__add_replies_by_model(clock):
    stats = Stats(lateness=SimpleNamespace(of_reply=lambda: 0.25))
    for model, taken in (("a", (5.0, 7.0)), ("a", (6.0, 8.0)), ("b", (1.0, 2.0))):
        stats.count(model, REPLY, taken)

    assert (stats.replies, stats.prompt_tokens, stats.completion_tokens) == (3, 15, 21)
    assert stats.usage == {"a": (11.0, 15.0, 4.0), "b": (1.0, 2.0, 2.0)}
    assert (stats.late, stats.answered) == ({"a": 0.5, "b": 0.25}, {"a": 2, "b": 1})
    told = stats.snapshot()
    assert json.loads(json.dumps(told)) == {
        **told,
        "usage": {name: list(sums) for name, sums in stats.usage.items()},
    }
    assert (told["sent"], told["answered"]) == (0, {"a": 2, "b": 1})
    assert type(told["answered"]) is dict
    stats.answered["a"] += 1
    assert told["answered"]["a"] == 2  # a copy
    quiet = Stats()
    quiet.count("a", REPLY, (1.0, 1.0))
    assert quiet.late == {}
    assert clock.now == 100.0


def test_stats__know_who_else_asked_within_the_last_second(clock):
    stats = Stats()
    stats.note_asking("a")
    clock.now += 0.5
    stats.note_asking("b")
    stats.note_asking("a")

    assert stats.asked == {"a": (100.0, 100.5), "b": (100.5, 100.5)}
    assert (stats.neighbours("a"), stats.neighbours("b"), stats.neighbours("c")) == (1, 1, 2)
    clock.now = 101.5
    assert stats.neighbours("a") == 1
    clock.now = 101.6
    assert stats.neighbours("a") == 0


def test_lateness__is_a_running_mean_of_what_timers_and_turns_are_late_by(clock):
    later, soon = [], []
    loop = SimpleNamespace(
        call_later=lambda seconds, look: later.append((seconds, look)),
        call_soon=lambda note, begun: soon.append((note, begun)),
    )
    lateness = Lateness(loop)
    lateness.watch()
    clock.now += 0.05 + 0.001 + 0.1  # a tenth of a second late
    later[-1][1]()
    assert lateness.of_reply() == pytest.approx(0.2 * 0.1)
    clock.now += 0.05  # in time
    later[-1][1]()
    assert lateness.of_reply() == pytest.approx(0.8 * 0.2 * 0.1)
    assert [seconds for seconds, _ in later] == [0.05] * 3
    for _ in range(2):
        lateness.of_reply()
    assert soon == []
    before = lateness.of_reply()  # the fifth reply
    ((note, begun),) = soon
    clock.now += 0.5
    note(begun)

    assert lateness.of_reply() == pytest.approx(before + 0.2 * 0.5)
