"""The views of "Where it breaks" in a real browser: drawn without a fault, kept in the address, leading to trials."""

import pytest

from tests.flows.explore.browsing import opened

VIEWS = ("heat", "curve", "failures", "tokens", "traces", "progress")
FORMS = (
    "surface",  # no task here has two parameters
    "tokens?form=hazard&cause=wrong",
    "tokens?form=incidence",
    "tokens?form=survival&width=8",
    "failures?by=task&model=beta",
    "curve?x=difficulty",
    "heat?sort=-boolean",
)
"""Beside each view as it is without being told anything."""


@pytest.fixture(scope="module")
def at(chromium, address):
    with opened(chromium, address) as page:
        yield page


def test_forms__are_drawn_without_a_fault_on_a_phone(at):
    at.page.set_viewport_size({"width": 400, "height": 900})
    for state in FORMS:
        at.go(state)

        assert at.page.locator(".problem").count() == 0, state
        assert at.page.locator("#main .plot[data-drawn], #main table, #main .empty").count() > 0, state
        assert "null" not in at.page.locator("#main").inner_text().split("\n"), state
    assert at.faults == []


@pytest.mark.parametrize(("width", "column"), [(1400, "groups"), (400, "C_P")])
def test_ranking__a_long_name_leaves_the_figures_on_the_screen(at, width, column):
    at.page.set_viewport_size({"width": width, "height": 900})
    at.go("ranking")
    at.page.evaluate(
        "document.querySelectorAll('td .name').forEach(one => one.textContent = 'x'.repeat(128))"
    )

    box = at.page.get_by_role("columnheader", name=column).first.bounding_box()

    assert box["x"] + box["width"] <= width


def test_heat__cells_lead_to_their_trials_and_sorting_is_in_the_address(at):
    at.page.set_viewport_size({"width": 1400, "height": 900})
    at.go("heat")

    names = at.page.locator("tbody th").all_inner_texts()
    assert sorted(names) == sorted(["alpha", "beta", "gamma", "<b>delta</b>"])
    at.page.get_by_role("button", name="boolean").click()
    at.settled()
    assert "sort=boolean" in at.page.url
    link = at.page.locator("tbody tr", has_text="beta").locator("td a").first.get_attribute("href")
    assert link == "#/trials?model=beta&task=arithmetic"
    at.go("heat?model=beta&mode=E_P&task=arithmetic")
    assert at.page.locator("tbody tr").count() == 1
    assert at.page.locator("tbody td").count() == 1
    assert at.faults == []


def test_curve__a_click_on_a_point_leads_to_its_trials(at):
    at.go("curve?model=%3Cb%3Edelta%3C%2Fb%3E&mode=E_P&x=param_length")
    at.page.evaluate("""() => {
        const plot = document.querySelector(".plot");
        const data = plot.data[0];
        plot.emit("plotly_click", { points: [{ data, x: data.x[1], customdata: data.customdata[1] }] });
    }""")
    at.page.wait_for_url("**/trials?*")

    assert "task=arithmetic" in at.page.url
    assert "param_length%3D4" in at.page.url
    at.settled()
    assert at.faults == []


def test_curve__numbers_are_reached_by_keyboard_and_lead_to_trials(at):
    at.go("curve?mode=E_P&model=beta")
    at.page.locator("details.numbers > summary").focus()
    at.page.keyboard.press("Enter")
    link = at.page.locator("details.numbers tbody a").first

    assert link.is_visible()
    assert at.page.locator("details.numbers tbody tr").count() == 4
    link.focus()
    at.page.keyboard.press("Enter")
    at.page.wait_for_url("**/trials?*")
    assert "model=beta" in at.page.url
    assert "param_length%3D3" in at.page.url


def test_compression__a_click_on_a_trace_leads_to_its_trial(at):
    at.go("traces?model=beta")
    at.page.evaluate("""() => {
        const plot = document.querySelector(".plot");
        const data = plot.data[0];
        plot.emit("plotly_click", { points: [{ data, customdata: data.customdata[0] }] });
    }""")
    at.page.wait_for_url("**/trial?*")
    at.settled()

    assert "evaluation=beta" in at.page.url
    assert at.page.locator(".problem").count() == 0
    assert at.faults == []


def test_failures__a_click_on_a_bar_leads_to_trials_with_that_outcome(at):
    at.go("failures")
    at.page.evaluate("""() => {
        const plot = document.querySelector(".plot");
        const data = plot.data.find(one => one.meta === "correct");
        plot.emit("plotly_click", { points: [{ data, y: data.y.find(name => name.includes("delta")) }] });
    }""")
    at.page.wait_for_url("**/trials?*")
    at.settled()

    assert "status=correct" in at.page.url
    assert at.page.locator(".problem").count() == 0
    assert at.page.locator("tbody tr").count() > 0
    assert at.faults == []


