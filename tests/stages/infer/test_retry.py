"""The retry policy from tables of replies, with no clock."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.counts import Mark
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.infer.retry import Breaker, backoff, retry, turn_of
from evalcube.stages.infer.sharing import Gate
from tests.cases import with_cases

OK = Reply(RetryClass.FINAL)
AGAIN = Reply(RetryClass.RETRY, "http 500")
FAILED = Reply(RetryClass.FAILED, "http 418")
FATAL = Reply(RetryClass.FATAL, "http 401")
REFUSAL = Reply(RetryClass.FAILED, "http 400", is_refusal=True)
UNREACHED = Reply(RetryClass.RETRY, "connect")


def after(seconds):
    return Reply(RetryClass.RETRY, "http 429", retry_after=seconds)


def drive(replies, retries, **options):
    """Waits that the policy asks for, and its result, for replies that come one after another."""
    policy = backoff(retries, **options)
    waits = [next(policy)]
    for sent, reply in enumerate(replies, start=1):
        try:
            waits.append(policy.send(reply))
        except StopIteration as stop:
            assert sent == len(replies), "the policy ended early"
            return waits, stop.value
    raise AssertionError("the policy wants more replies")


TABLE = {
    "first is final": ([OK], 5, {}, [0]),
    "second is final": ([AGAIN, OK], 5, {}, [0, 0.5]),
    "doubling": ([AGAIN] * 4, 3, {}, [0, 0.5, 1, 2]),
    "no retries": ([AGAIN], 0, {}, [0]),
    "failed is not tried again": ([FAILED], 5, {}, [0]),
    "fatal is not tried again": ([AGAIN, FATAL], 5, {}, [0, 0.5]),
    "base": ([AGAIN] * 3, 2, {"base": 0.01}, [0, 0.01, 0.02]),
    "cap": ([AGAIN] * 6, 5, {"base": 10.0, "cap": 25.0}, [0, 10, 20, 25, 25, 25]),
    "jitter below": ([AGAIN] * 3, 2, {"jitter": 0.0}, [0, 0.25, 0.5]),
    "jitter above": ([AGAIN] * 3, 2, {"jitter": 0.75}, [0, 0.625, 1.25]),
    "retry-after": ([after(7.0), OK], 5, {"jitter": 0.0}, [0, 7]),
    "retry-after is never shortened": ([after(7.0), OK], 5, {"jitter": 0.5}, [0, 7.25]),
    "retry-after of 0": ([after(0.0), OK], 5, {"jitter": 0.5}, [0, 0.25]),
    "retry-after is bounded": ([after(1e9), OK], 5, {"jitter": 0.0}, [0, 600]),
    "retry-after has its own bound": ([after(1e9), OK], 5, {"jitter": 0.0, "longest": 9.0}, [0, 9]),
    "retry-after counts as a try": ([after(1.0), AGAIN, OK], 5, {"jitter": 0.0}, [0, 1, 0.5]),
}


REFUSED = after(None)


def paced(_):
    return 0.0


def unpaced(_):
    return 0.5


TABLE |= {
    "by turn, at a pace": ([REFUSED] * 5, 4, {"turn": paced}, [0, 0, 0, 0, 0]),
    "by turn, without a pace": ([REFUSED] * 5, 4, {"turn": unpaced}, [0, 0.5, 0.5, 0.5, 0.5]),
    "by turn, retry-after": ([after(7.0)] * 3, 2, {"turn": paced}, [0, 7, 7]),
    "by turn, retry-after, no pace": ([after(7.0)] * 3, 2, {"turn": unpaced}, [0, 7.25, 7.25]),
}


@with_cases("case", TABLE)
def test_backoff(case):
    replies, retries, options, waits = TABLE[case]

    assert drive(replies, retries, **options) == (waits, replies[-1])


ENDS = {
    "first is final": ([OK], None, 1, {}, []),
    "third is final": ([AGAIN, after(2.0), OK], None, 3, {"http 500": 1, "http 429": 1}, [0.5, 2.25]),
    "no attempts are left": ([AGAIN] * 3, None, 3, {"http 500": 2}, [0.5, 1.0]),
    "the pause ends it": ([AGAIN, AGAIN, OK], 1.0, 2, {"http 500": 1}, [0.5, 1.0]),
    "an attempt cannot start": ([AGAIN, None], None, 1, {}, [0.5]),
}


@with_cases("case", ENDS)
def test_retry__counts_what_it_tries_again(case):
    """Replies, the pause after which nothing is wanted any more, and what comes of it."""
    replies, over, attempts, counted, waits = ENDS[case]
    rest, paused, retries = iter(enumerate(replies)), [], Counter()

    async def attempt(*_):
        number, reply = next(rest)
        return None if reply is None else (reply, number)

    async def pause(seconds, _):
        paused.append(seconds)
        return seconds == over

    async def run():
        return await retry(await attempt(), attempt, backoff(2, base=0.5), pause, retries)

    result = asyncio.run(run())

    assert result == (replies[attempts - 1], attempts - 1, attempts)
    assert (dict(retries), paused) == (counted, waits)


def test_backoff__any_number_of_retries_keeps_to_the_cap():
    waits, _ = drive([AGAIN] * 2001, 2000, jitter=0.0)

    assert waits[-1] == 30.0
    assert max(waits) == 30.0


@given(
    st.lists(st.sampled_from([AGAIN, after(0.0), after(3.0), after(1e12)]), min_size=1, max_size=12),
    st.floats(0, 1, exclude_max=True),
)
def test_backoff__waits_are_bounded_and_the_last_reply_comes_back(replies, jitter):
    waits, last = drive(replies, len(replies) - 1, jitter=jitter)

    assert last is replies[-1]
    assert all(0 <= wait <= 600.5 for wait in waits)
    for reply, wait in zip(replies, waits[1:], strict=False):
        assert wait >= min(reply.retry_after or 0.0, 600.0)


def test_turn_of__refusals_wait_for_the_pace_alone_where_there_is_one():
    gate = Gate()
    gate.resize(8, 8, 60.0, 0.0)
    turn = turn_of(gate, 0.5)
    outage = Reply(RetryClass.RETRY, "http 503")

    assert [turn(reply) for reply in (REFUSED, outage, AGAIN, UNREACHED)] == [0.5, 0.5, None, None]
    for number in range(20):
        gate.start(0.11 * number)
        gate.note_refused(0.11 * number, Mark(0.11 * number, 1, gate.epoch), 0.0)
    assert gate.is_paced
    assert [turn(reply) for reply in (REFUSED, outage, AGAIN, UNREACHED)] == [0.0, None, None, None]


def decisions(patience, events):
    """What the breaker decides at each failure; None stands for a success."""
    breaker = Breaker(patience)
    decided = []
    for reply in events:
        if reply is None:
            breaker.note_success()
        else:
            decided.append(breaker.note_failure(reply))
    return decided


@with_cases(
    ("events", "decided"),
    [
        ([FATAL], [False]),
        ([FATAL, FATAL, FATAL], [False, False, True]),
        ([REFUSAL, FATAL, REFUSAL, REFUSAL, REFUSAL], [False] * 4 + [True]),
        ([None, FATAL], [False]),
        ([None, FATAL, FATAL, FATAL], [False, False, True]),
        ([None, FATAL, FATAL, None, FATAL, FATAL], [False] * 4),
        ([UNREACHED, UNREACHED, UNREACHED], [False, False, True]),
        ([UNREACHED, UNREACHED, None, UNREACHED], [False] * 3),
        ([Reply(RetryClass.RETRY, "dns"), Reply(RetryClass.RETRY, "tls"), UNREACHED], [False, False, True]),
        ([AGAIN] * 9, [False] * 9),
        ([FAILED] * 9, [False] * 9),
        ([Reply(RetryClass.RETRY, "timeout")] * 9, [False] * 9),
        ([None, UNREACHED, FATAL, UNREACHED], [False] * 3),
    ],
)
def test_breaker(events, decided):
    assert decisions(3, events) == decided
