"""Exact posterior moments of powers of the success probability under a Beta prior, and credible intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from evalcube.stages.analyze.formulas.arguments import confidence_level
from evalcube.stages.analyze.formulas.intervals import Floats
from evalcube.stages.analyze.formulas.outcomes import hypergeometric, inputs
from evalcube.stages.analyze.formulas.outcomes.counts import Successes
from evalcube.stages.analyze.formulas.outcomes.hypergeometric import mean_payoff

_SHIFT = 16
"""Factors multiplied one by one, after which Stirling's series is exact to double precision."""
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def log_moment(first: ArrayLike, second: ArrayLike, power: float) -> Floats:
    """Log of E[p^k], p ~ Beta(a, b): of Γ(a+k) Γ(a+b) / (Γ(a) Γ(a+b+k)), exact to a few ulp for any size.

    After a shift by 16 factors, Stirling's formula is arranged so that its linear parts cancel on paper; of the
    three terms left, the only positive one is the smallest.
    """
    a, b = np.broadcast_arrays(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    k = float(power)
    result = np.zeros(a.shape)
    for factor in range(int(min(k, _SHIFT))):
        result = result + log_ratio(a + factor, b)
    if k <= _SHIFT:
        return result
    a, k = a + _SHIFT, k - _SHIFT
    s = a + b
    tilt = np.log1p(k / (s + k) * (b / a))
    main = (a - 0.5) * tilt - k * np.log1p(b / (a + k)) - b * np.log1p(k / s)
    return np.asarray(result + main + _stirling_drop(a + k, b) - _stirling_drop(a, b))


def log_ratio(a: Floats, b: Floats) -> Floats:
    """Log of a / (a + b) for a, b > 0; a tiny a makes b/a infinite, hence the second form."""
    with np.errstate(over="ignore"):
        quotient = b / a
    return np.where(quotient < 1e300, -np.log1p(quotient), np.log(a) - np.log(a + b))


def _stirling_drop(x: Floats, step: Floats) -> Floats:
    """δ(x) − δ(x + step) of Stirling's remainder δ, without the cancellation."""
    log = np.log1p(step / x)
    drop = np.zeros(np.shape(x))
    for order, coefficient in enumerate(_STIRLING):
        exponent = 2 * order + 1
        drop = drop - coefficient * x ** (-float(exponent)) * np.expm1(-exponent * log)
    return drop


def relative_variance(first: ArrayLike, second: ArrayLike, power: float) -> Floats:
    """Var[p^k] / E[p^k]², p ~ Beta(a, b), without the cancellation of E[p^2k] − E[p^k]².

    E[p^2k]/E[p^k]² is the product over i < k of 1 + k b/((a+b+k+i)(a+i)).
    """
    a, b = np.broadcast_arrays(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    k = float(power)
    with np.errstate(over="ignore"):
        if k > _SHIFT:
            return np.expm1(np.maximum(log_moment(a, b, 2 * k) - 2 * log_moment(a, b, k), 0.0))
        log = np.zeros(a.shape)
        for i in range(int(k)):
            log = log + np.log1p(k / (a + b + k + i) * (b / (a + i)))
        return np.expm1(log)


def moment_variance(first: ArrayLike, second: ArrayLike, power: float) -> Floats:
    """Var[p^k], p ~ Beta(a, b)."""
    square = np.exp(2.0 * log_moment(first, second, power))
    spread = relative_variance(first, second, power)
    with np.errstate(invalid="ignore"):
        product = square * spread
    exact = np.exp(log_moment(first, second, 2 * power))  # where the ratio overflows, nothing cancels either
    return np.where(np.isfinite(product), product, exact)


@dataclass(frozen=True)
class Posterior:
    """Independent Beta(a, b) posteriors of the success probabilities, one per distinct success count."""

    bank: Successes
    a: Floats
    b: Floats

    @classmethod
    def of(cls, bank: Successes, alpha0: float, beta0: float) -> Posterior:
        """With the prior Beta(alpha0, beta0)."""
        return cls(bank, alpha0 + bank.counts.astype(np.float64), beta0 + bank.failures.astype(np.float64))

    def any_success(self, k: int) -> tuple[Floats, Floats]:
        """Mean and variance of 1 − (1 − p)^k per count."""
        return -np.expm1(log_moment(self.b, self.a, k)), moment_variance(self.b, self.a, k)

    def all_success(self, k: int) -> tuple[Floats, Floats]:
        """Mean and variance of p^k per count."""
        return np.exp(log_moment(self.a, self.b, k)), moment_variance(self.a, self.b, k)

    def any_all_covariance(self, k: int) -> Floats:
        """Covariance of 1 − (1 − p)^k and p^k per count."""
        both = np.exp(log_moment(self.a, self.b, k) + log_moment(self.b, self.a, k))
        return np.asarray(-both * np.expm1(log_moment(self.a + self.b, float(k), k)))

    def payoff(self, payoff: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of g(p) = Σ_j payoff_j C(k, j) p^j (1 − p)^{k−j} per count.

        The variance comes from whichever of g and payoff_k − g is smaller, which leaves less to cancel.
        """
        mean = mean_payoff(payoff, self.a, self.b)
        low = mean <= 0.5 * payoff[-1]
        variance = np.zeros(mean.shape)
        for chosen, values in ((low, payoff), (~low, payoff[-1] - payoff)):
            if chosen.any():
                squares = hypergeometric.square_coefficients(values)
                first, second = (
                    mean_payoff(part, self.a[chosen], self.b[chosen]) for part in (values, squares)
                )
                variance[chosen] = np.maximum(second - first * first, 0.0)
        return mean, variance

    def any_payoff_covariance(self, k: int, payoff: Floats) -> Floats:
        """Covariance of 1 − (1 − p)^k and g(p): E[(1−p)^k] times the fall of E[g] as b grows by k."""
        none = np.exp(log_moment(self.b, self.a, k))
        return np.asarray(
            none * (mean_payoff(payoff, self.a, self.b) - mean_payoff(payoff, self.a, self.b + k))
        )

    def average(self, mean: Floats, variance: Floats) -> tuple[float, float]:
        """Mean and variance over all questions, which are independent, of a value per count."""
        bank = self.bank
        if bank.squares is None:
            return bank.mean(mean), bank.mean(variance) / bank.questions
        return bank.mean(mean), float(bank.squares @ variance) / bank.questions**2


Interval = tuple[float, float, float, float]


def credible(mean: float, variance: float, confidence: object, bounds: object) -> Interval:
    """(μ, σ, lo, hi) with lo, hi = μ ± z σ, clipped to `bounds` unless None; σ = 0 for an undefined variance.

    Raises
    ------
    ValueError
        If `confidence` is not inside (0, 1) or `bounds` is no pair lo <= hi.
    TypeError
        If one of them is not a number.
    """
    return with_sigma(mean, math.sqrt(variance) if variance > 0 else 0.0, confidence, bounds)


def with_sigma(mean: float, sigma: float, confidence: object, bounds: object) -> Interval:
    """The same for a standard deviation."""
    margin = float(scipy.special.ndtri((1.0 + confidence_level(confidence)) / 2.0)) * sigma
    low, high = mean - margin, mean + margin
    if (limits := inputs.clipping(bounds)) is not None:
        low, high = (min(max(end, limits[0]), limits[1]) for end in (low, high))
    return mean, sigma, low, high
