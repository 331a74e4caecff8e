"""Shares that a threshold asks for."""

import numpy as np

from evalcube import stats as outcomes


def test_g_pass_at_k_tau__the_quotient_decides_not_the_rounded_product():
    staircase = np.tril(np.ones((25, 25), dtype=int))

    least = 26 - round(outcomes.g_pass_at_k_tau(staircase, 25, 0.28) * 25)

    assert least == 7
