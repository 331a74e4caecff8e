"""Keeps who waits for which request, so that equal requests in flight are sent once.

Used on the event loop's thread only, but for `Block.future` and `Block.waiting`, which callers of other threads use.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from concurrent.futures import Future

from evalcube.stages.infer.jobs import Job, Result


class Block:
    """The jobs of one caller; its future is done with the last of them, or with the first that cannot be stored.

    Parameters
    ----------
    size
        Number of jobs.
    """

    __slots__ = ("_left", "_results", "future", "waiting")

    def __init__(self, size: int) -> None:
        # Of `concurrent.futures`: the caller waits on a thread without an event loop.
        self.future: Future[list[Result]] = Future()
        self.waiting = True
        """Whether somebody still wants the results. A plain flag: a caller that clears it late costs one request."""
        self._results = [Result.skipped()] * size
        self._left = size
        if not size:
            self._finish()

    def settle(self, index: int, result: Result) -> None:
        """Note `result` as that of job number `index`; to be called once for each."""
        self._results[index] = result
        self._left -= 1
        if not self._left:
            self._finish()

    def fail(self, error: BaseException) -> None:
        """End the block without results; its caller gets `error` raised."""
        # Jobs of a block that ended already may fail one after another: only the first error counts.
        if self.waiting:
            self.waiting = False
            self.future.set_exception(error)

    def _finish(self) -> None:
        if self.waiting:
            self.waiting = False
            self.future.set_result(self._results)


class SharedJob:
    """One job that is queued or in flight, and the blocks that wait for it.

    Parameters
    ----------
    job
        What is to be sent.
    register
        Where jobs are found by digest; this one takes itself out when it is over.
    """

    __slots__ = ("_register", "_waiters", "job")

    def __init__(self, job: Job, register: MutableMapping[str, SharedJob]) -> None:
        self.job = job
        self._register = register
        self._waiters: list[tuple[Block, int]] = []
        register[job.digest] = self

    def add(self, block: Block, index: int) -> None:
        """Let `block` have the result too, as that of its job number `index`."""
        self._waiters.append((block, index))

    @property
    def wanted(self) -> bool:
        """Whether any block still waits for it."""
        return any(block.waiting for block, _ in self._waiters)

    def resolve(self, result: Result) -> None:
        """Give `result` to all who wait; a second call does nothing."""
        for block, index in self._end():
            block.settle(index, result)

    def fail(self, error: BaseException) -> None:
        """End all blocks that wait with `error`."""
        for block, _ in self._end():
            block.fail(error)

    def _end(self) -> list[tuple[Block, int]]:
        self._register.pop(self.job.digest, None)
        waiters, self._waiters = self._waiters, []
        return waiters
