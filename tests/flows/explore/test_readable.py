"""Whether texts of the explorer can be read, in a real browser: on coloured cells, and where there is little room."""

import re

import pytest

from tests.flows.explore.browsing import opened


@pytest.fixture(scope="module")
def at(chromium, address):
    with opened(chromium, address) as page:
        page.go("ranking")
        yield page


def _luminance(rgb):
    """Relative luminance of a colour of CSS, by WCAG 2.2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", rgb)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_shade__every_colour_of_the_scale_has_a_text_that_is_easy_to_read(at):
    steps = [step / 2000 for step in range(2001)]
    shades = at.page.evaluate("steps => steps.map(explorer.shade)", steps)
    texts = at.page.evaluate(
        """steps => {
            const cells = steps.map(share => ({ x: 0, y: 0, text: "", share }));
            return explorer.cellTexts(cells).textfont.color;
        }""",
        steps,
    )

    for share, shade, text in zip(steps, shades, texts, strict=True):
        assert shade["color"] == text
        letters, ground = {"#000": 0.0, "#fff": 1.0}[text], _luminance(shade["background"])
        assert (max(letters, ground) + 0.05) / (min(letters, ground) + 0.05) >= 4.5, (share, shade)


START, END = "organisation-research/Reasoner-2026-preview-", "-instruct-awq-int4-rev3"
MIDDLES = ("tiny-1.5B", "small-7B", "medium-32B", "huge-405B")
ALIKE = {
    "differ in the middle": [f"{START}{middle}{END}" for middle in MIDDLES],
    "differ in a letter": [f"{'x' * 60}{letter}{'y' * 60}" for letter in "abc"],
    "differ in two places": [f"{'x' * 40}{one}{'y' * 40}{two}{'z' * 40}" for one in "ab" for two in "cd"],
    "one is a part of others": ["a" * length for length in (30, 40, 50)],
    "have nothing in common": [letter * 50 for letter in "abc"],
    "beside short ones": ["a", "b", f"{'x' * 60}1{'y' * 60}", f"{'x' * 60}2{'y' * 60}"],
    "of letters beyond the first plane": ["\U0001f984" * 30 + letter + "\U0001f985" * 30 for letter in "ab"],
}


@pytest.mark.parametrize("names", ALIKE.values(), ids=ALIKE)
@pytest.mark.parametrize("most", [10, 14, 36])
def test_shortened__names_are_short_and_stay_apart(at, names, most):
    short = dict(at.page.evaluate("([names, most]) => [...explorer.shortened(names, most)]", [names, most]))

    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= most
    assert all(short[name] == name for name in names if len(name) <= most)


def test_shortened__keeps_whole_words_in_which_names_differ(at):
    names = ALIKE["differ in the middle"]

    short = dict(at.page.evaluate("names => [...explorer.shortened(names, 36)]", names))

    for name, middle in zip(names, MIDDLES, strict=True):
        assert f"…{middle}…" in short[name]


DRAW = """async ([names, traces, layout]) => {
    const figure = explorer.chart({ label: "", traces, layout: layout && explorer.around(names) });
    document.getElementById("main").append(figure);
    const place = figure.firstElementChild;
    while (!place.dataset.drawn) await new Promise(requestAnimationFrame);
    const box = place.getBoundingClientRect();
    const texts = [...place.querySelectorAll(".legendtext, .angularaxistick text")].map(one => ({
        text: one.textContent,
        outside: one.getBoundingClientRect().left < box.left || one.getBoundingClientRect().right > box.right,
        title: one.closest(".traces")?.querySelector("title")?.textContent ?? null,
    }));
    const listed = [...figure.querySelectorAll(".names dd")].map(one => one.textContent);
    const meant = place.data.map(data => explorer.series({ data }));
    figure.remove();
    return { texts, listed, meant };
}"""


@pytest.mark.parametrize(
    "names", [["org/a-model-with-a-rather-long-name-of-2026-11-72b", "b"], ALIKE["differ in the middle"]]
)
def test_chart__names_in_a_legend_keep_to_a_phone_and_are_said_in_full(at, names):
    at.page.set_viewport_size({"width": 400, "height": 900})
    traces = [{"name": name, "x": [1], "y": [2]} for name in names]
    drawn = at.page.evaluate(
        DRAW, [names, [*traces, {"name": "x" * 50, "x": [1], "y": [1], "showlegend": False}], False]
    )

    long = [name for name in names if len(name) > 36]
    assert drawn["meant"][:-1] == names
    assert len({one["text"] for one in drawn["texts"]}) == len(names)
    assert not any(one["outside"] for one in drawn["texts"])
    assert [one["title"] for one in drawn["texts"]] == [name if name in long else None for name in names]
    assert drawn["listed"] == long
    assert at.faults == []


@pytest.mark.parametrize("width", [400, 1400])
def test_spider__names_around_a_web_are_on_the_page(at, width):
    at.page.set_viewport_size({"width": width, "height": 900})
    names = ["arithmetic", "boolean", "a-task-with-a-rather-long-name-of-its-own", "brackets", "mmmmmmmmmm"]

    drawn = at.page.evaluate(DRAW, [names, [{"type": "scatterpolar", "r": [1] * 5, "theta": names}], True])

    assert len(drawn["texts"]) == 5
    assert [one for one in drawn["texts"] if one["outside"]] == []
    assert drawn["listed"] == [names[2]]
    assert at.faults == []
