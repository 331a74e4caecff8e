"""What a chain of jobs does next."""

import pytest

from evalcube.flows.run.jobs.chain import MOST_RETRIES, Attempt, Chain, Outlook


def chain(*endings):
    attempts = tuple(Attempt(number + 1, ending) for number, ending in enumerate(endings))
    return Chain(3600.0, attempts)


@pytest.mark.parametrize(
    ("endings", "parent", "stopped"),
    [
        ([], None, ""),
        (["time"], "FAILED", ""),
        ([""], "TIMEOUT", ""),
        ([""], "PREEMPTED", ""),
        ([""], "NODE_FAIL", ""),
        ([""], "CANCELLED", "job 1 was cancelled"),
        (["time"], "CANCELLED", "job 1 was cancelled"),
        (["cancelled"], None, "job 1 was cancelled"),
        (["complete"], "COMPLETED", "complete"),
        (["bound"], "FAILED", "the run was stopped, by its bound of spending or an order"),
        ([""], "OUT_OF_MEMORY", ""),
        ([""], None, ""),
        (["failed"] * MOST_RETRIES, "FAILED", ""),
        (["failed", "", "failed", "failed"], "FAILED", "4 jobs failed; the last one was 4"),
        (["failed", "failed", "failed", ""], "TIMEOUT", ""),
        (["time"] * 11, "FAILED", ""),
        (["time"] * 12, "FAILED", "its 12 jobs are used up: submit again to go on"),
    ],
)
def test_before_next__goes_on_or_stops_by_how_the_parent_ended(endings, parent, stopped):
    assert chain(*endings).before_next(parent).stopped == stopped


def test_before_next__what_slurm_took_away_is_not_counted_later():
    after = chain("failed", "failed", "failed", "").before_next("TIMEOUT").begun(5).ended("", None)

    assert [attempt.ending for attempt in after.attempts] == ["failed", "failed", "failed", "time", ""]
    assert after.before_next("PREEMPTED").stopped == ""
    assert "4 jobs failed" in after.before_next(None).stopped


def test_before_next__counts_jobs_whose_run_could_not_start_as_tries_and_not_as_jobs():
    after = chain("").before_next("PREEMPTED", [2, 3, 4])

    assert [(one.job, one.ending) for one in after.attempts] == [
        (1, "time"), (2, "unbegun"), (3, "unbegun"), (4, "unbegun")
    ]  # fmt: skip
    assert (after.retries, after.has_room, after.stopped) == (3, True, "")
    assert after.before_next(None, [4, 5]).stopped == "4 jobs failed; the last one was 5"
    assert chain("time").before_next("CANCELLED", [2]).stopped == "job 1 was cancelled"


def test_before_next__once_stopped_stays_stopped():
    stopped = chain("time").before_next("CANCELLED")

    assert stopped.before_next("TIMEOUT").stopped == "job 1 was cancelled"


def test_chain__is_kept_in_a_file(tmp_path):
    before = chain("time").begun(2).ended("failed", 1)
    before.write(tmp_path / "chain.json")

    assert Chain.read(tmp_path / "chain.json") == before
    for text in ("{}", "[]", "no", '{"attempts": [{"x": 1}]}'):
        (tmp_path / "chain.json").write_text(text)
        with pytest.raises(ValueError, match="no chain of jobs"):
            Chain.read(tmp_path / "chain.json")


@pytest.mark.parametrize(
    ("outlook", "text"),
    [
        (Outlook("a"), "a: nothing is known of its jobs"),
        (Outlook("a", {}, chain()), "a: no job is in the queue, and none has begun"),
        (Outlook("a", {7: "PENDING"}, chain()), "a: job 7 PENDING"),
        (
            Outlook("a", {7: "RUNNING", 8: "PENDING"}, chain("time", "")),
            "a: job 7 RUNNING, job 8 PENDING (2 jobs so far)",
        ),
        (Outlook("a", {8: "PENDING"}, chain("complete")), "a: complete"),
        (Outlook("a", {}, chain("time").before_next("CANCELLED")), "a: ended: job 1 was cancelled"),
        (Outlook("a", {7: "RUNNING"}, chain(""), (5, 1000)), "a: job 7 RUNNING (5 of 1,000 trials)"),
        (
            Outlook("a", {}, Chain(60, stopped="cancelled"), (9, 9)),
            "a: ended: cancelled (9 of 9 trials)",
        ),
        (
            Outlook("a", {}, chain("failed"), (0, 0)),
            "a: no job is in the queue; the last one, 1, ended: failed (0 of 0 trials)",
        ),
        (Outlook("a", {9: "PENDING"}, chain("time"), None, (7, 8), ("no module",)), "a: job 9 PENDING"),
        (
            Outlook("a", {}, chain("time"), None, (7, 8, 9), ("no module",)),
            "a: job 9 ended before its run could start, and no job goes on\n  | no module",
        ),
        (
            Outlook("a", {}, chain(*["failed"] * 4).before_next("FAILED"), None, (), ("no module",)),
            "a: ended: 4 jobs failed; the last one was 4 (4 jobs so far)\n  | no module",
        ),
        (Outlook("a", {}, chain("")), "a: no job is in the queue; the last one, 1, ended: killed"),
    ],
)
def test_outlook__says_how_a_part_is(outlook, text):
    assert str(outlook) == text
