import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.pairing import Pair, PairedDifference
from evalcube.stages.analyze.labelled.ranking import rank_rows
from evalcube.stages.analyze.labelled.remarks import label_rows
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render.board_spec import MOST_MET, leaderboard_spec, matrix_spec, ranking_spec
from evalcube.stages.analyze.render.flips import task_spec
from evalcube.stages.analyze.render.table import (
    Column,
    TableSpec,
    left_out,
    markdown_text,
    shown_notes,
    terminal,
)
from evalcube.stages.analyze.render.table_specs import (
    group_spec,
    metric_spec,
    pair_conclusion,
    pair_spec,
    pairs_spec,
)
from evalcube.stages.analyze.render.text import ABSENT, shorten
from tests.cases import with_cases
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset

HOSTILE = (
    "<script>alert(1)</script>",
    "[red]x[/red]",
    "\x1b[31mred\x07",
    "a|b`c`\nd",
    "\u202eevil",
    "[/]",
    "名" * 60,
)


@pytest.fixture(scope="module")
def board():
    return leaderboard(dataset(gaps=True), draws=50)


@pytest.fixture(scope="module")
def hostile():
    return leaderboard(dataset([*HOSTILE, *PROFILES[:1]], tasks=2), draws=20)


def lines(board, width, *, notes=True):
    spec = leaderboard_spec(board)
    spec = spec if notes else replace(spec, notes=())
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(terminal(spec, width=width))
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_terminal__one_line_per_row_at_any_width(board, width):
    shown = lines(board, width)

    assert len(shown[0]) <= width
    for place, row in enumerate(board.rows):
        line = shown[2 + place]
        assert line.startswith(ABSENT if row.rank is None else str(row.rank))
        assert row.model_name in line
        # Of what orders the board the interval stays, and the other rate goes before it.
        assert f"{100 * row.rate.value:.1f}%" in line
        assert f"{100 * row.rate.lower:.1f}–{100 * row.rate.upper:.1f}" in line
        assert (f"{100 * row.accuracy.value:.1f}%" in line) or width < 80
        assert "…" not in line
    assert "…" not in shown[0]


def test_terminal__places_that_are_open_are_a_range():
    near = [Profile("clear", ability=8), *(Profile(f"near-{number}", ability=5) for number in range(2))]

    shown = lines(leaderboard(dataset(near, trials=16), draws=200), 80)

    assert [line.split()[0] for line in shown[2:5]] == ["1", "2–3", "2–3"]
    assert sum("Rank 2–3: too close to call" in line for line in shown) == 1


LONG = "org/a-model-with-a-rather-long-name-of-72b-instruct-2026-11"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_terminal__long_names_are_folded_and_never_cut(width):
    board = leaderboard(dataset([Profile(LONG), *PROFILES[:2]]), draws=20)

    shown = lines(board, width, notes=False)

    text = "".join(line[3:].split("  ")[0].strip() for line in shown[2:])
    assert LONG in text
    assert "…" not in "".join(shown)
    assert max(map(len, shown)) <= width


def test_left_out__names_every_column_that_gave_way(board):
    spec = leaderboard_spec(board)
    every = {column.head for column in spec.columns}

    for width in (60, 80, 100, 300):
        there = lines(board, width)[0]
        assert {head for head in every if head not in there} <= set(left_out(spec, width=width)) <= every
    assert "tokens" in left_out(spec, width=60)
    assert left_out(spec, width=300) == ()


def test_terminal__more_columns_where_there_is_room(board):
    assert "right/1k tok" in lines(board, 80)[0]
    assert "hard" in lines(board, 120)[0]
    assert " tokens" in lines(board, 130)[0]
    assert "USD/1000" in lines(board, 160)[0]
    assert "hard" not in lines(board, 60)[0]


@pytest.mark.parametrize("width", [50, 60, 70, 80, 100, 200])
def test_terminal__shows_truncation_at_any_width_and_what_to_do(board, width):
    shown = lines(board, width)

    assert max(row.truncated for row in board.rows) > 0.01
    assert "truncated" in shown[0]
    assert "raise max_tokens" in " ".join(shown)


def test_terminal__marks_incomplete_rows_and_says_why(board):
    shown = lines(board, 100)

    marked = [line for line in shown[2:7] if "*" in line]

    assert len(marked) == 2
    assert any("Incomplete evaluations (*): 2 of 5" in line for line in shown)


@pytest.mark.parametrize("width", [40, 80, 100])
def test_terminal__hostile_names_are_plain_text(hostile, width):
    text = "\n".join(lines(hostile, width, notes=False))

    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[red]x[/red]" in text
    assert text.splitlines()[2].endswith("%")
    assert text.count("名") == 60  # folded, not cut


