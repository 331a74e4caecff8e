"""Ratios of traces by outcome."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.forensics import MOMENTS, OUTCOMES, compression, sum_traces
from evalcube.stages.reply.status import Status


def draw(seed, shape):
    rng = np.random.default_rng(seed)
    status = rng.choice([int(s) for s in Status], size=shape)
    tokens = rng.integers(-1, 900, size=shape)
    raw = np.where(
        rng.random(shape) < 0.2, rng.integers(-1, 1, size=shape), rng.integers(1, 4000, size=shape)
    )
    return status, tokens, raw, np.where(rng.random(shape) < 0.1, -1, raw // 3 + 20)


def test_compression__ratios_of_sums():
    found = compression(
        sum_traces([1, 1, 0, 2], [50, 150, 100, 1000], [200, 600, 400, 8000], [100, 200, 200, 400])
    )

    assert dict(zip(OUTCOMES, found.traces.tolist(), strict=True)) == {
        "correct": 2,
        "incorrect": 1,
        "invalid": 0,
        "refused": 0,
        "truncated": 1,
    }
    np.testing.assert_allclose(found.ratio.value, [300 / 800, 0.5, np.nan, np.nan, 0.05])
    np.testing.assert_allclose(found.bytes_per_token.value, [4, 4, np.nan, np.nan, 8])
    np.testing.assert_allclose(found.compressed_per_token.value, [1.5, 2, np.nan, np.nan, 0.4])


def test_compression__an_interval_needs_two_traces():
    found = compression(sum_traces([1, 1, 0], [50, 150, 100], [200, 600, 400], [100, 200, 200]))

    assert found.ratio.lower[0] < found.ratio.value[0] < found.ratio.upper[0]
    assert np.isnan(found.ratio.lower[1:]).all()


@pytest.mark.parametrize("values", [(-1, 5, 5), (5, -1, 5), (5, 5, -1), (5, 0, 20)])
def test_sum_traces__a_missing_length_or_an_empty_trace_counts_for_nothing(values):
    assert not sum_traces([1], *([value] for value in values)).any()


@given(st.integers(0, 2**32))
def test_sum_traces__add_over_trials_and_keep_groups_apart(seed):
    arrays = draw(seed, (3, 20))
    whole = sum_traces(*arrays)

    parts = [sum_traces(*(array[:, cut] for array in arrays)) for cut in (slice(7), slice(7, None))]
    np.testing.assert_array_equal(sum(parts), whole)
    np.testing.assert_array_equal(sum_traces(*(array[1] for array in arrays)), whole[1])
    assert whole.shape == (3, len(OUTCOMES), len(MOMENTS))


def test_compression__intervals_cover():
    rng = np.random.default_rng(4)
    raw = rng.lognormal(7, 0.6, size=(1000, 60)).round()
    small = (raw * rng.normal(0.4, 0.05, size=raw.shape)).round()
    found = compression(sum_traces(np.ones(raw.shape, int), np.full(raw.shape, 10), raw, small))

    covered = (found.ratio.lower[:, 0] <= 0.4) & (found.ratio.upper[:, 0] >= 0.4)

    assert 0.92 < covered.mean() < 0.97


def test_sum_traces__refuses_arrays_of_another_shape():
    with pytest.raises(ValueError, match="differ in shape"):
        sum_traces([1], [1], [1, 2], [1])


def test_compression__refuses_other_sums():
    with pytest.raises(ValueError, match="hold the 10 moments"):
        compression(np.zeros((5, 3)))
