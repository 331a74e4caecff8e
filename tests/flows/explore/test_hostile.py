"""Names, questions and replies from anywhere stay texts in a real browser, in charts too."""

from urllib.parse import quote

import pytest

from evalcube.flows.explore import trials
from evalcube.flows.explore.answers import ENDPOINTS
from evalcube.flows.explore.bundle import bundle
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Answerer
from tests.flows.explore.browsing import opened, served
from tests.flows.support import evalcube, reset, sweep_config, write_config

NAMES = (
    '<img src=x onerror="fired(1)">',
    '<a href="https://evil.example/">%{x}</a>',
    '"><svg onload=fired(2)><b>bold</b>',
    "&lt;img src=x onerror=fired(3)&gt;",
    "constructor",
    "__proto__",
)
TEXTS = (
    *NAMES,
    "</script><script>fired(4)</script>",
    '<iframe src="javascript:fired(5)"></iframe>',
    "`${fired(6)}` {{fired(7)}} javascript:fired(8)",
    "\u202egnp.exe \u2066 \x00\x07\x1b[31m",
    '<style>body { display: none }</style><base href="https://evil.example/">',
    "<math><mtext></form><form><mglyph><style></math><img src onerror=fired(9)>",
)
MADE = """() => ({
    fired: window.fired.calls,
    elements: [...document.querySelectorAll(
        "main script, main img, main iframe, main base, main style, main form form, main b b, [onerror], [onload]")]
        .filter(one => !one.closest(".modebar")).map(one => one.outerHTML.slice(0, 200)),
    links: [...document.querySelectorAll("a")]
        .map(one => one.getAttribute("href") || one.getAttribute("xlink:href") || "")
        .filter(href => !href.startsWith("#") && !href.startsWith("blob:") && href),
})"""


def hostile_trial(explored, query):
    """A trial in which every text that a model or a data set may have written is hostile."""
    document = trials.whole(explored, query)
    every = "\n".join(TEXTS)
    said = {"judge": every, "repeat": 0, "score": 3.0, "reason": every}
    return {
        **document,
        "response": every,
        "reasoning": every,
        "parsed": TEXTS[0],
        "reference": TEXTS[1],
        "messages": [{"role": TEXTS[0], "content": every}],
        "opinions": [said],
        "params": {TEXTS[0]: TEXTS[1]},
    }


@pytest.fixture(scope="module")
def cube(tmp_path_factory, _served):
    """A sweep whose models and facets have hostile names."""
    reset(_served)
    folder = tmp_path_factory.mktemp("hostile")
    config = sweep_config(folder, _served.base_url, trials=3, cells=2, models=NAMES)
    for step, model in enumerate(config["models"]):
        model["model"] = f"m{step}"
        model["facets"] = {"step": step + 1, "family": TEXTS[step % 2], "odd<b>": TEXTS[4 + step]}
        model["prices"] = {"prompt": 1, "completion": 2 + step}
    code, _, errors = evalcube("run", write_config(folder, config), "--workers", 1, "--quiet", cwd=folder)
    assert code == 0, errors
    return config["cube"]


def look(at):
    """Go through all views, with the pointer on every chart, and see that nothing was made of any text."""
    at.page.add_init_script("window.fired = (...told) => { fired.calls.push(told); }; fired.calls = [];")
    asked = []
    at.page.on("request", lambda one: asked.append(one.url))
    at.go("ranking")
    names = "&".join(f"model={quote(name)}" for name in NAMES)
    for view in [*at.views(), "curves?lines=family", f"curve?{names}", f"tokens?{names}"]:
        at.go(view)
        for plot in at.page.query_selector_all(".plot[data-drawn]"):
            box = plot.bounding_box()
            for part in (0.1, 0.5, 0.9):
                at.page.mouse.move(
                    box["x"] + part * box["width"], box["y"] + (0.2 + 0.6 * part) * box["height"]
                )
        found = at.page.evaluate(MADE)
        assert found == {"fired": [], "elements": [], "links": []}, view
    assert [url for url in asked if not url.startswith((at.base, "data:", "blob:"))] == []
    assert at.faults == []


def test_views__make_nothing_of_hostile_names(cube, chromium):
    with served(Explored([cube])) as base, opened(chromium, base) as at:
        look(at)

        at.go("ranking")
        assert sorted(at.page.locator("tbody a.name").all_text_contents()) == sorted(NAMES)


def test_charts__show_hostile_names_as_they_are(cube, chromium):
    with served(Explored([cube])) as base, opened(chromium, base) as at:
        at.go("cost")
        shown = set()
        for point in at.page.query_selector_all(".plot .point"):
            box = point.bounding_box()
            at.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            at.page.wait_for_selector(".hoverlayer .hovertext", state="attached")
            shown.add(at.page.locator(".hoverlayer .hovertext").first.text_content())

        # Of points at one place only the uppermost is told of; beside each stands its name.
        assert shown
        assert all(any(name in text for name in NAMES) for text in shown)
        beside = at.page.locator(".plot .textpoint").all_text_contents()
        assert sorted(text.strip() for text in beside) == sorted(NAMES)
        assert at.faults == []


def test_trial__makes_nothing_of_hostile_texts(cube, chromium, monkeypatch):
    monkeypatch.setitem(ENDPOINTS, "trial", Answerer("trial", hostile_trial))
    with served(Explored([cube])) as base, opened(chromium, base) as at:
        at.page.add_init_script("window.fired = (...told) => { fired.calls.push(told); }; fired.calls = [];")
        at.go("trials")
        at.page.locator("tbody a.name").first.click()
        at.settled()
        at.page.keyboard.press("r")
        at.page.wait_for_selector("details.reasoning[open]")

        assert at.page.evaluate(MADE) == {"fired": [], "elements": [], "links": []}
        shown = at.page.locator(".response pre").text_content()
        for text in TEXTS:
            if text.isprintable():
                assert text in shown
        assert "⟨U+202E⟩gnp.exe" in shown  # it turns nothing round
        turning = "document.body.innerText.match(/[\\u202e\\u2066\\u0007]/)"
        assert at.page.evaluate(turning) is None
        assert at.faults == []


def test_bundle__makes_nothing_of_hostile_names(cube, chromium, tmp_path):
    bundle([cube], tmp_path / "site", trials="all")
    for path in (tmp_path / "site/data").glob("*.js"):
        assert path.read_text("ascii")  # no character is anything but itself

    with opened(chromium, (tmp_path / "site/index.html").as_uri()) as at:
        at.page.add_init_script("window.fired = (...told) => { fired.calls.push(told); }; fired.calls = [];")
        for view in ("ranking", "cost", "trials"):
            at.go(view)
            assert at.page.evaluate(MADE) == {"fired": [], "elements": [], "links": []}
        assert at.faults == []
