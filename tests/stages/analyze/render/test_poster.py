"""The leaderboard on one page."""

from dataclasses import replace
from xml.etree import ElementTree

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render.cover import spans
from evalcube.stages.analyze.render.poster import MOST_ROWS, poster
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset

SVG = "{http://www.w3.org/2000/svg}"


def parts(svg, name):
    return list(ElementTree.fromstring(svg).iter(SVG + name))  # noqa: S314 - what we have just drawn


def texts(svg):
    return [element.text or "" for element in parts(svg, "text")]


def test_poster__has_every_row_with_its_interval_and_says_what_to_distrust():
    board = leaderboard(dataset(gaps=True), draws=20)

    svg = poster(board, "A sweep").svg()

    shown = texts(svg)
    assert shown[0] == "A sweep"
    assert {row.model_name for row in board.rows} <= set(shown)
    assert len(parts(svg, "circle")) == len(board.rows)
    assert {"measured", "how sure", "distrust"} <= set(shown)
    assert "Incomplete evaluations (*)" in " ".join(shown)


def test_poster__says_before_all_else_that_it_shows_a_part():
    ds = dataset(PROFILES[:2])
    part, whole = (leaderboard(ds, draws=20, selection=words) for words in ("task=sort", ""))

    assert texts(poster(part, "A sweep").svg())[1:3] == ["part", "Part of the cube (task=sort)."]
    assert "Part of the cube" not in poster(whole, "A sweep").svg()


def test_poster__names_are_text_and_whole_and_the_rest_is_counted():
    hostile = '<script>alert(1)</script>"'
    long = "org/a-model-with-a-rather-long-name-of-72b-instruct-2026-11-and-more-of-it"
    board = leaderboard(dataset([Profile(hostile), Profile(long), *PROFILES[:1]], tasks=2), draws=20)
    many = replace(board, rows=board.rows * 40)

    svg = poster(many, hostile).svg()

    assert "<script" not in svg
    assert hostile in texts(svg)
    assert long in "".join(texts(svg))  # on several lines
    assert any(f"{3 * 40 - MOST_ROWS} more evaluations" in text for text in texts(svg))


def test_poster__keeps_backticks_of_names_and_drops_those_around_commands():
    name = "a|b`c`*d*"
    board = leaderboard(dataset([Profile(name, invalid=0.5), *PROFILES[:1]], tasks=2), draws=20)

    distrusted = " ".join(texts(poster(board, "t").svg()))

    assert f"{name} 5" in distrusted
    assert spans(f"{name}: see `evalcube show`, {name}.", board) == [
        (f"{name}: see ", False),
        ("evalcube show", True),
        (f", {name}.", False),
    ]


def test_poster__counts_points_tier_by_tier_as_one_may_be_in_several():
    ds = dataset(PROFILES[:2])
    tiers = [int(ds["in_tier"].isel(tier=place).sum()) for place in range(ds.sizes["tier"])]
    everywhere = ds.assign_coords(in_tier=ds["in_tier"].any("tier").broadcast_like(ds["in_tier"]))

    apart, shared = (texts(poster(leaderboard(one, draws=5), "t").svg())[2] for one in (ds, everywhere))

    assert f"{tiers[0]} points in tier easy, {tiers[1]} in medium, {tiers[2]} in hard." in apart
    assert f"{sum(tiers)} points in tier easy, {sum(tiers)} in medium, {sum(tiers)} in hard." in shared


def test_poster__without_rows():
    board = leaderboard(dataset([Profile("a")]).isel(model=[]), draws=5)

    assert texts(poster(board, "none").svg())[0] == "none"
