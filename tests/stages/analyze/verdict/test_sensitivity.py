"""How a result depends on the weights of the layers."""

import numpy as np
import pytest

from evalcube.stages.analyze.verdict.paired import paired_intervals
from evalcube.stages.analyze.verdict.sensitivity import sensitivity, simplex


def one(values, **options):
    return paired_intervals(np.array(values, dtype=float)[:, np.newaxis], **options)[0]


def test_simplex__is_even_and_sums_to_one():
    points = simplex(3)

    assert len(points) == 231
    assert points.sum(axis=1) == pytest.approx(1.0)
    assert points.min() > 0
    assert points.mean(axis=0) == pytest.approx(1 / 3)


def test_sensitivity__a_gain_in_every_layer_holds_everywhere():
    found = sensitivity(np.random.default_rng(9).normal(0.8, 0.3, (20, 3)))

    assert (found.same_sign, found.same_result, found.positive, found.negative) == (1.0, 1.0, 1.0, 0.0)


def test_sensitivity__a_trade_depends_on_the_weights():
    values = np.tile([1.0, -1.0], (20, 1)) + np.random.default_rng(10).normal(0.0, 0.01, (20, 2))

    found = sensitivity(values, weights=[0.7, 0.3], resolution=99)

    assert found.same_sign == pytest.approx(0.5, abs=0.02)
    assert found.positive == pytest.approx(0.5, abs=0.02)
    assert found.negative == pytest.approx(0.5, abs=0.02)


def test_sensitivity__layers_that_never_occur_take_no_part():
    values = np.column_stack([np.random.default_rng(12).normal(0.3, 0.5, (20, 2)), np.full(20, np.nan)])

    assert sensitivity(values).points == len(simplex(2))
    assert sensitivity(np.full((4, 3), np.nan)).points == 0


def test_sensitivity__tests_every_point_as_the_composite_is_tested():
    values = np.random.default_rng(13).normal(0.5, 1.0, (9, 1))
    p_value = one(values[:, 0]).p_value

    assert sensitivity(values, alpha=1.01 * p_value).positive == 1.0
    assert sensitivity(values, alpha=0.99 * p_value).positive == 0.0
