"""Questions to workers: each has a time limit, and one worker that does not answer spoils no other's answer."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, Literal, TypeVar

from distributed import Client

T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""Limit of a question to all workers at once, and then of one to each of them."""
SERVING = ("running", "paused")
"""Statuses of workers that can be asked: others start, end, or are only half there."""


class PendingAnswer(Generic[T]):
    """A question on its way; the answer can be collected later, so that nobody waits who has other things to do.

    Parameters
    ----------
    client
        A connected client.
    asking
        What asks, and returns the answer.
    """

    def __init__(self, client: Client, asking: Coroutine[Any, Any, T]) -> None:
        loop: Any = client.loop
        self._future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(
            _os_errors_only(client, asking), loop.asyncio_loop
        )

    @property
    def done(self) -> bool:
        """Whether the answer is there."""
        return self._future.done()

    def when_done(self, function: Callable[[], None]) -> None:
        """Have a function called once the answer is there, in a thread of Dask's."""
        self._future.add_done_callback(lambda _: function())

    @classmethod
    def within(
        cls, client: Client, asking: Coroutine[Any, Any, T], seconds: float = ANSWER_SECONDS
    ) -> PendingAnswer[T]:
        """A question that is given up after a time, as the one who is asked may never answer."""
        # The limit runs on the client's loop, so that the driver's thread may be elsewhere when it is over.
        return cls(client, asyncio.wait_for(asking, seconds))

    def answer(self, seconds: float | None = None) -> T:
        """The answer; waits for it, and signals are handled meanwhile."""
        try:
            return self._future.result(seconds)
        except concurrent.futures.CancelledError:
            raise OSError("the connection to the scheduler is closed") from None


async def _os_errors_only(client: Client, asking: Coroutine[Any, Any, T]) -> T:
    """What is asked; whatever Dask stumbles over while its scheduler is away is an `OSError`."""
    try:
        return await asking
    except Exception as error:
        # Closed streams, cancelled futures, missing attributes: each of them is the same loss to a driver.
        if not isinstance(error, OSError) and is_gone(client):
            raise OSError("the scheduler is away") from error
        raise


async def ask_each(
    client: Client,
    function: Callable[..., T],
    *args: object,
    workers: Sequence[str],
    seconds: float = ANSWER_SECONDS,
    failures: bool = False,
) -> dict[str, T]:
    """What some workers return, by address; those that fail, or do not answer in time, are left out.

    To be awaited on the client's loop.
    """
    on_error: Literal["return", "ignore"] = "return" if failures else "ignore"

    async def ask(addresses: Sequence[str]) -> dict[str, T]:
        # The public `run` waits for good: for a worker that hangs, and so for all.
        asking = client._run(function, *args, workers=list(addresses), on_error=on_error)  # noqa: SLF001
        answers: dict[str, T] = await asyncio.wait_for(asking, seconds)
        return answers

    if not workers:
        return {}
    try:
        return await ask(workers)
    except OSError:  # among them `TimeoutError`
        # One that hangs holds back the answers of all others, which Dask returns together.
        each = await asyncio.gather(*(ask([address]) for address in workers), return_exceptions=True)
    return {address: value for part in each if isinstance(part, dict) for address, value in part.items()}


async def ask_scheduler(client: Client, function: Callable[..., T], *args: object) -> T:
    """What the scheduler returns; to be awaited on the client's loop."""
    if is_gone(client):  # it would wait for another one
        raise OSError("the scheduler is away")
    answer: T = await client._run_on_scheduler(function, *args)  # noqa: SLF001
    return answer


def is_gone(client: Client) -> bool:
    """Whether a client has lost its scheduler: it does not come back to it."""
    return client.scheduler is None or client.status not in ("running", "connecting")
