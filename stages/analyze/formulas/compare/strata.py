"""Whether several groups answer alike, of questions that are not equally hard."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc


def alike(right: ArrayLike, asked: ArrayLike) -> float:
    """The p value of groups with equal shares of right answers within each stratum.

    The generalised test of Cochran, Mantel and Haenszel for 2 x K tables.

    Parameters
    ----------
    right, asked
        Right answers, and all of them, shape (stratum, group).

    Returns
    -------
    float
        NaN where no stratum has two groups with different answers.

    Examples
    --------
    >>> round(alike([[8, 2]], [[10, 10]]), 4)
    0.0089
    """
    hits, sizes = np.asarray(right, dtype=np.float64), np.asarray(asked, dtype=np.float64)
    total, all_hits = sizes.sum(axis=1), hits.sum(axis=1)
    told = (total > 1) & (all_hits > 0) & (all_hits < total) & ((sizes > 0).sum(axis=1) > 1)
    if not told.any():
        return float("nan")
    hits, sizes, total, all_hits = hits[told], sizes[told], total[told, None], all_hits[told, None]
    gap = (hits - sizes * all_hits / total).sum(axis=0)
    share = sizes / total
    factor = all_hits * (total - all_hits) / (total - 1)
    spread = np.diag((factor * share).sum(axis=0)) - (factor * share).T @ share
    statistic, rank = gap @ np.linalg.pinv(spread) @ gap, np.linalg.matrix_rank(spread)
    return float(chdtrc(rank, statistic))
