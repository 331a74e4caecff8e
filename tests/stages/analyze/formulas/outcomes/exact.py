"""The metrics by their definitions, in rational arithmetic: slow, and exact."""

import sys
from fractions import Fraction
from itertools import product
from math import comb, prod

import numpy as np
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.outcomes.counts import Successes

PAYOFFS = {
    "pass_at_k": lambda k: [Fraction(x >= 1) for x in range(k + 1)],
    "pass_hat_k": lambda k: [Fraction(x == k) for x in range(k + 1)],
    "maj_at_k": lambda k: [Fraction(2 * x > k) for x in range(k + 1)],
    "mg_pass_at_k": lambda k: [Fraction(2 * max(0, x - -(-k // 2)), k) for x in range(k + 1)],
}


def draw(samples, successes, k, x):
    """P(x successes among k draws without replacement)."""
    return Fraction(comb(successes, x) * comb(samples - successes, k - x), comb(samples, k))


def mean_payoff(payoff, samples, successes):
    k = len(payoff) - 1
    return sum(payoff[x] * draw(samples, successes, k, x) for x in range(k + 1))


def area(samples, successes, k):
    passes = [1 - draw(samples, successes, j, 0) for j in range(1, k + 1)]
    return passes[0] if k == 1 else (sum(passes) - (passes[0] + passes[-1]) / 2) / (k - 1)


def spectrum(weights):
    return [sum((Fraction(w) for w in weights[:x]), Fraction(0)) for x in range(len(weights) + 1)]


def mixed_moment(a, b, i, j):
    """E[p^i (1 − p)^j], p ~ Beta(a, b)."""
    rising = prod((a + n for n in range(i)), start=Fraction(1)) * prod(
        (b + n for n in range(j)), start=Fraction(1)
    )
    return rising / prod((a + b + n for n in range(i + j)), start=Fraction(1))


def posterior(payoff, a, b):
    """Mean and variance of Σ payoff_j C(k, j) p^j (1 − p)^(k − j)."""
    k = len(payoff) - 1
    terms = [payoff[j] * comb(k, j) for j in range(k + 1)]
    mean = sum(terms[j] * mixed_moment(a, b, j, k - j) for j in range(k + 1))
    moments = [mixed_moment(a, b, m, 2 * k - m) for m in range(2 * k + 1)]
    square = sum(terms[i] * terms[j] * moments[i + j] for i, j in product(range(k + 1), repeat=2))
    return mean, square - mean * mean


def best_of(rewards, k):
    """Expected largest of k rewards drawn without replacement."""
    ordered = sorted(rewards)
    weights = (comb(i - 1, k - 1) for i in range(1, len(ordered) + 1))
    return sum(w * Fraction(g) for w, g in zip(weights, ordered, strict=True)) / comb(len(ordered), k)


@st.composite
def banks(draw, largest=40):
    samples = draw(st.integers(1, largest))
    counts = draw(st.lists(st.integers(0, samples), min_size=1, max_size=5))
    return samples, counts, draw(st.integers(1, samples))


def bank(samples, counts):
    return Successes.of_histogram(np.bincount(counts, minlength=samples + 1))


def close(found, wanted, tolerance=1e-12):
    least = Fraction(sys.float_info.min)  # numbers below it have fewer digits
    return abs(Fraction(float(found)) - wanted) <= Fraction(tolerance) * abs(wanted) + least


def average(values):
    return sum(values) / len(values)
