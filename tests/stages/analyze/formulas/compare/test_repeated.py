import numpy as np
import pytest

from evalcube.stages.analyze.formulas.compare.paired import paired_difference
from evalcube.stages.analyze.formulas.compare.repeated import design_effect


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