def test_boards__names_that_differ_in_unseen_characters_are_shown_as_different():
    names = ["evil", *(f"ev{char}il" for char in "\u202e\u200b\u00ad\u061c\ufeff\u3164\x7f")]
    board = leaderboard(dataset(names, tasks=2), draws=20)

    for text in ("\n".join(lines(board, 100, notes=False)), markdown_text(leaderboard_spec(board))):
        assert text.count("evil") == 1
        assert all(f"ev⟨U+{ord(name[2]):04X}⟩il" in text for name in names[1:])
    assert len(set(label_rows(board.rows))) == len(names)


def test_terminal__no_rows():
    empty = leaderboard(dataset([Profile("a")]).isel(model=[]), draws=5)

    assert "score" in lines(empty, 80)[0]


def test_label_rows__template_and_sampler_only_where_they_differ():
    ds = dataset([Profile("a"), Profile("b")])
    varied = ds.assign_coords(template=("model", ["plain", "json"]))

    assert sorted(label_rows(leaderboard(ds, draws=5).rows)) == ["a", "b"]
    assert sorted(label_rows(leaderboard(varied, draws=5).rows)) == ["a · plain", "b · json"]


def test_markdown_text__same_number_of_cells_in_every_row(hostile):
    rows = markdown_text(leaderboard_spec(hostile)).split("\n\n")[0].splitlines()

    cells = [line.replace("\\\\", "").replace("\\|", "").count("|") for line in rows]

    assert len(rows) == 2 + len(hostile.rows)
    assert len(set(cells)) == 1


def test_markdown_text__heads_say_whose_interval_they_are(board):
    heads = [head.strip() for head in markdown_text(leaderboard_spec(board)).splitlines()[0].split("|")[1:-1]]

    assert len(set(heads)) == len(heads)
    assert {r"accuracy 95%", board.mode.replace("_", r"\_") + " 95%"} <= set(heads)


def _pair():
    nothing = Estimate(0.1, 0.0, 0.2)
    one = PairedDifference("", 100, 100, 4, 20, 10, 0.6, 0.5, nothing, 0.05, 0.05, 0.05)
    return Pair("first", "second", (replace(one, task="arithmetic"),), one, (0, 0))


def test_matrix_spec__row_against_column_and_their_sums_are_the_wins(board):
    found = rank_rows(dataset(gaps=True), board)
    table = matrix_spec(found)

    shown = [[text.strip(" %<") for text in texts[1:]] for texts in table.texts()]
    for place, (item, line) in enumerate(zip(found.rows, shown, strict=True)):
        assert line[place] == "–"
        met = [float(text) for text in line if text != "–"]
        assert len(met) == (2 if item.row.rank else 0)
        if met:
            assert sum(met) == pytest.approx(100 * item.wins, abs=2.1)
    assert [column.head for column in table.columns[1:]] == [
        f"> {shorten(item.label, 16)}" for item in found.rows
    ]


