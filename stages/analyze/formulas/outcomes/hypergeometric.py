"""Expected payoffs of k draws without replacement, as sums of positive terms only.

X is the number of successes among k draws from a bank of N samples with c successes. As functions of c, tail
probabilities have simple steps: turning one more sample into a success changes P(X >= j) only if that sample is
drawn (k/N) and j − 1 of the other k − 1 drawn ones are successes. The steps are positive and follow a
recurrence, so that their running sums lose nothing to cancellation and cannot overflow, whatever N and k.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes.counts import Integers

_CELLS = 2**18
"""Entries of the tables that are held at once."""


def tail(samples: int, k: int, least: int) -> Floats:
    """P(X >= least) for every c in 0..N, shape (N + 1,); `least` in 1..k."""
    total = _running_sum(_steps(samples, k, least))
    return np.concatenate([[0.0], total / total[-1]])


def upper_half(samples: int, k: int) -> Floats:
    """(2/k) Σ_{j > m} P(X >= j) with m = ⌈k/2⌉, for every c in 0..N: mG-Pass@k per question.

    A step in c is (k/N) P(X' >= m) of the k − 1 other draws, summed over j.
    """
    if k == 1:
        return np.zeros(samples + 1)
    inner = tail(samples - 1, k - 1, (k + 1) // 2)
    return np.concatenate([[0.0], _running_sum(inner)]) * (2.0 / samples)


def area(samples: int, k: int) -> Floats:
    """Trapezoid mean of Pass@1..Pass@k for every c in 0..N, shape (N + 1,).

    With t_j(c) = C(N−c, j)/C(N, j), the sum of t_0..t_k is (N+1)/(c+1) · P(c+1), P being Pass@(k+1) in a bank of
    N + 1. P(c) is a running sum of decreasing steps q, so that the sum of Pass@1..Pass@k over j grows from c to
    c + 1 by (N+1)/((c+1)(c+2)) Σ_{i<=c} (i+1)(q_i − q_{i+1}); each difference is q_i k/(N−i).
    """
    if k == 1:
        return np.arange(samples + 1) / samples
    correct = np.arange(samples)
    steps = _steps(samples + 1, k + 1, 1)
    steps /= steps.sum()
    drops = steps[:-1] * (k / (samples - correct))
    grown = _running_sum((correct + 1.0) * drops) * ((samples + 1.0) / ((correct + 1.0) * (correct + 2.0)))
    total = np.concatenate([[0.0], _running_sum(grown)])
    ends = np.arange(samples + 1) / samples + tail(samples, k, 1)
    return np.asarray((total - 0.5 * ends) / (k - 1))


def mean_payoff(payoff: Floats, first: Floats | Integers, second: Floats | Integers) -> Floats:
    """E[payoff(X)] of `urn_mean`, for a payoff per 0..k, shape (k + 1,)."""
    return urn_mean(lambda drawn, _: payoff[drawn], payoff.size - 1, first, second)


def square_coefficients(payoff: Floats) -> Floats:
    """Bernstein coefficients of g², g having the coefficients `payoff` of degree k; shape (2k + 1,).

    That of degree 2k and index m is E[payoff(I) payoff(m − I)], I successes among k draws from a bank of 2k with
    m successes. The squares of P(X >= j) have a short cut.
    """
    k = payoff.size - 1
    if payoff[0] > payoff[-1]:
        return square_coefficients(payoff[::-1])[::-1]
    least = int(np.argmax(payoff > 0))
    if least > 0 and (payoff[least:] == payoff[-1]).all() and not payoff[:least].any():
        # P(I >= j and m − I >= j) for m in 0..2k: a step in m is twice that of P(X >= j), from m = 2j − 1 on.
        steps = _steps(2 * k, k, least)
        steps /= steps.sum()
        steps[: 2 * least - 1] = 0.0
        return np.asarray(payoff[-1] ** 2 * np.concatenate([[0.0], _running_sum(2.0 * steps)]))
    both = np.arange(2 * k + 1)

    def product(drawn: Integers, rows: Integers) -> Floats:
        remainder = np.clip(both[rows][:, None] - drawn, 0, k)
        return np.asarray(payoff[drawn] * payoff[remainder])

    return urn_mean(product, k, -both, -(2 * k - both))


def urn_mean(
    payoff: Callable[[Integers, Integers], Floats],
    k: int,
    first: Floats | Integers,
    second: Floats | Integers,
) -> Floats:
    """E[payoff(X)], X of Pólya's urn: hypergeometric for negative parameters, Beta-binomial for positive ones.

    P(X = j) is proportional to C(k, j) (a)_j (b)_{k−j}, rising factorials, with (a, b) = (−c, c − N) for draws
    without replacement. Terms are built outwards from the mode as running products, so that none overflows.

    Parameters
    ----------
    payoff
        From drawn successes (rows, places) and row numbers (rows,) to values of the former's shape.
    first, second
        a and b, shape (rows,).
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    mode = _mode(k, a, b)
    result = np.empty(a.shape)
    width = _reach(k, float((a + b).min())) if a.size else 0
    step = max(1, _CELLS // (width + 1))
    for start in range(0, a.size, step):
        rows = np.arange(start, min(start + step, a.size))
        result[rows] = _urn_block(payoff, k, (a[rows, None], b[rows, None]), mode[rows, None], rows, width)
    return result


def _urn_block(
    payoff: Callable[[Integers, Integers], Floats],
    k: int,
    urn: tuple[Floats, Floats],
    mode: Integers,
    rows: Integers,
    width: int,
) -> Floats:
    a, b = urn
    offset = np.arange(1, width + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = mode + offset
        up = (k - above + 1.0) * (a + above - 1.0) / (above * (b + (k - above)))
        up = np.cumprod(np.where(above <= k, up, 0.0), axis=1)
        below = mode - offset
        down = (below + 1.0) * (b + (k - below - 1.0)) / ((k - below) * (a + below))
        down = np.cumprod(np.where(below >= 0, down, 0.0), axis=1)
    total = 1.0 + up.sum(axis=1) + down.sum(axis=1)
    paid = payoff(mode, rows)[:, 0]
    paid = paid + (up * payoff(np.minimum(above, k), rows)).sum(axis=1)
    paid = paid + (down * payoff(np.maximum(below, 0), rows)).sum(axis=1)
    return np.asarray(paid / total)


def _mode(k: int, a: Floats, b: Floats) -> Integers:
    spread = a + b - 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.floor((a - 1.0) / spread * k - (b - 1.0) / spread) + 1.0
    peak = np.where((a > 0) & (a < 1), 0.0, np.where((b > 0) & (b < 1), float(k), peak))
    least = np.where(b <= 0, np.maximum(0.0, k + b), 0.0)
    most = np.where(a <= 0, np.minimum(k, -a), k)
    return np.clip(np.nan_to_num(peak), least, most).astype(np.int64)


def _reach(k: int, size: float) -> int:
    """Places to each side of the mode that hold all but 1e-340 of the probability.

    X is sub-Gaussian: with the variance proxy k/4 without replacement (Hoeffding), and k/4 + k²/(4 (a + b + 1))
    for the Beta-binomial (O. Marchal, J. Arbel 2017, https://arxiv.org/abs/1705.00048). 22 rather than 20 times
    twice the root of it leaves room for the distance from the mode to the mean.
    """
    proxy = k + (k * k / (size + 1.0) if size > 0 else 0.0)
    return min(k, int(22.0 * proxy**0.5) + 2)


def _running_sum(terms: Floats) -> Floats:
    """Running sums, of blocks and then of their totals: errors grow with the root of the number of terms."""
    width = int(terms.size**0.5) + 1
    blocks = np.zeros(width * width)
    blocks[: terms.size] = terms
    inner = np.cumsum(blocks.reshape(width, width), axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:-1, -1])])
    return np.asarray((inner + before[:, None]).ravel()[: terms.size])


def _steps(samples: int, k: int, least: int) -> Floats:
    """C(i, j−1) C(N−1−i, k−j) for i in 0..N−1, over its largest value: the steps of P(X >= j) in c."""
    low, high = least - 1, samples - 1 - k + least
    mode = min(max(low, (least - 1) * samples // (k - 1) if k > 1 else low), high)
    steps = np.zeros(samples)
    steps[mode] = 1.0
    # extended precision where there is one: a million factors, each rounded, lose four digits otherwise
    i = np.arange(mode, high, dtype=np.longdouble)
    steps[mode + 1 : high + 1] = np.cumprod(_growth(i, samples, k, least))
    i = np.arange(mode - 1, low - 1, -1, dtype=np.longdouble)
    steps[low:mode] = np.cumprod(1 / _growth(i, samples, k, least))[::-1]
    return steps


def _growth(i: NDArray[np.longdouble], samples: int, k: int, least: int) -> NDArray[np.longdouble]:
    left = samples - 1 - i
    return np.asarray((i + 1) / (i + 2 - least) * ((left - (k - least)) / left))
