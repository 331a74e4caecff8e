"""What scripts of the explorer make of numbers, texts and addresses, in a real browser."""

import csv
import io
import json
import random

import pytest

from evalcube.flows.explore import trials
from evalcube.flows.explore.answers import ENDPOINTS
from evalcube.flows.explore.query import Answerer
from evalcube.flows.read.trials.escaping import csv_text
from tests.flows.explore.browsing import opened


@pytest.fixture(scope="module")
def at(chromium, address):
    with opened(chromium, address) as page:
        page.go("ranking")
        yield page


@pytest.fixture(scope="module")
def astray(chromium, address):
    """A page of its own: what the browser reports of refused requests may come late, and to no other test."""
    with opened(chromium, address) as page:
        page.go("ranking")
        yield page


def test_fixed__rounds_as_python_prints(at):
    draw = random.Random(1)
    values = [96.25, 96.35, 0.5, 1.5, 2.5, -96.25, -0.5, 0.15, 1.005, 0.0, 99.95, 1e22, 1e-9, 12.125]
    values += [draw.randrange(0, 8000) / 8 for _ in range(300)] + [draw.random() * 100 for _ in range(300)]

    for decimals in (0, 1, 2):
        shown = at.page.evaluate(
            "([values, decimals]) => values.map(one => explorer.format.fixed(one, decimals))",
            [values, decimals],
        )
        for value, text in zip(values, shown, strict=True):
            assert float(text) == float(format(value, f".{decimals}f")), (value, decimals)
    assert at.page.evaluate("explorer.format.percent(0.9625)") == "96.2%"
    assert at.page.evaluate("explorer.format.number(1.0625)") == format(1.0625, ".4g")
    shown = at.page.evaluate("[0, 0.000012, 0.5, 12].map(explorer.format.money)")
    assert shown == ["$0", "$0.000012", "$0.50", "$12.00"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("%E0%A4%A", "There is no view"),
        ("a%09b", "There is no view"),
        ("ranking?columns=zzz", "there is no 'zzz'"),
        ("trials?columns=zzz", "there is no 'zzz'"),
        ("ranking?model=nosuch", "there is no 'nosuch'"),
        ("heat?model=alpha&model=nosuch", "there is no 'nosuch'"),
        ("trials?offset=x", "`offset`"),
    ],
)
def test_address__what_is_wrong_in_it_is_told(astray, state, said):
    astray.page.goto(f"{astray.base}#/{state}")
    astray.page.wait_for_function(
        "said => (document.querySelector('.problem') || { innerText: '' }).innerText.includes(said)", arg=said
    )


@pytest.mark.parametrize("name", ["__proto__", "toString", "constructor"])
def test_address__names_of_javascript_are_names_like_others(at, name):
    at.go(f"ranking?{name}=x&sort=label")

    assert at.page.locator("tbody tr").count() == 4
    assert at.page.evaluate("Object.keys(explorer.parse(location.hash).params)") == [name, "sort"]
    assert at.faults == []


def test_trials__beyond_the_last_page_one_leads_back_to_it(at):
    at.go("trials?model=alpha&offset=100000")
    total = int(at.page.locator(".pager .note").inner_text().removeprefix("There are only ").rstrip("."))
    at.page.click("#previous")
    at.page.wait_for_selector("tbody tr")

    assert at.page.locator(".pager .note").inner_text().endswith(f"– {total} of {total}")


def test_visible__shows_what_hides_or_turns(at):
    hidden = "\u202e\u2028\u2029\u061c\u00ad\u200b\u2066\ufeff\u180e\x07\x1b\U000e0041\U000e007f\ud800"
    plain = "a\tb\nc é 漢 \U0001f600 ✂"

    shown = at.page.evaluate("text => explorer.visible(text)", hidden[:-1])
    assert shown == "".join(f"⟨U+{ord(one):04X}⟩" for one in hidden[:-1])
    assert at.page.evaluate("text => explorer.visible(text)", plain) == plain
    assert at.page.evaluate("explorer.visible(String.fromCharCode(0xd800))") == "⟨U+D800⟩"
    assert at.page.evaluate("explorer.label('a\\u202eb<c>')") == "a⟨U+202E⟩b&lt;c&gt;"
    assert at.page.evaluate("explorer.unlabel(explorer.label('a\\u202eb<c>'))") == "a\u202eb<c>"
    assert at.page.evaluate("explorer.h('p', { title: '\\u202e' }, ['\\u202e']).outerHTML") == (
        '<p title="⟨U+202E⟩">⟨U+202E⟩</p>'
    )


