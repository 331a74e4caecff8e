"""Whether what pages show of cubes covers the truth: the benchmark's designs, with few repeats."""

import pytest

from benchmarks.coverage_cubes import DESIGNS
from benchmarks.coverage_rows import Bench

pytestmark = pytest.mark.long


@pytest.mark.parametrize("design", DESIGNS)
def test_designs__intervals_cover(design):
    rows = list(DESIGNS[design](Bench(repeats=250, seed=1)))

    low = [
        f"{row.interval}, {row.case}: {row.coverage:.3f}"
        for row in rows
        if row.coverage < 0.93 - 3 * row.error
    ]
    assert low == []
