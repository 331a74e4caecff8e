"""Tests of what ends requests that take too long: by itself, among others, and beside other cancellations."""

import asyncio
import time

import pytest

from evalcube.stages.infer.deadline import Deadline

SECONDS = 0.05


async def within(deadline, seconds):
    """How long it took, whether it was late, and how often its task is cancelled after that."""
    loop = asyncio.get_running_loop()
    begun, late = loop.time(), False
    try:
        with deadline.within():
            await asyncio.sleep(seconds)
    except TimeoutError:
        late = True
    return loop.time() - begun, late, asyncio.current_task().cancelling()


def test_within__ends_what_is_late_and_nothing_else():
    async def main():
        deadline = Deadline(SECONDS)
        first = await within(deadline, 0)
        together = [asyncio.create_task(within(deadline, 5)), asyncio.create_task(within(deadline, 0.01))]
        await asyncio.sleep(SECONDS / 2)
        return first, await within(deadline, 5), *await asyncio.gather(*together)

    quick, later, slow, short = asyncio.run(main())

    assert [late for _, late, _ in (quick, later, slow, short)] == [False, True, True, False]
    assert {cancelled for *_, cancelled in (quick, later, slow, short)} == {0}
    assert all(SECONDS - 0.002 <= seconds < 2 for seconds in (later[0], slow[0]))


def test_within__has_one_timer_for_all(monkeypatch):
    timers = []

    async def main():
        loop = asyncio.get_running_loop()
        call_at = loop.call_at
        monkeypatch.setattr(loop, "call_at", lambda *args, **kw: timers.append(args) or call_at(*args, **kw))
        deadline = Deadline(5)
        for _ in range(20):
            with deadline.within():
                await asyncio.sleep(0)

    asyncio.run(main())

    assert len(timers) == 1


@pytest.mark.parametrize("late", [False, True])
def test_within__leaves_a_cancellation_to_who_cancelled(late):
    async def main():
        task = asyncio.create_task(within(Deadline(SECONDS), 5))
        await asyncio.sleep(0)
        if late:  # in the very turn in which it is cancelled
            time.sleep(2 * SECONDS)  # noqa: ASYNC251
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())
