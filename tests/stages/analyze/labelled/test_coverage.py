"""Whether what pages show of cubes covers the truth: the benchmark's designs, with few repeats."""

from itertools import groupby
from operator import attrgetter

import numpy as np
import pytest

from benchmarks.coverage_cubes import DESIGNS
from benchmarks.coverage_rows import Bench

pytestmark = pytest.mark.long


@pytest.mark.parametrize("design", DESIGNS)
def test_designs__intervals_cover(design):
    rows = sorted(DESIGNS[design](Bench(repeats=80, seed=1, least=10)), key=attrgetter("interval"))

    low = [
        f"{row.interval}, {row.case}: {row.coverage:.3f}"
        for row in rows
        if row.coverage < 0.93 - 3 * row.error
    ]
    assert low == []
    for interval, cases in groupby(rows, attrgetter("interval")):  # all together tell more than each
        found = [(row.coverage, row.error) for row in cases]
        coverage, error = np.mean(found, axis=0)
        assert coverage >= 0.95 - 3 * error / np.sqrt(len(found)), interval