def test_csv__cells_are_no_formulas_as_in_the_terminal(at):
    cells = ["=1+1", "\t=1", "\n=1", "-12", "-12+A1", "@x", "＝1", "x = 1", "+1e3", "1-2"]

    shown = at.page.evaluate(
        "cells => cells.map(one => explorer.csv([{ key: 'x', value: row => row }], [one]))", cells
    )
    for cell, text in zip(cells, shown, strict=True):
        (_, row) = csv.reader(io.StringIO(text, newline=""))
        assert row == [csv_text(cell)], cell


def test_trial__keys_keep_to_the_filters_and_the_search(at):
    def step(key):
        before = at.page.url
        at.page.keyboard.press(key)
        at.page.wait_for_function(
            "before => location.href !== before || !/^(|Looking …)$/.test(document.getElementById('told').textContent)",
            arg=before,
        )
        at.settled()
        return at.page.url if at.page.url != before else None

    at.go("trials?model=alpha&grep=Answer%3A+1&in=response")
    found = at.page.locator("tbody tr").count()
    assert 1 < found < 50
    at.page.locator("tbody a.name").first.click()
    at.page.wait_for_function("() => location.hash.startsWith('#/trial?')")
    at.settled()
    seen = [at.page.url]
    while (url := step("j")) is not None:
        seen.append(url)
    assert len(seen) == found
    for before in seen[-2::-1]:  # a search goes back as the browser does
        assert step("k") == before
        assert "Answer: 1" in at.page.locator(".response pre").text_content()

    at.go("trials?model=alpha")
    at.page.locator("tbody a.name").first.click()
    at.page.wait_for_function("() => location.hash.startsWith('#/trial?')")
    at.settled()
    assert "status=" not in step("w")
    assert at.page.locator(".badge.is-correct").count() == 0
    at.page.keyboard.press("u")
    at.page.wait_for_selector("tbody tr")
    assert "status=" not in at.page.url
    assert at.faults == []


def test_trial__marks_what_was_read_and_nothing_else(at):
    kinds = set()
    for status in ("correct", "incorrect"):
        at.go(f"trials?model=beta&status={status}")
        at.page.locator("tbody a.name").first.click()
        at.page.wait_for_function("() => location.hash.startsWith('#/trial?')")
        at.settled()
        read = at.page.locator(".facts dd").first.inner_text()
        marks = at.page.locator(".response mark")
        assert marks.count() == 1
        assert marks.inner_text().lower() == read.lower()
        kinds.add((status, marks.get_attribute("class")))
    assert kinds == {("correct", "good"), ("incorrect", "bad")}


@pytest.mark.parametrize("beside", ["", "&beside=beta"])
def test_trial__has_no_word_that_nobody_wrote(at, beside):
    at.go("trials?model=alpha")
    link = at.page.locator("tbody a.name").first.get_attribute("href")
    at.go(link.removeprefix("#/") + beside)

    loose = "[...document.querySelector('main').childNodes].filter(one => one.nodeType === 3).map(one => one.data)"
    assert at.page.evaluate(loose) == []
    at.page.wait_for_function(
        "() => /right|answered/.test(document.querySelector('#beside option').textContent)"
    )
    assert " of 3 others are right" in at.page.locator("#beside option").first.text_content()
    assert at.faults == []


