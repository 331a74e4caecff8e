import html
import json
import re
import shutil
import subprocess

import pytest

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render.report import SampleTrial, render_report
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset
from tests.tiers import need
from tests.waiting import PATIENCE

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --virtual-time-budget=4000"
).split()
SIZES = {"phone": (360, 740), "desktop": (1280, 900)}
HARNESS = """<!doctype html><meta charset="utf-8"><body>%s<pre id="result"></pre><script>
window.fired = [];
window.alert = text => fired.push(text);
addEventListener("load", () => {
  const found = {};
  for (const frame of document.querySelectorAll("iframe")) {
    const view = frame.contentWindow, page = frame.contentDocument, width = view.innerWidth;
    const inside = element => element.closest(".scroll, pre, svg");
    page.querySelectorAll("details").forEach(item => { item.open = true; });
    const every = selector => [...page.querySelectorAll(selector)];
    const beyond = element => element.getBoundingClientRect().right > width + 0.5;
    found[frame.id] = {
      width,
      scroll: Math.max(page.documentElement.scrollWidth, page.body.scrollWidth),
      outside: every("body *").filter(item => !inside(item) && beyond(item)).map(item => item.outerHTML),
      containers: every(".scroll").filter(item => item.clientWidth > width).length,
      swiped: every(".scroll").filter(item => item.scrollWidth > item.clientWidth).length,
      small: every("svg text").filter(item => item.getBoundingClientRect().height < 9).length,
      styled: view.getComputedStyle(page.querySelector("h1")).fontSize,
      requests: view.performance.getEntriesByType("resource").length,
      fired: (view.fired || []).length,
    };
  }
  document.getElementById("result").textContent = JSON.stringify({ fired, found });
});
</script>"""


def find_browser():
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    need("browser", found, "chromium on PATH, which checks the layout of the report: apt install chromium")
    return found


def reports():
    sample = SampleTrial(
        "m" * 90, "sort", "invalid", "a" * 900, "<script>alert(1)</script>" * 9, None, "b " * 90
    )
    hostile = [
        *PROFILES[:2],
        *map(
            Profile,
            ("<script>alert(1)</script>", "[red]x[/red]", "W" * 150, '"><img src=x onerror=alert(1)>'),
        ),
    ]
    facts = {"title": "Reasoning " + "x" * 80, "cube": "sha256:" + "0f" * 32, "date": "2026-11-03"}
    for name, ds in {
        "few": dataset(tasks=4),
        "many": dataset(tasks=14, gaps=True),
        "hostile": dataset(hostile, tasks=3),
    }.items():
        yield name, render_report(ds, leaderboard(ds, draws=20), facts=facts, samples=[sample])


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    browser, folder = find_browser(), tmp_path_factory.mktemp("report")
    frames = [
        f'<iframe id="{name}-{size}" width="{width}" height="{height}" style="border:0" '
        f'srcdoc="{html.escape(text)}"></iframe>'
        for name, text in reports()
        for size, (width, height) in SIZES.items()
    ]
    page = folder / "harness.html"
    page.write_text(HARNESS % "".join(frames), encoding="utf-8")
    done = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    result = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, flags=re.DOTALL)
    assert result, done.stderr[-2000:]
    return json.loads(html.unescape(result[1]))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["few", "many", "hostile"])
def test_report__body_never_scrolls_sideways(measured, name, size):
    frame = measured["found"][f"{name}-{size}"]

    assert frame["width"] == SIZES[size][0]
    assert frame["scroll"] <= frame["width"]
    assert frame["outside"] == []
    assert frame["containers"] == 0


def test_report__wide_tables_scroll_in_their_own_container(measured):
    assert measured["found"]["many-phone"]["swiped"] == 5
    assert measured["found"]["many-desktop"]["swiped"] == 0


def test_report__figures_stay_legible_on_a_phone(measured):
    assert measured["found"]["many-phone"]["small"] == 0


def test_report__styles_apply_and_nothing_runs_or_loads(measured):
    assert measured["fired"] == []
    for frame in measured["found"].values():
        assert frame["styled"] in ("30px", "40px")
        assert frame["requests"] == 0
        assert frame["fired"] == 0