def test_matrix_spec__says_nothing_of_two_and_is_left_out_for_many(board):
    found = rank_rows(dataset(gaps=True), board)

    assert matrix_spec(replace(found, rows=found.rows[:2])) is None
    assert matrix_spec(replace(found, rows=found.rows * (MOST_MET // len(found.rows) + 1))) is None


def test_shown_notes__explain_no_column_that_gave_way(board):
    only, alone = "first only, second only: ", "95%: "
    tables = {
        "pair": (pair_spec(_pair()), [only, alone]),
        "pairs": (pairs_spec([_pair()]), [only, alone]),
        "ranking": (ranking_spec(rank_rows(dataset(gaps=True), board), board), ["wins: ", "rating: "]),
        "tasks of flips": (task_spec([], ("a", "b")), ["first: "]),
    }

    for name, (table, explained) in tables.items():
        wide, narrow = (shown_notes(table, width=width) for width in (250, 12))
        hidden = left_out(table, width=12)
        gone = [note for note in wide if note not in narrow]
        assert [note.partition(": ")[0] + ": " for note in gone] == explained, name
        assert all(any(head in note for head in hidden) for note in gone), name


def test_markdown_text__escapes_names(hostile):
    text = markdown_text(leaderboard_spec(hostile))

    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "a\\|b\\`c\\` d" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "name", ["@everyone", "https://evil.example", "www.evil.example", "a #1", "me@evil.example"]
)
def test_markdown_text__mentions_and_links_in_names_are_code(name):
    board = leaderboard(dataset([Profile(name, invalid=0.9), *PROFILES[:1]], tasks=2), draws=20)
    spec = leaderboard_spec(board)

    text = markdown_text(replace(spec, notes=(f"{name} was cut off.",)))

    assert f"| `{name}` |" in text
    assert f"`{name.split()[-1]}` was cut off" in text
    assert name.split()[-1] not in re.sub("`[^`]*`", "", text)


def test_markdown_text__notes_follow(board):
    assert "Incomplete evaluations (\\*): 2 of 5" in markdown_text(leaderboard_spec(board))


def test_to_dict__holds_names_as_they_are(hostile):
    text = json.dumps(hostile.to_dict(), allow_nan=False)

    assert json.loads(text) == hostile.to_dict()
    assert text.isascii()
    assert {row["model_name"] for row in json.loads(text)["rows"]} >= set(HOSTILE)


def test_terminal__shows_how_much_of_an_evaluation_is_done(board):
    shown = lines(board, 100)
    assert "done" in shown[0]
    partial = {row.model_name: row for row in board.rows if row.partial}
    assert partial
    for name, row in partial.items():
        assert f"{100 * row.trials // row.planned}%" in next(line for line in shown if name in line)
    assert "done" not in lines(leaderboard(dataset(PROFILES[:2]), draws=5), 200)[0]


def test_metric_spec__says_which_questions_are_left_out():
    values = {
        "pass_at_k": 0.5,
        "pass_at_k_lower": 0.1,
        "pass_at_k_upper": 0.9,
        "points": 1,
        "points_planned": 1,
    }
    row = {"model": "a", "k": 1, "questions": 3, "questions_incomplete": 2} | values

    notes = metric_spec([row], ["model"], ["pass_at_k"]).notes

    assert "Questions with fewer than k answers are left out." in notes


@pytest.mark.parametrize(("refused", "shown"), [(0.0, False), (0.05, True)])
def test_leaderboard_spec__shows_refusals_where_there_are_some(refused, shown):
    ds = dataset([Profile("a"), Profile("b", refused=refused)], tasks=1, trials=200)

    heads = [column.head for column in leaderboard_spec(leaderboard(ds, draws=5)).columns]

    assert ("refused" in heads) == shown
    assert "invalid" in heads


@with_cases("width", [30, 40, 60, 80, 120])
def test_terminal__cuts_no_head(width):
    columns = tuple(Column(f"head_number_{place}", str) for place in range(8))
    table = TableSpec((Column("model", lambda _: "a-model-of-some-length", name=True), *columns), [1, 2])

    file = io.StringIO()
    Console(file=file, width=width).print(terminal(table, width=width))
    heads, hidden = file.getvalue().splitlines()[0].split(), left_out(table, width=width)

    assert heads == [column.head for column in table.columns if column.head not in hidden]
    assert len(heads) > 1


def test_terminal__what_notes_quote_does_nothing():
    gap = Estimate(0.5, 0.4, 0.6)
    tasks = (
        PairedDifference(name, 9, 9, 1, 6, 1, 0.6, 0.1, gap, 1e-6, 1e-6, 99.0) for name in ("\x1b[31mred", "")
    )
    first, overall = tasks
    spec = pair_spec(Pair("a", "b", (first,), overall, (0, 0)))

    notes = " ".join(shown_notes(spec, width=200))

    assert "ahead in ⟨U+001B⟩[31mred" in notes
    assert "\x1b" not in notes


def test_group_spec__says_the_level_of_its_intervals():
    row = {"task": "sort", "point": 0.5, "lower": 0.4, "upper": 0.6, "points": 1, "points_planned": 1}
    row |= {"truncated": 0.0, "counters": {"trials": 9.0}}

    heads = [column.head for column in group_spec([row], ["task"], "C_P", 0.9).columns]

    assert heads[1:3] == ["C_P", "90%"]


def test_pair_conclusion__names_the_tasks_in_which_each_is_ahead():
    up, down = Estimate(0.1, 0.05, 0.15), Estimate(-0.1, -0.15, -0.05)
    tasks = tuple(
        replace(_pair().overall, task=name, difference=difference, p_holm=p)
        for name, difference, p in [("x", up, 0.01), ("y", up, 0.05), ("z", down, 0.01), ("w", up, 0.001)]
    )

    text = pair_conclusion(replace(_pair(), tasks=tasks))

    assert "'first' is ahead in x, w; 'second' is ahead in z (" in text
    assert "In no single task" in pair_conclusion(replace(_pair(), tasks=tasks[1:2]))