def test_trials__of_a_data_set_are_told_by_its_file(at, monkeypatch):
    params = json.dumps({"file": "/data/capitals.jsonl", "kind": "text", "sha256": "0f3e", "template": ""})

    def of_a_data_set(explored, query):
        answer = trials.page(explored, query)
        return answer | {"rows": [row | {"params": params} for row in answer["rows"]]}

    monkeypatch.setitem(ENDPOINTS, "trials", Answerer("trials", of_a_data_set, kept=False))
    at.go("trials")

    assert set(at.page.locator("span.point").all_text_contents()) == {"file=capitals.jsonl"}


def test_draw__says_what_it_drew_where_the_address_changed_meanwhile(at):
    at.go("failures")
    drawn = at.page.evaluate("""async () => {
        const drawing = explorer.draw();
        history.replaceState(null, "", "#/heat");
        await drawing;
        return document.getElementById("main").dataset.drawn;
    }""")

    assert drawn == "#/failures"


def test_draw__of_two_changes_in_a_row_draws_the_last_one_once(at):
    at.go("ranking")
    at.page.evaluate("""() => {
        const view = explorer.views.get("failures");
        const { render } = view;
        window.renders = 0;
        view.render = (...given) => { window.renders += 1; return render(...given); };
        location.hash = "#/heat";
        location.hash = "#/failures";
    }""")
    at.settled()
    at.page.wait_for_timeout(100)

    assert at.page.evaluate("window.renders") == 1
    assert at.faults == []


def test_draw__of_a_view_that_was_left_greys_nothing(at):
    at.go("ranking")
    at.page.evaluate("""async () => {
        const view = explorer.views.get("failures");
        const { render } = view;
        const begun = new Promise(resolve => {
            view.render = () => {
                view.render = render;
                resolve();
                return new Promise(() => {});
            };
        });
        location.hash = "#/failures";
        await begun;
        location.hash = "#/heat";
    }""")
    at.settled()
    at.page.wait_for_timeout(300)  # a view that takes longer than half of that greys the one before

    assert not at.page.evaluate("document.getElementById('main').classList.contains('busy')")


def test_chart__can_be_clicked_on_before_all_of_it_is_drawn(at):
    clicked = at.page.evaluate("""async () => {
        await explorer.script("plotly.min.js");
        const { newPlot } = Plotly;
        const never = new Promise(() => {});
        const begun = new Promise(resolve => {
            Plotly.newPlot = (...spec) => {
                newPlot(...spec);
                resolve(spec[0]);
                return never;
            };
        });
        let clicked = null;
        const click = point => { clicked = point; };
        document.body.append(explorer.chart({ label: "", traces: [{ x: [1], y: [2] }], click }));
        const place = await begun;
        place.emit("plotly_click", { points: ["here"] });
        Plotly.newPlot = newPlot;
        place.parentElement.remove();
        return clicked;
    }""")

    assert clicked == "here"
    assert at.faults == []


def test_cost__what_costs_nothing_is_told_where_no_logarithm_shows_it(chromium, address):
    def free(route):
        reply = route.fetch()
        document = reply.json()
        document["rows"][0]["cost_per_1000"] = 0
        route.fulfill(response=reply, json=document)

    with opened(chromium, address) as page:
        page.page.route("**/api/ranking*", free)
        page.go("cost")
        label = page.page.evaluate("async () => (await explorer.ask('ranking', {})).rows[0].label")

        assert f"being 0 on it: {label}" in page.page.locator("figcaption").inner_text()
        page.go("cost?x=linear")
        assert page.page.locator("figcaption", has_text="being 0").count() == 0


def test_cost__who_has_no_price_is_told(chromium, address):
    def unpriced(route):
        reply = route.fetch()
        document = reply.json()
        document["rows"][0]["cost_per_1000"] = None
        route.fulfill(response=reply, json=document)

    with opened(chromium, address) as page:
        page.page.route("**/api/ranking*", unpriced)
        page.go("cost")
        label = page.page.evaluate("async () => (await explorer.ask('ranking', {})).rows[0].label")
        told = f"Not shown, as no price of it is declared: {label}."

        assert told in page.page.locator("figcaption").inner_text()
