import base64
import hashlib
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from evalcube.stages.analyze.formulas.design import WEIGHING
from evalcube.stages.analyze.labelled import report_data
from evalcube.stages.analyze.labelled.clustering import question_effects
from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.render import report as report_module
from evalcube.stages.analyze.render.report import (
    MOST_NAME,
    MOST_SAMPLE_TEXT,
    MOST_SAMPLES,
    MOST_TEXT,
    SampleTrial,
    render_report,
)
from evalcube.stages.analyze.render.text import shorten
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset

HOSTILE = (
    "<script>alert(1)</script>",
    "[red]x[/red]",
    "\x1b[31mred",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}",
)
FACTS = {"title": "Sweep <b>one</b>", "seed": "42", "evalcube": "0.1.0", "date": "2026-11-03"}
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Tags and visible text; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes, self.text, self.broken = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.broken.append(tag)

    def handle_data(self, data):
        if not {"style", "script"} & set(self.stack):
            self.text.append(data)


def make(profiles=PROFILES, *, facts=FACTS, samples=(), **options):
    ds = dataset(profiles, **options)
    return render_report(ds, leaderboard(ds, draws=50), facts=facts, samples=samples)


@pytest.fixture(scope="module")
def gaps():
    return make(tasks=14, gaps=True)


@pytest.mark.parametrize("tasks", [1, 4, 14])
def test_render_report__well_formed(tasks):
    page = Page(make(tasks=tasks))

    assert page.broken == []
    assert page.stack == []
    assert page.tags.count("h1") == 1
    assert page.tags.count("svg") == tasks + len(PROFILES)


def test_render_report__is_the_same_from_a_kept_page_a_damaged_one_and_none(tmp_path, monkeypatch):
    ds = dataset(PROFILES, tasks=1, gaps=True)
    board = leaderboard(ds, draws=50)
    expected = render_report(ds, board, facts=FACTS)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pages = [render_report(ds, board, facts=FACTS) for _ in range(2)]
    for kept in tmp_path.glob("*/jinja2-*"):
        kept.write_bytes(kept.read_bytes()[:100])
    pages.append(render_report(ds, board, facts=FACTS))
    shutil.rmtree(next(tmp_path.iterdir()))
    with monkeypatch.context() as full:
        full.setattr(
            "tempfile.NamedTemporaryFile", lambda **_: (_ for _ in ()).throw(OSError(28, "no space"))
        )
        pages.append(render_report(ds, board, facts=FACTS))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    pages.append(render_report(ds, board, facts=FACTS))

    assert pages == [expected] * 5


