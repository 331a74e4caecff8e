"""Two cubes that ask different questions, looked at together: what cannot be compared is not drawn as if it could."""

import pytest

from evalcube.flows.explore.explored import Explored
from tests.flows.cli.made_up import make_cube
from tests.flows.explore.browsing import opened, served

TRACES = """() => document.querySelector(".plot[data-drawn]").data.map(one => ({
    mode: one.mode, name: one.name || "", x: one.x, symbols: [one.marker?.symbol ?? "circle"].flat(),
    labels: (one.customdata || []).flat().filter(text => typeof text === "string"), sides: one.textposition}))"""


@pytest.fixture(scope="module")
def at(chromium, explored_cube, tmp_path_factory):
    """Seven evaluations, of which three were asked questions that the other four were not."""
    other = make_cube(tmp_path_factory.mktemp("other"))
    with served(Explored([explored_cube, other])) as base, opened(chromium, base) as page:
        yield page


def test_score_and_cost__marks_those_without_a_rank(at):
    at.go("cost")

    board = at.page.evaluate("async () => (await explorer.ask('ranking', {})).rows")
    unranked = [row["label"] for row in board if row["rank"] is None]
    _, points = at.page.evaluate(TRACES)
    assert unranked
    for label in unranked:
        assert any(text == f"{label}*" for text in points["labels"])
    assert points["symbols"].count("circle-open") == len(unranked)
    assert "without a rank" in at.page.locator("figcaption").inner_text()
    assert len(set(points["sides"])) > 1
    assert at.faults == []


def test_against_a_facet__joins_only_what_a_line_can_join(at):
    for state in ("curves", "curves?lines=none", "curves?lines=task", "curves?against=facet_size&lines=none"):
        at.go(state)
        for trace in at.page.evaluate(TRACES):
            if "lines" in trace["mode"]:
                assert len(set(trace["x"])) == len(trace["x"]), state
                assert trace["name"] != "–"
                assert not any(text.endswith("*") for text in trace["labels"])
    at.go("curves?against=facet_size&lines=none&task=sort")  # all of one cube, two of the same size
    assert [trace["mode"] for trace in at.page.evaluate(TRACES)] == ["markers"]
    assert "No line joins" in at.page.locator("figcaption").inner_text()
    assert at.faults == []


def test_against_a_facet__values_of_the_board_with_their_intervals(at):
    at.go("curves?value=correct_per_1000_tokens&against=facet_size&lines=none&task=sort")

    rows = at.page.evaluate("async () => (await explorer.ask('ranking', {task: 'sort'})).rows")
    drawn = at.page.evaluate(
        """() => document.querySelector(".plot[data-drawn]").data.flatMap(one =>
            one.y.map((value, at) => [value - one.error_y.arrayminus[at], value, value + one.error_y.array[at]]))"""
    )
    board = [
        [row["correct_per_1000_tokens"][end] for end in ("lower", "value", "upper")]
        for row in rows
        if "size" in row["facets"]
    ]
    assert sorted(drawn) == [pytest.approx(one) for one in sorted(board)]
    offered = at.page.get_by_label("show", exact=True).locator("option").all_text_contents()
    assert "right/1k tok" in offered
    assert "composite" not in offered  # no output here was scored in layers
    assert at.faults == []


def test_tasks__models_that_lack_some_stand_behind(at):
    at.go("heat")

    rows = at.page.evaluate(
        """() => [...document.querySelectorAll("table.heat tbody tr")].map(row =>
            row.querySelectorAll("td a").length)"""
    )
    names = at.page.locator("table.heat tbody th").all_text_contents()
    assert rows == sorted(rows, reverse=True)
    own = [name in ("strong", "middle", "weak") for name in names]
    assert own in (sorted(own), sorted(own, reverse=True))  # those with the same tasks stand together
    assert "No model has all tasks" in at.page.locator(".notes").first.inner_text()
    offered = at.views()
    href = at.page.locator("table.heat th.left a").first.get_attribute("href")
    assert href.startswith("#/radar" if "radar" in offered else "#/trials")
    assert at.faults == []
