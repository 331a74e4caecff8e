"""What the report's script adds to it: sorting, filtering, values where the pointer is, CSV, ways to trials."""

import csv
import io
import re

import pytest

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render.report import SampleTrial, render_report
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset
from tests.waiting import PATIENCE

HOSTILE = '<img src=x onerror="alert(1)">'
FORMULA = '=HYPERLINK("x")'


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    ds = dataset([*PROFILES, Profile(HOSTILE), Profile(FORMULA)], tasks=4)
    board = leaderboard(ds, draws=20)
    samples = [
        SampleTrial(
            row.model_name, task, status, HOSTILE, "</script>" + HOSTILE, None, "x", eval_id=row.eval_id
        )
        for row in board.rows
        for task in board.tasks[:2]
        for status in ("incorrect", "truncated")
    ]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_report(ds, board, facts={"title": HOSTILE}, samples=samples), "utf-8")
    return path.as_uri()


@pytest.fixture
def page(chromium, report):
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(1000 * PATIENCE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto(report)
    yield page
    context.close()
    assert said == []


def column(page, place, table="#ranking table"):
    return page.locator(f"{table} tbody tr:not(.off) > :nth-child({place})").all_inner_texts()


def numbers(texts):
    return [float(re.match(r"[\d.,]+", text)[0].replace(",", "")) for text in texts if text[:1].isdigit()]


def test_tables__are_sorted_by_any_column_both_ways_and_by_the_keyboard(page):
    head = page.locator("#ranking thead th", has_text="truncated").locator("button")
    place = page.locator("#ranking thead th").all_inner_texts().index(head.inner_text()) + 1

    head.click()
    falling = numbers(column(page, place))
    head.focus()
    page.keyboard.press("Enter")
    rising = numbers(column(page, place))

    assert falling == sorted(falling, reverse=True)
    assert rising == falling[::-1]
    assert len(set(falling)) > 1
    assert page.locator("#ranking thead th[aria-sort=ascending]").count() == 1
    page.locator("#ranking thead th.name button").first.click()
    assert column(page, 2) == sorted(column(page, 2), key=str.lower)


def test_models__are_filtered_by_name_and_hidden_everywhere(page):
    page.get_by_label("Filter models by name").fill("orchid 8b")
    assert column(page, 2) == ["orchid-8b-instruct"]
    assert page.locator(".pick summary").inner_text() == "Models: 1 of 7"
    for selector in (
        "#tasks tbody tr",
        "#tokens tbody tr",
        "#comparison .groups tbody tr",
        "#comparison .heat tbody tr",
        ".shares .who",
    ):
        assert page.locator(f"{selector}:visible").count() == 1, selector
    assert page.locator("#samples > details:visible").count() == 4

    page.locator(".pick summary").click()
    page.get_by_role("button", name="show all").click()
    page.get_by_role("checkbox", name="orchid-8b-instruct").uncheck()
    assert len(column(page, 2)) == 6
    assert "orchid-8b-instruct" not in column(page, 2)


def test_values__are_told_where_the_pointer_is(page):
    tip = page.locator(".tip")
    page.locator("#tasks tbody td").first.hover()
    assert re.search(r"\d+\.\d–\d+\.\d%, \d+ trials", tip.inner_text())

    page.locator("#difficulty g[data-m='6'] .hit, #difficulty g[data-m='5'] .hit").last.hover()
    assert "difficulty" in tip.inner_text()

    page.mouse.move(2, 2)
    assert not tip.is_visible()
    assert page.locator("[title]").count() == 0


def test_cells__lead_to_a_trial_which_is_shown_whatever_is_chosen(page):
    page.get_by_label("all outcomes").select_option("truncated")
    assert page.locator("#samples > details:visible").count() == 14

    link = page.locator("#tasks tbody tr").nth(1).locator("a").nth(1)
    name = page.locator("#tasks tbody tr").nth(1).locator("th").inner_text()
    link.click()

    opened = page.locator("#samples details[open]")
    assert opened.count() == 1
    assert name in opened.locator("summary").inner_text()
    assert opened.locator("pre").first.inner_text() == HOSTILE
    assert page.url.endswith(link.get_attribute("href"))


def test_tables__are_copied_as_csv_as_they_are_shown(page):
    page.get_by_label("Filter models by name").fill("hyper")
    page.locator("#ranking .copy").click()
    page.get_by_role("button", name="Copied").wait_for()

    (row,) = csv.DictReader(io.StringIO(page.evaluate("navigator.clipboard.readText()")))

    assert row["model"] == "'" + FORMULA
    assert float(row["accuracy lower"]) < float(row["accuracy"]) < float(row["accuracy upper"]) <= 1
    assert row["truncated"]


def test_report__without_scripts_has_all_and_its_links_lead_to_trials(chromium, report):
    context = chromium.new_context(java_script_enabled=False)
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()

    page.goto(report)
    page.locator("#tasks tbody a").first.click()

    assert page.locator("#ranking tbody tr:visible").count() == 7
    assert page.locator("#samples details[open]").count() == 1
    assert page.locator(".copy, .sort, .bar").count() == 0
    context.close()


@pytest.mark.parametrize("width", [400, 1400])
def test_report__fits_with_what_the_script_adds(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.reload()
    page.locator(".pick summary").click()

    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == width
