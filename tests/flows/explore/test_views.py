"""The explorer's pages in a browser: what they show, their links, keys and widths."""

import re

import pytest

from evalcube.flows.explore.answers import ENDPOINTS
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Answerer
from evalcube.flows.explore.ranking import ranking
from evalcube.stages.analyze.labelled.columns import COLUMNS
from tests.flows.explore.browsing import opened, served

TRIAL = "trial?evaluation=alpha&asked=boolean&trial=2"
STATES = ("curves?lines=task", "trials?status=incorrect", TRIAL, f"{TRIAL}&beside=beta")
"""Beside each view as it is without being told anything."""
OUTSIDE = """() => {
    const width = document.documentElement.clientWidth;
    const inside = element => element.closest(".scroll, pre, svg, .menu, .facts dd, .plot");
    const beyond = one => one.getBoundingClientRect().right > width + 1;
    return [...document.querySelectorAll("body *")].filter(one => !inside(one) && beyond(one))
        .map(one => one.outerHTML.slice(0, 200));
}"""


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (400, True)])
def test_views__fit_and_say_nothing_on_the_console(address, chromium, width, dark):
    with opened(chromium, address, width=width, dark=dark) as at:
        at.go("ranking")
        for state in [*at.views(), *STATES]:
            at.go(state)

            assert at.page.locator(".problem").count() == 0, state
            assert at.page.evaluate(OUTSIDE) == [], state
            assert at.page.evaluate("document.documentElement.scrollWidth") == width, state
        ground = at.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(int(part) for part in re.findall(r"\d+", ground)[:3]) > 384
        assert light is not dark
        assert at.faults == []


def test_ranking__filters_and_columns_stand_in_the_address(address, chromium):
    with opened(chromium, address) as at:
        at.go("ranking")
        at.page.click("#pick-task > summary")
        at.page.click("#pick-task label:has-text('boolean')")
        at.settled()
        at.page.wait_for_function("() => location.hash.includes('task=boolean')")
        assert at.page.locator("#pick-task[open]").count() == 1  # it stays open for the next one
        at.page.keyboard.press("Escape")
        at.page.fill("#where", "facet_family=odd")
        at.page.keyboard.press("Enter")
        at.page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 2")
        at.page.click("#sort-label")
        at.page.wait_for_function("() => location.hash.includes('sort=label')")
        at.settled()
        names = at.page.locator("tbody a.name").all_text_contents()
        shared = at.page.url

    with opened(chromium, address) as other:
        other.page.goto(shared)
        other.settled()
        assert other.page.locator("tbody a.name").all_text_contents() == names == ["alpha", "gamma"]
        other.page.click(".chip")
        other.page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
        assert other.faults == []


def test_ranking__exports_what_it_shows(address, chromium, tmp_path):
    with opened(chromium, address) as at:
        at.go("ranking?columns=label,rate")
        with at.page.expect_download() as waited:
            at.page.click("text=CSV")
        waited.value.save_as(tmp_path / "table.csv")

    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0] == "label,rate_value,rate_lower,rate_upper"
    assert len(lines) == 5


def test_ranking__shows_columns_as_the_leaderboard_defines_them(address, chromium):
    columns = ("label", "tokens_per_trial", "cost_per_1000", "trials", "unique")
    with opened(chromium, address) as at:
        at.go(f"ranking?columns={','.join(columns)}")
        heads = at.page.locator("thead button").all_text_contents()
        hints = [at.page.locator(f"#sort-{name}").get_attribute("title") for name in columns]
        (row, *_) = at.page.evaluate("() => [...document.querySelectorAll('tbody tr')].map(r => r.innerText)")
        assert at.faults == []

    assert heads == ["model", "tokens", "USD/1000", "trials", "unique"]
    assert hints[1:] == [column.hint for column in COLUMNS if column.path in columns]
    assert re.fullmatch(r"\S+\t\d+\t\$0\.\d+\t30\t100\.0%", row)


def test_trials__keys_lead_from_the_table_through_the_wrong_ones(address, chromium):
    with opened(chromium, address) as at:
        at.go("trials?model=alpha")
        at.page.keyboard.press("j")
        at.page.keyboard.press("j")
        at.page.keyboard.press("Enter")
        at.page.wait_for_function("() => location.hash.startsWith('#/trial?')")
        at.settled()
        assert "trial=1" in at.page.url
        for _ in range(2):
            before = at.page.url
            at.page.keyboard.press("w")
            at.page.wait_for_function("before => location.href !== before", arg=before)
            at.settled()
            assert at.page.locator(".badge.is-correct").count() == 0
        at.page.keyboard.press("r")
        at.page.wait_for_selector("details.reasoning[open]")
        at.page.select_option("#beside", "beta")
        at.page.wait_for_selector(".beside article:nth-child(2)")
        assert at.page.locator(".shared .prompt").count() == 1  # one question for both
        at.page.keyboard.press("u")
        at.page.wait_for_function("() => location.hash.startsWith('#/trials?')")
        assert at.faults == []


def test_trials__a_search_and_a_wrong_one_are_told(address, chromium):
    with opened(chromium, address) as at:
        at.go("trials")
        at.page.keyboard.press("/")
        at.page.keyboard.type("Answer: 1")
        at.page.select_option("#search-in", "response")
        at.page.click("form.search button")
        at.page.wait_for_function("() => location.hash.includes('grep=')")
        at.settled()
        assert at.page.locator("tbody tr").count() > 0
        at.go("trials?where=tokens%3D1..&where=facet_family%3Dodd")
        at.page.click("nav a:has-text('Ranking')")  # which knows nothing of the tokens of a trial
        at.page.wait_for_function("() => location.hash.startsWith('#/ranking')")
        at.settled()
        assert at.page.locator("tbody tr").count() == 2
        at.page.goto(f"{address}#/trials?where=nonsense")
        at.settled()
        assert "nonsense" in at.page.locator(".problem").inner_text()
        at.page.click(".chip")  # the remedy is at hand
        at.page.wait_for_function("() => !document.querySelector('.problem')")


def test_live__a_page_follows_what_is_recorded(explored_cube, chromium, monkeypatch):
    explored = Explored([explored_cube])
    with served(explored) as base, opened(chromium, base) as at:
        at.page.add_init_script("window.setInterval = call => { window.look = call; return 0; }")
        at.go("ranking")
        at.page.evaluate("() => window.look()")
        assert at.page.locator("tbody tr").count() == 4  # nothing new

        def fewer(explored, query):
            document = ranking(explored, query)
            return {**document, "rows": document["rows"][:1]}

        monkeypatch.setitem(ENDPOINTS, "ranking", Answerer("ranking", fewer))
        monkeypatch.setattr(explored, "stamp", lambda: "something new")
        at.page.evaluate("() => window.look()")

        at.page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
