"""Counts of outcomes: one pass over the matrix, by chunks and by rows."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube import stats as outcomes
from evalcube.stages.analyze.formulas.outcomes.counts import Successes, categories, successes
from tests.cases import with_cases

R = np.random.default_rng(0).integers(0, 2, (2000, 37))


C = np.random.default_rng(1).integers(0, 4, (900, 13))


@given(
    st.integers(1, 300), st.integers(1, 70), st.sampled_from(["i1", "u1", "?", "i8", "f4"]), st.integers(0, 9)
)
def test_successes__counts_rows_of_any_type_and_width(questions, samples, dtype, seed):
    rows = np.random.default_rng(seed).integers(0, 2, (questions, samples)).astype(dtype)

    histogram = successes(rows).histogram()

    assert histogram.tolist() == np.bincount(rows.astype(int).sum(axis=1), minlength=samples + 1).tolist()


def test_successes__rows_longer_than_a_byte_counts():
    rows = np.ones((3, 5000), dtype=np.int8)
    rows[1, :77] = 0

    assert successes(rows).counts.tolist() == [4923, 5000]


def test_successes__non_contiguous_views_count_the_same():
    assert successes(R[::3, ::2]).histogram().tolist() == successes(R[::3, ::2].copy()).histogram().tolist()


@with_cases("place", [(0, 0), (1999, 36), (1234, 5)])
@with_cases("value", [2, -1, 127, -128])
def test_successes__finds_a_wrong_entry_wherever_it_is(place, value):
    wrong = R.astype(np.int8)
    wrong[place] = value

    with pytest.raises(ValueError, match=rf"`R` must be integers in 0\.\.1, got {value};"):
        successes(wrong)


def test_successes__histograms_of_chunks_add_up():
    parts = successes(R[:700]).histogram() + successes(R[700:]).histogram()

    assert outcomes.pass_at_k(Successes.of_histogram(parts), 5) == outcomes.pass_at_k(R, 5)
    with pytest.raises(ValueError, match="histogram"):
        Successes.of_histogram([0, 0])


def test_successes__dask_chunks_give_the_same_without_loading_all():
    lazy = da.from_array(R, chunks=(300, 11))

    with dask.config.set(scheduler="synchronous"):
        assert outcomes.maj_at_k_ci(lazy, 4) == outcomes.maj_at_k_ci(R, 4)
        with pytest.raises(ValueError, match=r"0\.\.1, got 2"):
            outcomes.pass_at_k(da.from_array(C, chunks=(100, 13)), 2)


@pytest.mark.parametrize("top", [3, 9])
def test_categories__distinct_rows_weighted_by_questions(top):
    table = categories(C, top)

    assert table.questions == 900
    assert len(np.unique(table.counts, axis=0)) == len(table.counts)
    rows = np.stack([(category == C).sum(axis=1) for category in range(top + 1)], axis=1)
    distinct, weights = np.unique(rows, axis=0, return_counts=True)
    order = np.lexsort(table.counts.T[::-1])
    assert table.counts[order].tolist() == distinct.tolist()
    assert table.weights[order].tolist() == weights.tolist()


def test_categories__dask_and_prior_outcomes():
    w, prior = [0.0, 0.2, 0.5, 1.0], C[:, :5]

    with dask.config.set(scheduler="synchronous"):
        lazy = da.from_array(C, chunks=(128, 5))
        assert outcomes.bayes(lazy, w, prior) == pytest.approx(outcomes.bayes(C, w, prior), rel=1e-13)
        assert outcomes.max_at_k(lazy, 3, w) == pytest.approx(outcomes.max_at_k(C, 3, w), rel=1e-13)


def test_categories__many_categories_do_not_need_a_table_of_keys():
    wide = np.random.default_rng(2).integers(0, 40, (50, 30))

    assert outcomes.avg(wide, np.arange(40.0))[0] == pytest.approx(wide.mean(), rel=1e-13)
