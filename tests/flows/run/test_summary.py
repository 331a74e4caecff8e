"""Totals of a run from its events."""

from dataclasses import replace

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.events import BlockDone, Traffic, process_at
from evalcube.flows.run.endpoint_use import FoundLimit, LimitUse
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.summary import ModelSummary, RunSummary, lines_of
from evalcube.stages.reply.body import UNKNOWN_END
from tests.cases import with_cases


def block(key, **changes):
    fields = {"model": 0, "trials": 8, "cached": 3, "transport": 2, "missing": 0, "causes": {"timeout": 2}}
    return BlockDone(key=key, **{**fields, **changes})


def test_tracker__counts_a_block_once_however_often_it_is_graded():
    tracker = Tracker()

    for key in ((0, 0, 0, 0), (0, 0, 0, 1), [0, 0, 0, 0]):
        tracker(block(key))

    assert (tracker.blocks, tracker.cached, tracker.transport) == (2, 6, 4)
    assert tracker.done() == {0: 16}
    assert tracker.causes == {"timeout": 4}


def test_tracker__adds_the_last_word_of_every_worker():
    tracker = Tracker()

    tracker(Traffic(sent=5, replies=4, retries={"reset": 1}, worker="a"))
    tracker(Traffic(sent=9, replies=8, retries={"reset": 2}, worker="a"))
    tracker(Traffic(sent=3, replies=3, failures={"timeout": 1}, worker="b"))

    traffic = tracker.traffic()
    assert (traffic.sent, traffic.replies) == (12, 11)
    assert (traffic.retries, traffic.failures) == ({"reset": 2}, {"timeout": 1})


def test_tracker__has_nothing_in_flight_at_a_process_that_another_has_replaced():
    tracker = Tracker()

    tracker(Traffic(sent=9, replies=5, in_flight=4, worker=process_at("tcp://host:1", 10)))
    tracker(Traffic(sent=6, replies=3, in_flight=3, worker=process_at("tcp://host:2", 11)))
    tracker(Traffic(sent=1, in_flight=1, worker=process_at("tcp://host:1", 12)))

    traffic = tracker.traffic()
    assert (traffic.sent, traffic.replies, traffic.in_flight) == (16, 8, 4)


def test_summary__raises_unless_all_is_done():
    done = RunSummary("complete", "cube", "cache", 1.0, 4, 4, 0, 0, 4, 9, 9)
    left = replace(
        done, reason="incomplete", done=1, transport=3, causes={"refused": 3}, details={"refused": "no"}
    )

    assert done.raise_for_status() is done
    with pytest.raises(SweepError, match=r"3 of 4 .*\(refused ×3; refused: no\)"):
        left.raise_for_status()


SUMMARY = RunSummary("complete", "c.zarr", "cache", 4.0, 1200, 1200, 0, 5, 1300, 9000, 4000, graded=1000)
USE = LimitUse(("a", "b"), "requests_per_minute", 60.0, 0.95, 10.0)


def told(**changes):
    return lines_of(replace(SUMMARY, **changes))


def test_lines__of_a_plain_run_are_four():
    assert told() == [
        "1,200 of 1,200 trials done; this run: 1,000 in 4.0 s, 250.0/s",
        "1,300 requests sent, 5 answers from the cache",
        "9,000 prompt tokens, 4,000 completion tokens, cost unknown, as no prices are declared",
        "cube: c.zarr",
    ]


