"""What results look like in Python that have no table of their own: a dry run, a verification."""

from __future__ import annotations

from evalcube.flows.read.estimate import EvaluationEstimate, SweepEstimate
from evalcube.flows.state.damage import Damage, Verification
from evalcube.stages.analyze.render.shown import Shown, data_frame, flat, html_table, records, text_table
from evalcube.stages.analyze.render.table import Column, TableSpec
from tests.cases import with_cases

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


@with_cases(
    ("row", "leaves"),
    [
        ({"score": {"value": 1, "lower": 0}}, {"score": 1, "score_lower": 0}),
        ({"value": 1}, {"value": 1}),
        ({"facets": {"size": 7}}, {"facet_size": 7}),
        (
            {"truncated": 0.5, "counters": {"truncated": 3, "trials": 6}},
            {"truncated": 0.5, "counter_truncated": 3, "trials": 6},
        ),
        (
            {"tiers": [{"tier": "easy", "score": {"value": 2, "upper": 3}}]},
            {"easy_score": 2, "easy_score_upper": 3},
        ),
        ({"parts": [{"a": 1}, {"a": 2}]}, {"parts_0_a": 1, "parts_1_a": 2}),
        ({"names": ("a", 1)}, {"names": "a, 1"}),
        ({"names": []}, {"names": ""}),
    ],
)
def test_flat__has_nothing_nested(row, leaves):
    assert flat(row) == leaves


def test_records__have_the_keys_of_all_rows():
    assert records([{"a": 1}, {"b": {"c": 2}}]) == [{"a": 1, "b_c": None}, {"a": None, "b_c": 2}]
    assert records([]) == []
    assert data_frame([{"a": 1}, {"a": 2}])["a"].tolist() == [1, 2]


def table(width):
    columns = (
        Column("name", lambda row: row[0], right=False, name=True),
        Column("95%", lambda row: row[1], 2, of="score"),
        *(Column(f"more {number}", lambda _: "x" * width, 3) for number in range(3)),
    )
    return TableSpec(columns, [("<b>a\x1b", "1"), ("b", "2")], ("a <note>",), lambda row: row[0] == "b")


def test_text_table__says_what_it_leaves_out():
    narrow, wide = text_table(table(5)), text_table(table(40))

    assert "more 2" in narrow
    assert "to_dataframe() also has" not in narrow
    assert wide.splitlines()[-1] == "to_dataframe() also has: more 0, more 1, more 2."
    assert all(line == line.rstrip() for line in narrow.splitlines())


def test_html_table__has_all_columns_and_only_text():
    page = html_table(table(40))

    assert page.count("<th ") == 5
    assert "score 95%" in page
    assert "&lt;b&gt;a⟨U+001B⟩" in page
    assert "a &lt;note&gt;" in page
    assert page.count('<tr style="opacity:.6">') == 1
    assert (page.count("text-align:left"), page.count("text-align:right")) == (3, 12)


def test_shown__without_rows_shows_its_notes():
    class Nothing(Shown):
        def records(self):
            return []

        def _notes(self):
            return ("nothing was found",)

    assert "nothing was found" in str(Nothing())
    assert str(Nothing()).count("nothing was found") == 1
