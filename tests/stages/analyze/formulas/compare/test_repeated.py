import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.compare.paired import mcnemar, paired_difference
from evalcube.stages.analyze.formulas.compare.repeated import design_effect, sign_flip

METHODS = st.sampled_from(["midp", "exact"])


def brute(differences, method):
    """Twice the smaller tail over all signs, counted one by one."""
    sizes = np.abs(differences)
    sums = np.array([np.dot(sizes, signs) for signs in product([0, 1], repeat=len(sizes))])
    positive = sum(value for value in differences if value > 0)
    least = min(positive, sizes.sum() - positive)
    tail = 2 * (sums <= least).mean() - ((sums == least).mean() if method == "midp" else 0)
    return min(1.0, tail)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=10), METHODS)
def test_sign_flip__is_the_count_over_all_signs(differences, method):
    assert sign_flip(differences, method=method) == pytest.approx(brute(differences, method))


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 4), METHODS)
def test_sign_flip__is_mcnemar_whatever_the_unit(b, c, unit, method):
    differences = [unit] * b + [-unit] * c + [0]

    assert sign_flip(differences, method=method) == pytest.approx(
        float(mcnemar(b, c, method=method)), rel=1e-6
    )


def test_sign_flip__long_sums_are_close_to_normal():
    rng = np.random.default_rng(0)
    differences = rng.integers(-4, 5, 30_000)
    z = abs(differences.sum()) / np.sqrt((differences**2).sum())
    normal = 2 * (1 - 0.5 * (1 + math.erf(z / math.sqrt(2))))

    assert sign_flip(differences) == pytest.approx(normal, abs=2e-3)


def test_sign_flip__refuses():
    with pytest.raises(ValueError, match="whole numbers"):
        sign_flip([0.5])
    with pytest.raises(ValueError, match="`method` must be one of"):
        sign_flip([1], method="best")


def drawn(alike, seed=0, asked=4):
    rng = np.random.default_rng(seed)
    shape = (2, 20, 60, asked)
    same = rng.random((*shape[:-1], 1)) < alike
    right = np.where(same, rng.random((*shape[:-1], 1)), rng.random(shape)) < 0.6
    b, c = ((right[i] & ~right[1 - i]).sum(axis=-1) for i in (0, 1))
    return b, c, np.full(b.shape, asked)


def test_design_effect__is_1_for_independent_trials_and_their_number_for_copies():
    assert design_effect(*drawn(0.0)) == pytest.approx(1, abs=0.15)
    assert design_effect(*drawn(1.0)) == 4
    assert 1.5 < design_effect(*drawn(0.7)) < 3.8
    b, c, n = drawn(0.0, asked=1)
    assert design_effect(b, c, n) == 1.0
    assert design_effect([[0, 0]], [[0, 0]], [[3, 2]]) == 3.0  # nothing differs, so nothing is known
    assert design_effect([[1]], [[0]], [[3]]) == 3.0


def test_design_effect__copies_of_answers_tell_nothing_new():
    b, c, n = drawn(0.5, asked=1)
    copied = [3 * part for part in (b, c, n)]
    effect = design_effect(*copied)

    once = paired_difference(*(part.sum(axis=-1) for part in (b, c, n)))
    again = paired_difference(*(part.sum(axis=-1) / effect for part in copied))

    assert np.allclose(once, again, atol=1e-3)
    assert sign_flip(copied[0] - copied[1]) == pytest.approx(sign_flip(b - c))