def test_render_report__no_request_and_no_script_but_its_own(gaps):
    page = Page(gaps)

    assert not {"link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "srcset") or name.startswith("on")]
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert not re.search(r"https?:|//[a-z]|url\(|@import", gaps)
    (script,) = re.findall(r"<script>(.*?)</script>", gaps, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert page.attributes.count(("content", policy)) == 1
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(", script)


def test_render_report__hostile_names_are_text():
    sample = SampleTrial(*([HOSTILE[0]] * 7), note=HOSTILE[3])

    text = make(HOSTILE, facts=dict.fromkeys(("title", *HOSTILE), HOSTILE[3]), samples=[sample])

    page = Page(text)
    shown = "".join(page.text)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert "<script>alert(1)</script>" in shown
    assert "[red]x[/red]" in shown
    assert "{{ 7*7 }}" in shown
    assert "\x1b" not in text
    assert not [name for name, _ in page.attributes if name.startswith("on")]


def test_render_report__can_be_written_as_utf8():
    text = make(facts=FACTS | {"title": "lone \udcff surrogate"}, samples=[SampleTrial(*(["\ud800"] * 7))])

    assert text.encode("utf-8")


def test_render_report__facts_and_ranking(gaps):
    shown = "".join(Page(gaps).text)

    assert "Sweep <b>one</b>" in shown
    for name, value in list(FACTS.items())[1:]:
        assert name in shown
        assert value in shown
    places = [shown.index(profile) for profile in ("heron-r1-32b-reasoning", "orchid-8b-instruct")]
    assert places == sorted(places)


def test_render_report__incomplete_rows_are_announced(gaps):
    shown = "".join(Page(gaps).text)

    assert "What to distrust" in shown
    assert "Incomplete evaluations (*): 2 of 5." in shown
    assert "Incomplete evaluations" not in "".join(Page(make()).text)


def test_render_report__samples_are_bounded_and_folded():
    long = "x" * (MOST_TEXT + 1000)
    samples = [SampleTrial("m", "t", "correct", long, "response", None, "ref")] * (MOST_SAMPLES + 3)

    page = Page(make(samples=samples))

    assert page.tags.count("details") == MOST_SAMPLES
    assert "(1,000 more characters)" in "".join(page.text)
    assert "3 more were handed" in "".join(page.text)
    assert max(map(len, page.text)) < MOST_TEXT + 100


def test_render_report__samples_are_bounded_in_all():
    long = "x" * MOST_TEXT
    samples = [SampleTrial("m", "t", "correct", long, long, None, "ref")] * MOST_SAMPLES

    page = Page(make(samples=samples))

    shown = page.tags.count("details")
    assert shown == MOST_SAMPLE_TEXT // (2 * MOST_TEXT)
    assert f"{MOST_SAMPLES - shown} more were handed in" in "".join(page.text)


def test_render_report__cells_lead_to_the_first_sample_of_their_model_and_task():
    ds = dataset(tasks=2)
    board = leaderboard(ds, draws=20)
    row = board.rows[1]
    samples = [
        SampleTrial(row.model_name, board.tasks[1], "incorrect", "p", "r", None, "x", eval_id=row.eval_id),
        SampleTrial(row.model_name, board.tasks[1], "correct", "p", "r", None, "x", eval_id=row.eval_id),
    ]

    page = Page(render_report(ds, board, facts=FACTS, samples=samples))

    links = [value for name, value in page.attributes if name == "href"]
    assert links == ["#main", "#trial-0"]
    assert ("id", "trial-0") in page.attributes


def test_render_report__its_wins_and_intervals_go_by_question(monkeypatch):
    ds = dataset(PROFILES[:3], tasks=2, trials=40).assign_coords(repeat=range(4))
    shape = [ds.sizes[name] for name in ("model", "task", "params")]
    alike = [20.0, 40.0, 10.0, 80.0, 80.0, 160.0]  # ten questions, four equal answers to each
    ds["question_moments"] = (
        ("model", "task", "params", "moment"),
        np.broadcast_to(alike, [*shape, 6]).copy(),
    )
    seen = []
    true = report_module.ranking.rank_rows
    monkeypatch.setattr(
        report_module.ranking, "rank_rows", lambda read, board: seen.append(read) or true(read, board)
    )

    render_report(ds, leaderboard(ds, draws=20), facts=FACTS)

    effects = question_effects(seen[0])
    assert effects is not None
    assert effects.min() > 1


def test_render_report__without_difficulty_without_trials_and_without_models():
    ds = dataset(gaps=True)
    board = leaderboard(ds, draws=5)
    assert "elementary steps" not in render_report(ds.drop_vars("difficulty"), board, facts={})

    ds["counters"][:] = 0.0
    empty = Page(render_report(ds, leaderboard(ds, draws=5), facts={}))
    assert "complete yet" in "".join(empty.text)
    assert "nan" not in "".join(empty.text).lower()

    none = ds.isel(model=[])
    assert Page(render_report(none, leaderboard(none, draws=5), facts={})).broken == []


def test_render_report__draws_each_task_but_those_of_one_difficulty():
    ds = dataset(PROFILES[:2], tasks=3)
    ds["difficulty"][0] = 4.0

    page = render_report(ds, leaderboard(ds, draws=5), facts=FACTS)

    first, *others = ds["task"].values.tolist()
    assert f"Measured at one difficulty only, and not drawn: {first}." in page
    titles = re.findall(r'<svg[^>]*aria-label="([^"]*)"', page)
    assert [task for task in (first, *others) if any(task in title for title in titles)] == others


def test_render_report__lazy_dataset_gives_the_same():
    ds = dataset()
    board = leaderboard(ds, draws=5)

    assert render_report(ds.chunk({"model": 1}), board, facts=FACTS) == render_report(ds, board, facts=FACTS)


def test_render_report__refuses_a_board_of_another_dataset():
    board = leaderboard(dataset([Profile("other")]), draws=5)

    with pytest.raises(ValueError, match=r"'other' .* is not in the dataset"):
        render_report(dataset(), board, facts={})


def test_render_report__says_on_each_board_what_a_star_means(gaps):
    unranked, ranked = "Incomplete evaluations (*)", "Partly measured (*)"
    ds = dataset(PROFILES[:2], tasks=2)
    board = leaderboard(ds, draws=5)
    half = replace(board, rows=(board.rows[0], replace(board.rows[1], missing=board.rows[1].trials)))

    partly = "".join(Page(render_report(ds, half, facts={})).text)

    assert (unranked in "".join(Page(gaps).text), unranked in partly, ranked in partly) == (True, False, True)
    assert "ranked models, each" in "".join(Page(gaps).text)
    assert "Each task has at least" in partly


def test_curve_views__equal_difficulties_are_one():
    ds = dataset([Profile("a")], tasks=1, points=4)
    ds["difficulty"][0, :4] = [2.0, 2.0, 8.0, 8.0]

    (view,) = report_data.curve_views(ds, [0])

    assert view.difficulty == (2.0, 8.0)
    right, completed = ds["counters"][0, 0, :2, 2].sum(), ds["counters"][0, 0, :2, 1].sum()
    assert view.accuracy[0][0].value == pytest.approx(float(right / completed))


def test_curve_views__neighbours_are_pooled_where_there_are_many_and_points_in_no_tier_are_not_drawn():
    ds = dataset([Profile("a"), Profile("b")], tasks=2, points=40)
    ds["in_tier"][:, 1, :20] = False

    other, one = report_data.curve_views(ds, [1])

    assert (len(one.difficulty), len(other.difficulty)) == (6, report_data.MOST_POINTS)
    assert list(other.difficulty) == sorted(other.difficulty)
    first = ds["counters"][1, 0, :4].sum("params")  # its first twelfth
    assert other.difficulty[0] == pytest.approx(float(2.0 ** np.log2(ds["difficulty"][0, :4]).mean()))
    assert other.accuracy[0][0].value == pytest.approx(float(first[2] / first[1]))


def test_outcome_shares__are_those_of_the_board_and_add_up():
    ds = dataset(gaps=True)
    order = range(ds.sizes["model"])[::-1]

    found = report_data.outcome_shares(ds, order)

    accuracy = {row.model_name: row.accuracy.value for row in leaderboard(ds).rows}
    for model, shares in zip(order, found, strict=True):
        cells = ds["counters"][model].where(ds["in_tier"].any("tier"), 0)
        each = (cells / cells.sel(counter="trials")).mean("params").mean("task").to_series()
        assert sum(shares.values()) == pytest.approx(1)
        for name in ("correct", "truncated", "invalid", "refused"):
            assert shares[name] == pytest.approx(each[name])
        assert shares["correct"] == pytest.approx(accuracy[ds["model_name"].values[model]])
    assert len({shares["correct"] for shares in found}) > 1


def _luminance(colour):
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _contrast(one, other):
    low, high = sorted([_luminance(one), _luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_report_css__contrast(gaps, theme):
    blocks = re.findall(r":root \{(.*?)\}", gaps, flags=re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[theme]))

    assert len(blocks) == 2
    for shade in range(10):
        text = colours["on-low" if shade < 6 else "on-high"]
        assert _contrast(colours[f"h{shade}"], text) >= 4.5, f"shade {shade}"
    shades = [_luminance(colours[f"h{shade}"]) for shade in range(10)]
    assert shades == sorted(shades, reverse=theme == 0)
    for name in ("ink", "soft", "accent", "alert"):
        assert _contrast(colours["page"], colours[name]) >= 4.5, name
    for kind in range(6):
        assert _contrast(colours["page"], colours[f"s{kind}"]) >= 3, f"series {kind}"


def test_render_report__names_weights_and_estimator_and_flags_incomplete_cells():
    ds = dataset(tasks=14, gaps=True)
    board = leaderboard(ds, draws=20, version="v2", mode="C_P")

    text = render_report(ds, board, facts=FACTS, weigh="points")

    assert "C_P: with the share won by guessing taken out, truncated trials counting as wrong" in text
    assert f"Weights: {WEIGHING['points']}." in text
    assert "ReasonScore version 2" in text
    assert "Denominator" not in text
    assert "7 of 9 points" in text


def test_render_report__says_who_can_be_told_apart(gaps):
    shown = "".join(Page(gaps).text)

    assert "Which models differ" in shown
    assert "Which models differ" not in make(PROFILES[:1])
    assert "Who beats whom" in shown
    assert "Who beats whom" not in make(PROFILES[:2])


def test_render_report__says_of_each_model_how_it_goes_from_easy_to_hard():
    profiles = [Profile(name, ability, invalid=0) for name, ability in (("a", 11.0), ("b", 6.0), ("c", 1.0))]
    page = make(profiles, trials=128)

    said = {name: page.count(f">{name}</td>") for name in ("balanced", "catastrophic", "early breaker")}
    assert said == {"balanced": 1, "catastrophic": 1, "early breaker": 1}


def test_render_report__commands_in_notes_are_code_and_names_stay_text():
    ds = dataset(PROFILES[:2]).assign_coords(repeat=range(4))
    ds["planned_repeats"] = ds["counters"].isel(counter=0, drop=True).astype(int) * 0 + 4
    board = leaderboard(ds, draws=20, selection="task=`<b>")

    text = render_report(ds, board, facts=FACTS)

    assert "4 times" in text
    assert "<code>evalcube compare</code>" in text
    assert "task=`&lt;b&gt;" in text


@pytest.mark.parametrize("name", ["a|b`c`*d*", f"a`c`{'long' * 30}", "one`"])
def test_render_report__keeps_backticks_of_names_in_what_to_distrust(name):
    ds = dataset([Profile(name, invalid=0.5), *PROFILES[:1]], tasks=2)

    text = render_report(ds, leaderboard(ds, draws=20), facts=FACTS, warnings=[f"{name} `is` code"])

    assert f"<li>{shorten(name, MOST_NAME)} 5" in text
    assert f"<li>{name} <code>is</code> code" in text


def test_render_report__few_trials_lead_with_accuracy_and_say_why():
    ds = dataset(tasks=3, trials=8)
    few, many = (leaderboard(item, draws=50) for item in (ds, dataset(tasks=3, trials=200)))

    shown = "".join(Page(render_report(ds, few, facts={})).text)

    assert (few.lead, many.lead) == ("rate", "score")
    assert "ReasonScore needs about 100" in shown
    assert "score per token" not in shown.split("How to read these numbers")[0].lower()


def test_render_report__what_was_cut_off_is_not_among_the_darkest():
    ds = dataset([Profile("a")], tasks=1, points=2, trials=100)
    for label, count in (("completed", 44), ("correct", 44), ("truncated", 56), ("guess_sum", 0)):
        ds["counters"][0, 0, :2, COUNTERS.index(label)] = count

    cut = render_report(ds, leaderboard(ds, draws=20, mode="C_I"), facts={})

    heat = cut[cut.index('id="tasks"') : cut.index('class="scale"')]
    assert 'class="h5"' in heat
    assert 'class="h9"' not in heat
    assert "56% truncated: raise max_tokens" in cut
    assert 'class="mark cut"' in cut
