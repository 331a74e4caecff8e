"""What results look like in Python that have no table of their own: a dry run, a verification."""

from __future__ import annotations

from evalcube.flows.read.estimate import EvaluationEstimate, SweepEstimate
from evalcube.flows.state.damage import Damage, Verification

ROW = EvaluationEstimate("<b>alpha</b>", 8, 2, 1, 5, True, 100, 200, "max_tokens", None)


def test_plan__is_shown_as_a_table_and_becomes_a_data_frame():
    plan = SweepEstimate("s", "c", "d", 1, {}, {}, 8, 8, 1, (ROW,), notes=("a.csv: it is UTF-16",))

    assert "to send" in str(plan)
    assert "UTF-16" in str(plan)
    assert "&lt;b&gt;alpha" in plan._repr_html_()
    assert plan.to_dataframe()[["evaluation", "to_send"]].values.tolist() == [["<b>alpha</b>", 5]]


def test_verification__says_that_nothing_is_damaged_or_what_is():
    whole = Verification("c.zarr", 7, 0)
    damaged = Verification("c.zarr", 7, 0, [Damage("status", "differs", requests=3)])

    assert "7 regions compared" in str(whole)
    assert whole.to_dataframe().empty
    assert "3 requests would make" in damaged._repr_html_()
    assert damaged.to_dataframe()["problem"].tolist() == ["differs"]
