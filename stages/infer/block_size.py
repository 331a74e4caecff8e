"""How many requests go into one block of work: a pure policy on connections, workers and seconds."""

from __future__ import annotations

SMALLEST, LARGEST = 16, 256
LARGE_SWEEP = 100_000
"""Requests of one evaluation from which on the number of tasks matters more than seeing them end."""
LARGE = 1024
MOST = 4096
"""Where answers are fast: then a thousand trials or more come to each of Dask's tasks."""
_SHARED_OUT = 16
"""Blocks of the largest size that each worker gets at least, so that all workers end at about the same time."""
_MOMENT_SECONDS, _LONG_SECONDS = 10.0, 30.0


def initial_size(left: int, connections: int, workers: int, largest: int = LARGEST) -> int:
    """Requests in the first blocks: enough to be worth a task, few enough to share out and to see progress.

    Parameters
    ----------
    left
        Requests of the evaluation.
    connections
        Limit of the endpoint, for the whole cluster.
    workers
        Number of workers.
    largest
        Bound on the size of an ordinary sweep's blocks.
    """
    if left > LARGE_SWEEP:
        return LARGE
    several_rounds, shared_out = 8 * connections // workers, left // (4 * workers)
    return max(SMALLEST, min(largest, several_rounds, shared_out))


def size_bounds(size: int, left: int, workers: int) -> tuple[int, int]:
    """The least and the most to which blocks of `size` requests may be adapted."""
    return size, max(size, min(MOST, left // (_SHARED_OUT * workers)))


def adapted_size(size: int, bounds: tuple[int, int], requests: int, seconds: float) -> int:
    """The size of the next blocks, after a block of `requests` took `seconds`.

    Blocks grow where one is over in a moment, as a task costs the same whatever its size, and shrink where one takes
    so long that nobody sees progress. A block of quite another size than the present one says nothing about it.
    """
    least, most = bounds
    if seconds < _MOMENT_SECONDS and size // 2 < requests and 2 * size <= most:
        return size * 2
    if seconds > _LONG_SECONDS and requests < 2 * size and size // 2 >= least > 0:
        return size // 2
    return size