@with_cases(
    ("changes", "line"),
    [
        ({"sent_exactly": False}, "at least 1,300 requests sent, 5 answers from the cache"),
        ({"seconds": 0.0}, "1,200 of 1,200 trials done; this run: 1,000 in 0.0 s, 0.0/s"),
        ({"usd": 0.0}, "9,000 prompt tokens, 4,000 completion tokens, 0.00 USD"),
        ({"usd": 1.0}, "9,000 prompt tokens, 4,000 completion tokens, 1.00 USD"),
        ({"usd": 0.125}, "9,000 prompt tokens, 4,000 completion tokens, 0.12 USD"),
        (
            {"usd": 2.0, "estimated_tokens": 1500},
            ("9,000 prompt tokens, 4,000 completion tokens, 2.00 USD (and an estimated 1,500 tokens that no endpoint "
            "counted)"),
        ),
        ({"retries": {"b": 1, "a": 2}}, "retried: a ×2, b ×1"),
        ({"causes": {"timeout": 3}}, "failed: timeout ×3"),
        ({"unknown_ends": {"odd": 2}}, f"ended: {UNKNOWN_END}odd ×2"),
        ({"pending": 1500}, "done with the part that was asked for; 1,500 trials of the plan are pending"),
        ({"pending": 1500, "reason": "stopped"}, "1,500 trials of the plan are pending"),
        ({"refused": ("Write this",)}, "Write this"),
        ({"limits": (USE,), "asking_seconds": 11.0}, "efficiency: 95% of 60 requests per minute (a, b)"),
        (
            {"limits": (USE,), "asking_seconds": 20.0},
            "efficiency: 95% of 60 requests per minute (a, b, in the 10.0 s it was asked)",
        ),
        (
            {"limits": (replace(USE, late=0.05, models=tuple("abcdef")),)},
            ("efficiency: 95% of 60 requests per minute (a, b, c, d and 2 more); waited for this machine's CPU 5% of "
            "the time"),
        ),
        (
            {"limits": (replace(USE, late=0.2, models=tuple("abcd")),)},
            "efficiency: 95% of 60 requests per minute (a, b, c, d); limited by this machine's CPU 20% of the time",
        ),
        ({"limits": (replace(USE, late=0.049),)}, "efficiency: 95% of 60 requests per minute (a, b)"),
        (
            {"found_limits": (FoundLimit(("a",), "requests_per_minute", 90),)},
            "a: the endpoint limits the rate. Set `limits: {requests_per_minute: 90}` in the config",
        ),
        (
            {"found_limits": (FoundLimit(("a",), "connections", 32, 0.1),)},
            "concurrency: measured up to 32 requests at once in all (a); waited for this machine's CPU 10% of the time",
        ),
    ],
)  # fmt: skip
def test_lines__say_what_there_is(changes, line):
    assert line in told(**changes)
    assert line not in told() or "seconds" in changes


def test_lines__say_of_what_the_config_does_not_name_whether_it_was_asked(monkeypatch):
    class Beside(str):
        unasked = 0

    assert "two models: kept" in told(unnamed=Beside("two models"))
    monkeypatch.setattr(Beside, "unasked", 3)
    assert "two models: kept, and not asked" in told(unnamed=Beside("two models"))


def test_lines__show_eight_limits():
    limits = told(limits=(USE,) * 9, found_limits=(FoundLimit(("a",), "connections", 32),) * 9)

    assert sum(line.startswith("efficiency") for line in limits) == 8
    assert sum(line.startswith("concurrency") for line in limits) == 8


def test_summary__goes_by_the_limit_that_was_used_most_and_for_long():
    uses = (replace(USE, used=0.9, seconds=1.0), replace(USE, used=0.5, seconds=10.0))

    assert SUMMARY.efficiency is None
    assert replace(SUMMARY, limits=uses).efficiency == 0.5
    document = replace(SUMMARY, limits=uses, done=1000).to_dict()
    assert (document["left"], document["efficiency"], document["trials_per_second"]) == (200, 0.5, 250.0)


def test_table__has_the_share_that_is_done_of_each():
    models = (ModelSummary("a", 200, 199, 1), ModelSummary("b", 0, 0, 0), ModelSummary("c", 1500, 1500, 0))
    spec = replace(SUMMARY, models=models).sheet()

    assert spec.texts() == [
        ["a", "199", "200", "99%", "1"], ["b", "0", "0", "–", "0"], ["c", "1,500", "1,500", "100%", "0"]
    ]  # fmt: skip
    assert [spec.dim(model) for model in models] == [True, False, False]
    assert spec.notes == tuple(told(models=models))
    assert str(SUMMARY) == "\n".join(told())
    assert SUMMARY.records() == []


def test_raise_for_status__says_who_or_what_stopped_it():
    for changes, why in (
        ({"bound": "usd: 5"}, "(usd: 5)"),
        ({"ordered": "stopped by ann"}, "(stopped by ann)"),
        ({}, "are left"),
    ):
        with pytest.raises(SweepError) as caught:
            replace(SUMMARY, reason="stopped", done=1199, **changes).raise_for_status()
        assert "the run is stopped: 1 of 1200 trials are left" in caught.value.message
        assert caught.value.message.endswith(why)
