"""Tests of what ends requests that take too long: each at its own time, with one timer for all."""

import asyncio
import time

import pytest

from evalcube.stages.infer import deadline as module
from evalcube.stages.infer.deadline import Deadline

SECONDS = 0.05


async def late_after(exchange):
    """After how many seconds a request is late, both of whose parts are told; None if neither is for a while."""
    loop = asyncio.get_running_loop()
    begun, parts = loop.time(), [loop.create_future(), loop.create_future()]
    for part in parts:
        exchange.waits_for(part)
    told, _ = await asyncio.wait(parts, timeout=10 * SECONDS)
    assert [type(part.exception()) for part in told] in ([], [TimeoutError] * 2)
    return loop.time() - begun if told else None


def test_begin__each_is_late_after_the_same_time():
    async def main():
        loop, deadline = asyncio.get_running_loop(), Deadline(SECONDS)
        first = asyncio.create_task(late_after(deadline.begin(loop)))
        await asyncio.sleep(SECONDS / 2)
        return await asyncio.gather(first, late_after(deadline.begin(loop)))

    assert all(SECONDS - 0.005 < seconds < 10 * SECONDS for seconds in asyncio.run(main()))


@pytest.mark.parametrize("limit", [SECONDS, 100.0])
def test_look__the_time_for_which_the_process_was_stopped_is_nobodys(monkeypatch, limit):
    monkeypatch.setattr(module, "_STOPPED_SECONDS", limit)

    async def main():
        loop, deadline = asyncio.get_running_loop(), Deadline(SECONDS)
        exchange, part = deadline.begin(loop), loop.create_future()
        exchange.waits_for(part)
        time.sleep(4 * SECONDS)  # noqa: ASYNC251 - as a stop would
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        at_once = part.done()
        assert await asyncio.wait([part], timeout=20 * SECONDS) == ({part}, set())
        assert type(part.exception()) is TimeoutError
        return at_once

    assert asyncio.run(main()) is (limit == 100.0)


def test_end__of_what_is_over_nobody_is_told():
    async def main():
        loop, deadline = asyncio.get_running_loop(), Deadline(SECONDS)
        over, other = deadline.begin(loop), deadline.begin(loop)
        deadline.end(over)
        return await asyncio.gather(late_after(over), late_after(other))

    first, second = asyncio.run(main())

    assert first is None
    assert second is not None


def test_waits_for__raises_where_it_is_late_already():
    async def main():
        loop, deadline = asyncio.get_running_loop(), Deadline(0)
        exchange = deadline.begin(loop)
        await asyncio.sleep(SECONDS)
        with pytest.raises(TimeoutError):
            exchange.waits_for(loop.create_future())

    asyncio.run(main())


def test_begin__sets_one_timer_for_all(monkeypatch):
    timers = []

    async def main():
        loop, deadline = asyncio.get_running_loop(), Deadline(5)
        monkeypatch.setattr(loop, "call_at", lambda *args: timers.append(args) or timers)
        for _ in range(9):
            deadline.end(deadline.begin(loop))

    asyncio.run(main())

    assert len(timers) == 1
