"""Results as they are shown."""

from dataclasses import replace

from evalcube.flows.read.results import ComparisonResult
from evalcube.stages.analyze.labelled.pairing import Pair, PairedDifference
from evalcube.stages.analyze.labelled.results import Estimate


def test_comparison__of_one_pair_shows_its_tasks_and_of_several_a_row_for_each():
    whole = PairedDifference("", 96, 96, 3, 19, 9, 0.6, 0.5, Estimate(0.1, 0.05, 0.15), 0.01, 0.01, 0.01)
    pair = Pair("a", "b", (replace(whole, task="sort"),), whole, (0, 0))

    one, several = (ComparisonResult(None, (pair,) * count)._table() for count in (1, 3))

    assert [row.task for row in one.rows] == ["sort", ""]
    assert [(row.first, row.second) for row in several.rows] == [("a", "b")] * 3
