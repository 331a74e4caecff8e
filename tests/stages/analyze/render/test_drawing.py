"""Drawings as SVG and as a page of PDF."""

import re
from xml.etree import ElementTree

import pytest

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render.drawing import Dot, Drawing, Lines, Words
from evalcube.stages.analyze.render.poster import poster
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset

HOSTILE = r"</text><script>alert(1)</script>) Tj (\) $x_1$ %"
LONG = "org/a-model-with-a-rather-long-name-of-72b-instruct-2026-11-and-more-of-it"


def objects(data):
    """The objects of a document by their numbers."""
    return dict(re.findall(rb"\n(\d+) 0 obj\n(.*?)\nendobj", data, re.DOTALL))


def said(data):
    """Lines of text of a page that is not compressed, as its fonts say that their codes are to be read."""
    found = objects(data)
    fonts = next(body for body in found.values() if re.match(rb"<< /F1 ", body))
    meanings = {}
    for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", fonts):
        table = found[re.search(rb"/ToUnicode (\d+)", found[number])[1]]
        for first, texts in re.findall(rb"<(\w{4})> <\w{4}> \[([^\]]*)\]", table):
            for step, text in enumerate(re.findall(rb"<(\w+)>", texts)):
                meanings[name, int(first, 16) + step] = bytes.fromhex(text.decode()).decode("utf-16-be")
    lines = []
    for block in re.findall(rb"\nBT\n(.*?)\nET\n", data, re.DOTALL):
        line, font = "", b""
        for piece in re.findall(rb"/(F\d+) [\d.]+ Tf|\(((?:\\.|[^\\)])*)\)", block, re.DOTALL):
            font = piece[0] or font
            codes = re.sub(rb"\\(.)", rb"\1", piece[1], flags=re.DOTALL)
            pairs = zip(codes[::2], codes[1::2], strict=True)
            line += "".join(meanings[font, 256 * high + low] for high, low in pairs)
        lines.append(line)
    return lines


@pytest.fixture(autouse=True)
def _uncompressed(monkeypatch):
    monkeypatch.setitem(pytest.importorskip("matplotlib").rcParams, "pdf.compression", 0)


def test_pdf__is_one_page_with_the_same_bytes_each_time():
    pen = Lines(((0, 0, 9, 9),), "#000000")
    drawing = Drawing([Words(10, 20, "a"), pen, Dot(5, 5, 2, "#ffffff", "#000000", 1)], 200, 100)

    data = drawing.pdf()

    assert data.startswith(b"%PDF-")
    assert data == drawing.pdf()
    assert (
        len([one for one in objects(data).values() if b"/Type /Page\n" in one or b"/Type /Page " in one]) == 1
    )
    assert b"/MediaBox [ 0 0 150 75 ]" in data


def test_pdf__says_all_that_the_svg_says():
    people = [Profile(HOSTILE), Profile(LONG), Profile("漢字 \u202e"), *PROFILES[:2]]
    board = leaderboard(dataset(people, tasks=2), draws=20)

    drawing = poster(board, HOSTILE)
    lines = said(drawing.pdf())

    svg = ElementTree.fromstring(drawing.svg())  # noqa: S314 - what we have just drawn
    assert sorted(lines) == sorted(one.text for one in svg.iter() if one.tag.endswith("text"))
    assert lines[0] == HOSTILE
    assert LONG in "".join(lines)
    assert "漢字 ⟨U+202E⟩" in lines
    assert "/JavaScript" not in str(objects(drawing.pdf()))


def test_pdf__a_wide_name_keeps_to_its_room():
    wide, narrow = (Drawing([Words(0, 20, "W" * 30, "", room)], 900, 40).pdf() for room in (900.0, 100.0))

    size = [float(re.search(rb"/F1 ([\d.]+) Tf", data)[1]) for data in (wide, narrow)]
    assert said(wide) == said(narrow) == ["W" * 30]
    assert size[1] < size[0] / 2
