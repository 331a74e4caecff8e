import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.compare.ranks import overlap_clusters
from tests.growth import grows_in_proportion

INTERVALS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=8
)


def cliques(intervals, *, strict):
    """All maximal cliques, by trying every set of models."""

    def joined(a, b):
        if strict:
            return a[0] < b[1] and b[0] < a[1]
        return a[0] <= b[1] and b[0] <= a[1]

    found = [
        set(members)
        for size in range(1, len(intervals) + 1)
        for members in itertools.combinations(range(len(intervals)), size)
        if all(joined(intervals[i], intervals[j]) for i, j in itertools.combinations(members, 2))
    ]
    return sorted(tuple(sorted(one)) for one in found if not any(one < other for other in found))


def test_overlap_clusters__vector():
    lower, upper = [0.70, 0.78, 0.84, 0.95], [0.80, 0.86, 0.92, 0.99]

    assert overlap_clusters(lower, upper) == [(0, 1), (1, 2), (3,)]


@given(INTERVALS, st.booleans())
def test_overlap_clusters__are_all_maximal_cliques(intervals, strict):
    lower, upper = np.array(intervals, dtype=float).reshape(-1, 2).T

    assert sorted(overlap_clusters(lower, upper, strict=strict)) == cliques(intervals, strict=strict)


@given(INTERVALS, st.booleans(), st.randoms(use_true_random=False))
def test_overlap_clusters__order_of_models_does_not_matter(intervals, strict, random):
    order = list(range(len(intervals)))
    random.shuffle(order)
    lower, upper = np.array(intervals, dtype=float).reshape(-1, 2).T

    turned = overlap_clusters(lower[order], upper[order], strict=strict)

    assert sorted(tuple(sorted(order[i] for i in one)) for one in turned) == sorted(
        overlap_clusters(lower, upper, strict=strict)
    )


def test_overlap_clusters__touching_counts_unless_strict():
    assert overlap_clusters([0, 1], [1, 2]) == [(0, 1)]
    assert overlap_clusters([0, 1], [1, 2], strict=True) == [(0,), (1,)]


def test_overlap_clusters__undefined_intervals_are_in_none():
    assert overlap_clusters([0, math.nan, 0.5], [1, 1, math.nan]) == [(0,)]
    assert overlap_clusters([], []) == []


def test_overlap_clusters__many_models_take_no_quadratic_time():
    def work(models):
        starts = np.arange(models) * 1.0
        assert len(overlap_clusters(starts, starts + 1.5)) == models - 1

    assert grows_in_proportion(work, 40_000)


def test_overlap_clusters__refuses_what_is_no_interval():
    with pytest.raises(ValueError, match=r"\[2, 1\] at 1"):
        overlap_clusters([0, 2], [1, 1])
    with pytest.raises(ValueError, match="one length"):
        overlap_clusters([0], [1, 2])
