"""Find the problems of a cell that occurred before; small cells repeat them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from evalcube.stages.generate.base import Cell
from evalcube.stages.reply.status import FEW_TRIALS

_POINTS, _FIRST, _MOST = 8, 16, 100


Digests = npt.NDArray[np.uint64]


def find_repeats(prompts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Which texts repeat an earlier one.

    Examples
    --------
    >>> find_repeats(["a", "b", "a"]).tolist()
    [0, 0, 1]
    """
    return repeats_in(digest_texts(prompts))


def digest_texts(prompts: Iterable[str]) -> Digests:
    """Return what distinguishes texts from each other."""
    # 64 bits each: a million prompts fit into 8 MB, and two different ones meet in one of 10^7 such cells
    digests = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8) for text in prompts)
    return np.frombuffer(b"".join(digest.digest() for digest in digests), "<u8")


def repeats_in(digests: Digests) -> npt.NDArray[np.uint8]:
    """As `find_repeats`, from the texts' digests."""
    flags = np.ones(len(digests), dtype=np.uint8)
    flags[np.unique(digests, return_index=True)[1]] = 0
    return flags


def points_with_few(cells: Sequence[Cell], trials: int) -> int:
    """How many of a task's easiest points repeat a problem in more than half of their trials.

    Made up from a few trials, so that a plan can say it at once: of the eight easiest points the first sixteen trials,
    and up to a hundred where these repeat one. Questions of a file are not made up, and each is asked once.
    """
    if trials < FEW_TRIALS or not cells or cells[0].task.size(cells[0].params) is not None:
        return 0

    def repeats(cell: Cell, count: int) -> int:
        return int(find_repeats(cell.task.problem(cell.trial(i)) for i in range(count)).sum())

    most = min(trials, _MOST)
    easiest = sorted(cells, key=lambda cell: cell.difficulty)[:_POINTS]
    return sum(repeats(cell, _FIRST) > 0 and repeats(cell, most) > most / 2 for cell in easiest)
