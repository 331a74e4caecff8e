"""Tables in a terminal of some width, and in Markdown: what gives way, what is folded, what is said."""

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from evalcube.stages.analyze.render.table import (
    Column,
    TableSpec,
    fold,
    left_out,
    markdown_text,
    shown_notes,
    terminal,
)
from evalcube.stages.analyze.render.text import ABSENT
from tests.cases import with_cases


def column(head, width, gives_way=0, **options):
    return Column(head, lambda row: row.get(head, "x" * width), gives_way, **options)


def table(*columns, rows=({},), **options):
    return TableSpec(columns, rows, **options)


NAME = column("name", 30, right=False, name=True)
SPEC = table(NAME, column("key", 10), column("often", 10, 2), column("seldom", 10, 3))


@with_cases(
    ("width", "gone"),
    [
        (30 + 3 * 12, ()),
        (30 + 3 * 12 - 1, ("seldom",)),
        (22 + 2 * 12, ("seldom",)),  # a name's line gives way before what matters
        (22 + 2 * 12 - 1, ("often", "seldom")),
        (8 + 12, ("often", "seldom")),
    ],
)
def test_left_out__are_the_columns_that_give_way_first(width, gone):
    assert left_out(SPEC, width=width) == gone


def test_left_out__where_nothing_fits_are_the_last_but_one():
    numbers = table(*(column(head, 10) for head in "abcd"))

    assert left_out(numbers, width=46) == ()
    assert left_out(numbers, width=45) == ("d",)
    assert left_out(numbers, width=5) == ("b", "c", "d")
    named = table(NAME, *(column(head, 10) for head in "abc"))
    assert left_out(named, width=8 + 3 * 12) == ()
    assert left_out(named, width=8 + 3 * 12 - 1) == ("c",)
    assert left_out(table(NAME), width=5) == ()


def drawn(spec, width):
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(terminal(spec, width=width))
    return out.getvalue()


@given(st.integers(20, 120), st.lists(st.text("ab -/", min_size=1, max_size=60), min_size=1, max_size=4))
def test_terminal__fits_into_its_width_and_cuts_nothing(width, names):
    spec = table(NAME, column("key", 4), column("often", 10, 2), rows=[{"name": name} for name in names])

    shown = drawn(spec, width)

    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown or max(map(len, names)) > 40
    assert shown.count("xxxx") >= len(names)


def test_terminal__shows_markup_as_it_is_and_unseen_signs_by_number():
    spec = table(NAME, column("key", 2), rows=[{"name": "[red]a\x1b"}], notes=("note\x1b",))

    shown = drawn(spec, 60)

    assert "[red]a" in shown
    assert "\x1b" not in shown
    assert "note⟨U+001B⟩" in shown


def test_shown_notes__leave_out_what_explains_a_column_that_is_left_out():
    spec = table(
        NAME,
        column("key", 10),
        column("seldom", 10, 3),
        notes=("all", "of seldom"),
        explains={"of seldom": "seldom"},
    )

    assert shown_notes(spec, width=100) == ("all", "of seldom")
    assert shown_notes(spec, width=30) == ("all",)


def test_without_empty__keeps_what_never_gives_way():
    rows = ({"a": ABSENT, "b": ABSENT, "c": ABSENT}, {"a": ABSENT, "b": ABSENT, "c": "1"})
    spec = table(column("a", 1), column("b", 1, 2), column("c", 1, 2), rows=rows)

    assert [each.head for each in spec.without_empty().columns] == ["a", "c"]


@with_cases(
    ("text", "width", "lines"),
    [
        ("short", 8, ["short"]),
        ("a-rather-long-model-name", 16, ["a-rather-long-", "model-name"]),
        ("x" * 20, 8, ["x" * 8, "x" * 8, "x" * 4]),
        ("a b" + "x" * 10, 8, ["a bxxxxx", "xxxxx"]),  # a sign in the first half breaks nothing
        ("abcde fghij", 8, ["abcde", "fghij"]),
        ("你好你好你好", 8, ["你好你好", "你好"]),
    ],
)
def test_fold__breaks_behind_signs(text, width, lines):
    assert fold(text, width).split("\n") == lines


@given(st.text("ab-/ 你", max_size=200), st.integers(8, 40))
def test_fold__loses_nothing_but_blanks(text, width):
    lines = fold(text, width).split("\n")

    assert all(cell_len(line) <= width for line in lines)
    kept = "".join(lines).replace(" ", "")
    assert kept == "".join(text.split()) or "…" in kept


def test_markdown_text__has_all_columns_and_notes():
    spec = table(
        Column("name", lambda row: row["name"], right=False),
        Column("95%", lambda _: "1|2", of="score"),
        rows=[{"name": "a*b"}],
        notes=("see a_b", "second"),
    )

    assert markdown_text(spec) == (
        "| name | score 95% |\n| :-- | --: |\n| a\\*b | 1\\|2 |\n\nsee a\\_b\n\nsecond\n"
    )
