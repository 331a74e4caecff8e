"""Tables for the terminal or in Markdown, from rows and the columns to show of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.text import Text

from evalcube.stages.analyze.labelled.axes import reveal_unseen
from evalcube.stages.analyze.render.text import ABSENT, cell_markdown, sentence, shorten

NAME_WIDTH = 40
"""Columns of a terminal that names get if they need them, before other columns do; longer ones take several lines."""
NAME_ENOUGH = 22
"""Of these, what they keep where columns that matter more than a whole line would have to go."""
NAME_LEAST = 8
NAME_MOST = 160
"""Characters of a name that are shown: more than any honest one has."""
IMPORTANT = 2
"""Columns that are to be kept as much as this: a number's interval should not go for the sake of a name's line."""
GAP = 2
"""Spaces between columns."""
BREAKS = " ·/-_:"
"""Signs behind which a long name may go on in the next line."""


@dataclass(frozen=True)
class Column:
    """One column: its head, what it shows of a row, and how soon it gives way when space is short."""

    head: str
    cell: Callable[[Any], str]
    gives_way: int = 0
    """Columns with high numbers give way first, those with 0 never."""
    right: bool = True
    name: bool = False
    """Text that takes several lines where space is short; never cut."""
    of: str = ""
    """Head of the column whose interval this is: said where tables are read without their neighbourhood."""

    @property
    def full_head(self) -> str:
        """The head as it says by itself what the column holds."""
        return f"{self.of} {self.head}".lstrip()


@dataclass(frozen=True)
class TableSpec:
    """What a table shows; values are anything that the columns' cells take."""

    columns: tuple[Column, ...]
    rows: Sequence[Any]
    notes: tuple[str, ...] = ()
    """Sentences below the table."""
    dim: Callable[[Any], bool] = lambda _: False
    """Whether a row is shown faintly."""
    explains: Mapping[str, str] = field(default_factory=dict)
    """Notes that explain a column, with its head: said only where that is shown."""

    def texts(self) -> list[list[str]]:
        """The cells' texts, row by row."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]

    def without_empty(self) -> TableSpec:
        """The same without columns that can give way and have a value in no row."""
        columns = [
            column
            for column in self.columns
            if not column.gives_way or any(column.cell(row) != ABSENT for row in self.rows)
        ]
        return replace(self, columns=tuple(columns))


def terminal(table: TableSpec, *, width: int = 100) -> rich_table.Table:
    """Table for a terminal of `width` characters: columns give way until the names fit, and then names are folded.

    All text is shown as it is: markup in it does nothing, and unseen characters of names stand there by their numbers.
    """
    fitted, name_width = _fit(table, width)
    shown = empty_table()
    for column in fitted.columns:
        shown.add_column(Text(column.head), justify="right" if column.right else "left", no_wrap=True)
    for row, texts in zip(fitted.rows, fitted.texts(), strict=True):
        cells = zip(fitted.columns, texts, strict=True)
        folded = (fold(text, name_width) if column.name else text for column, text in cells)
        shown.add_row(*map(Text, folded), style="dim" if fitted.dim(row) else None)
    if notes := shown_notes(table, width=width):
        shown.caption = Text("\n".join(notes))
    return shown


def empty_table(title: Text | None = None) -> rich_table.Table:
    """Return a table in the style of all tables of a terminal, without columns."""
    table = rich_table.Table(title=title, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD)
    table.padding, table.pad_edge, table.show_edge = (0, 1, 0, 0), False, False
    return table


def left_out(table: TableSpec, *, width: int) -> tuple[str, ...]:
    """Heads of the columns that `terminal` leaves out at this width."""
    shown = {id(column) for column in _fit(table, width)[0].columns}
    return tuple(column.head for column in table.columns if id(column) not in shown)


def shown_notes(table: TableSpec, *, width: int) -> tuple[str, ...]:
    """The notes without those that explain a column that `terminal` leaves out at this width.

    They may quote names that come from anyone.
    """
    hidden = left_out(table, width=width)
    return tuple(reveal_unseen(note) for note in table.notes if table.explains.get(note) not in hidden)


def fold(text: str, width: int) -> str:
    r"""A name on as many lines of a terminal as it needs, if possible broken behind a sign between its words.

    Examples
    --------
    >>> fold("a-rather-long-model-name", 16)
    'a-rather-long-\nmodel-name'
    """
    tail, lines = shorten(text, NAME_MOST), []
    while cell_len(tail) > width:
        end = len(tail)
        while end > 1 and cell_len(tail[:end]) > width:
            end -= 1
        breaks = [index + 1 for index in range(end // 2, end) if tail[index] in BREAKS]
        end = breaks[-1] if breaks else end
        lines.append(tail[:end].rstrip())
        tail = tail[end:].lstrip()
    return "\n".join([*lines, tail])


def markdown_text(table: TableSpec) -> str:
    """All columns as a Markdown table, followed by the notes; ends with a line end."""
    lines = [
        _line([cell_markdown(column.full_head) for column in table.columns]),
        _line(["--:" if column.right else ":--" for column in table.columns]),
        *(_line(map(cell_markdown, texts)) for texts in table.texts()),
    ]
    notes = "".join(f"\n{sentence(note)}\n" for note in table.notes)
    return "\n".join(lines) + "\n" + notes


def _fit(table: TableSpec, width: int) -> tuple[TableSpec, int]:
    """The columns that fit, and the width that each name gets."""
    texts = list(zip(*table.texts(), strict=True)) or [()] * len(table.columns)
    sizes = {
        column: max([cell_len(column.head), *map(cell_len, cells)])
        for column, cells in zip(table.columns, texts, strict=True)
    }
    names = [column for column in table.columns if column.name]
    wanted = min(NAME_WIDTH, max((sizes[column] for column in names), default=NAME_LEAST))
    chosen = list(table.columns)

    def spare() -> int:
        """Characters for each name."""
        taken = sum(sizes[column] for column in chosen if not column.name)
        return (width - taken - GAP * (len(chosen) - 1)) // max(1, len(names))

    while last := max((column.gives_way for column in chosen), default=0):
        if spare() >= (wanted if last > IMPORTANT else min(wanted, NAME_ENOUGH)):
            break
        chosen = [column for column in chosen if column.gives_way != last]
    # Where not even these fit, the last ones go: a head or a number that is cut says something else.
    least = min(NAME_LEAST, wanted) if names else 0
    while spare() < least and sum(not column.name for column in chosen) > 1:
        chosen.remove(next(column for column in reversed(chosen) if not column.name))
    most = max((sizes[column] for column in names), default=NAME_LEAST)
    return replace(table, columns=tuple(chosen)), max(NAME_LEAST, min(most, spare()))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
