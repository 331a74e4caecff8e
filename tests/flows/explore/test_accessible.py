"""Whether the explorer and the report can be used without a mouse, and by those who do not see them."""

import pytest

from tests.flows.explore.browsing import opened
from tests.flows.support import evalcube

# What axe-core's rules page-has-heading-one, heading-order, nested-interactive, link-name, button-name, label,
# scrollable-region-focusable and color-contrast find, by the rules' own definitions.
FAULTS = r"""() => {
    const shown = one => one.getClientRects().length > 0 && getComputedStyle(one).visibility === "visible";
    const of = names => [...document.querySelectorAll(names)].filter(shown);
    const words = one => (one.outerHTML || "").slice(0, 120);
    const faults = [];
    const heads = of("h1, h2, h3, h4");
    if (of("h1").length !== 1) faults.push("not one h1");
    heads.forEach((one, place) => {
        if (place && +one.tagName[1] > +heads[place - 1].tagName[1] + 1) faults.push(`level: ${words(one)}`);
    });
    const active = "a[href], button, input, select, textarea, summary, [tabindex]";
    for (const one of of("[role=img]")) if (one.querySelector(active)) faults.push(`inside: ${words(one)}`);
    for (const one of of("a[href], button, input, select, [role=img], figure > svg")) {
        const label = one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent;
        if (!label.trim()) faults.push(`name: ${words(one)}`);
    }
    for (const one of of("#theme, .heat td a")) {
        if (!one.getAttribute("aria-label")) faults.push(`name: ${words(one)}`);
    }
    const parts = colour => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    const light = colour => {
        const [r, g, b] = parts(colour).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = one => {
        for (; one; one = one.parentElement) {
            const { backgroundColor, backgroundImage } = getComputedStyle(one);
            if (backgroundImage !== "none" || !backgroundColor.startsWith("rgb")) return null;
            const [, , , alpha = 1] = parts(backgroundColor);
            if (alpha === 1) return backgroundColor;
            if (alpha > 0) return null;
        }
        return "rgb(255, 255, 255)";
    };
    for (const one of of("main *, header *")) {
        const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
        if (!own || one.closest("svg, :disabled, option")) continue;
        const [text, paper] = [getComputedStyle(one).color, ground(one)];
        if (!paper || !text.startsWith("rgb(")) continue;
        const [low, high] = [light(text), light(paper)].sort((a, b) => a - b);
        if ((high + 0.05) / (low + 0.05) < 4.5) faults.push(`contrast: ${text} on ${paper} ${words(one)}`);
    }
    return [...new Set(faults)];
}"""


def faults(page):
    """What is wrong with a page as it is drawn, on a light ground and on a dark one."""
    found = []
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme)
        page.page.evaluate("() => new Promise(requestAnimationFrame)")  # by then it is being drawn anew
        if "#/" in page.page.url:
            page.settled()
        found += [f"{scheme}: {fault}" for fault in page.page.evaluate(FAULTS)]
    return found


@pytest.mark.parametrize("width", [1400, 320])
def test_views__can_be_read_and_named(chromium, address, width):
    with opened(chromium, address, width=width) as page:
        page.go("ranking")
        for view in [*page.views(), "nothing"]:
            page.go(view)
            assert faults(page) == [], view
        page.go("trials")
        page.page.locator("#main tbody a.name").first.click()
        page.page.wait_for_selector(".view-trial")
        page.settled()
        assert faults(page) == []


def test_report__can_be_read_and_named(chromium, explored_cube, tmp_path):
    assert evalcube("report", explored_cube, "-o", "report.html", cwd=tmp_path)[0] == 0
    with opened(chromium, "") as page:
        for width in (1400, 320):
            page.page.set_viewport_size({"width": width, "height": 900})
            page.page.goto(f"file://{tmp_path}/report.html")
            assert faults(page) == []
            page.page.keyboard.press("Tab")
            assert page.page.evaluate("document.activeElement.hash") == "#main"


def focused(page):
    """Name of what is focused."""
    return page.page.evaluate(
        "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
    )


def go_by_tab(page, meant):
    """Press Tab until what is focused is meant."""
    for _ in range(80):
        page.page.keyboard.press("Tab")
        if meant(focused(page)):
            return
    raise AssertionError("Tab does not lead there")


def test_keyboard__finds_the_worst_task_of_a_model_and_a_wrong_answer(chromium, address):
    with opened(chromium, address) as page:
        page.go("ranking")
        go_by_tab(page, lambda name: name == "Where it breaks")
        page.page.keyboard.press("Enter")
        page.page.wait_for_selector(".view-heat")
        page.settled()
        assert focused(page) == "Tasks"
        cells = page.page.locator(".heat td a")
        named = [cells.nth(place).get_attribute("aria-label") for place in range(cells.count())]
        mine = [name for name in named if name.startswith("alpha, ")]
        worst = min(mine, key=lambda name: float(name.partition(": ")[2].split("%")[0]))
        go_by_tab(page, lambda name: name == worst)
        page.page.keyboard.press("Enter")
        page.page.wait_for_selector(".view-trials")
        page.settled()
        assert focused(page) == "Trials"
        go_by_tab(page, lambda name: name == "wrong")
        page.page.keyboard.press("Enter")
        page.page.wait_for_function("() => document.getElementById('said').textContent !== ''")
        assert "of" in page.page.locator("#said").text_content()
        page.page.keyboard.press("j")
        row = page.page.evaluate("document.activeElement.getAttribute('href')")
        page.page.keyboard.press("Enter")
        page.page.wait_for_selector(".view-trial")
        page.settled()
        assert focused(page) == "Trial"
        assert page.page.locator(".reply .badge").text_content() != "correct"
        assert page.page.locator(".reply pre").last.text_content()
        page.page.keyboard.press("u")
        page.page.wait_for_selector(".view-trials")
        page.settled()
        assert page.page.evaluate("document.activeElement.getAttribute('href')") == row
        assert page.faults == []


def test_chart__has_its_data_as_a_table(chromium, address):
    with opened(chromium, address) as page:
        page.go("cost")
        page.page.locator(".data > summary").first.focus()
        page.page.keyboard.press("Enter")
        page.page.wait_for_selector(".data table")
        assert "alpha" in page.page.locator(".data table").first.text_content()
        assert page.page.locator("figure").first.get_attribute("aria-label")