def test_spider__of_two_tasks_has_bars_that_lead_to_trials(at):
    at.go("radar?model=beta&mode=E_P")

    traces = at.page.evaluate("document.querySelector('.plot').data.map(one => [one.type, one.x])")
    assert [kind for kind, _ in traces] == ["bar"]
    assert {task for _, tasks in traces for task in tasks} <= {"arithmetic", "boolean"}
    assert "span no web" in at.page.locator("p.legend").inner_text()
    at.page.evaluate("""() => {
        const plot = document.querySelector(".plot");
        const data = plot.data[0];
        plot.emit("plotly_click", { points: [{ data, x: data.x[0] }] });
    }""")
    at.page.wait_for_url("**/trials?*")
    at.settled()
    assert "model=beta" in at.page.url
    assert f"task={traces[0][1][0]}" in at.page.url
    assert at.page.locator("tbody tr").count() > 0
    assert at.faults == []


def test_hazard__the_axis_ends_where_the_curves_do(at):
    at.go("tokens?form=hazard&width=8")

    drawn, axis = at.page.evaluate("""() => {
        const plot = document.querySelector(".plot[data-drawn]");
        return [Math.max(...plot.data.flatMap(one => one.x)), plot.layout.xaxis.range];
    }""")

    assert axis == [0, drawn]


def test_curve__changes_of_controls_are_in_the_address(at):
    at.go("curve?mode=E_P")
    at.page.get_by_label("over", exact=True).select_option("difficulty")
    at.settled()

    assert "x=difficulty" in at.page.url
    assert "mode=E_P" in at.page.url


@pytest.mark.integration
def test_surface__in_space_is_drawn(chromium, swept_grid):
    with opened(chromium, swept_grid) as page:
        page.go("surface?mode=E_P")

        kinds = page.page.evaluate("[...document.querySelector('.plot').data].map(trace => trace.type)")
        assert kinds[:2] == ["surface", "surface"]
        shadow, surface = page.page.evaluate(
            "document.querySelector('.plot').data.slice(0, 2).map(trace => trace.z)"
        )
        pairs = [
            (a, b) for low, high in zip(shadow, surface, strict=True) for a, b in zip(low, high, strict=True)
        ]
        assert all(low <= high for low, high in pairs)
        page.go("radar")
        assert page.page.locator(".plot[data-drawn]").count() == 2
        page.page.set_viewport_size({"width": 400, "height": 900})
        page.go("surface?mode=E_P&form=heat")
        assert page.page.evaluate("document.documentElement.scrollWidth") == 400
        assert page.faults == []


@pytest.fixture(scope="module")
def swept_grid(tmp_path_factory, _served):
    """Where a cube is explored of which one task has a grid of two parameters, and there are three tasks."""
    from evalcube.flows.explore.explored import Explored
    from tests.flows.explore.browsing import served
    from tests.flows.support import evalcube, reset, sweep_config, write_config

    reset(_served)
    folder = tmp_path_factory.mktemp("grid")
    tasks = {
        "arithmetic": {"manifold": [{"grid": {"length": [3, 4, 5], "max_depth": [0, 1]}, "tiers": ["easy"]}]},
        "boolean": {"manifold": [{"points": [{"length": 4}], "tiers": ["easy", "hard"]}]},
        "sort": {"manifold": [{"points": [{"length": 3}], "tiers": ["easy"]}]},
    }
    config = sweep_config(folder, _served.base_url, trials=3, tasks=tasks)
    assert evalcube("run", write_config(folder, config), "--quiet", cwd=folder)[0] == 0
    with served(Explored([config["cube"]])) as base:
        yield base


@pytest.mark.integration
def test_bundle__has_the_views_too(chromium, explored_cube, tmp_path):
    from evalcube.flows.explore.bundle import bundle

    bundle([explored_cube], tmp_path / "bundle", trials="none")
    with opened(chromium, (tmp_path / "bundle" / "index.html").as_uri()) as page:
        for state in (*VIEWS, "heat?task=boolean", "curve?tier=easy&x=difficulty", "tokens?task=boolean"):
            page.go(state)

            assert page.page.locator(".problem").count() == 0, state
        page.go("heat")
        assert "#/trials?model=" in page.page.locator("tbody td a").first.get_attribute("href")
        assert page.faults == []


def test_tasks__lead_from_a_model_only_to_what_is_offered(at):
    at.go("heat")

    hrefs = [one.get_attribute("href") for one in at.page.locator("table.heat th.left a").all()]

    assert "radar" not in at.views()  # of two tasks it has nothing to show
    assert hrefs
    assert all(href.startswith("#/trials") for href in hrefs)
