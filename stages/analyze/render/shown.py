"""What results have in common that are looked at in Python: as text, in a notebook, and as a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from evalcube.stages.analyze.render.table import TableSpec

WIDTH = 100
"""Columns of the text; as many as fit in a notebook."""


class Shown:
    """A result that is printed as a table, shown as one in notebooks, and becomes a data frame."""

    __slots__ = ()

    def _table(self) -> TableSpec:
        raise NotImplementedError

    def sheet(self) -> TableSpec:
        """What is shown for people: columns, rows and notes."""
        return self._table()

    def records(self) -> Sequence[Mapping[str, Any]]:
        """Plain values, a mapping for each row."""
        raise NotImplementedError

    def to_dataframe(self) -> pd.DataFrame:
        """A data frame with a row for each of `records`, its columns as in the CSV of the command line.

        Returns
        -------
        DataFrame
            Estimates are columns such as ``score``, ``score_lower`` and ``score_upper``.
        """
        from evalcube.stages.analyze.render.flat import data_frame

        return data_frame(self.records())

    def __str__(self) -> str:
        return text_table(self.sheet())

    def _repr_html_(self) -> str:
        return html_table(self.sheet())


def text_table(table: TableSpec, width: int = WIDTH) -> str:
    """A table as plain text, with what it leaves out and its notes below.

    Parameters
    ----------
    table
        The table.
    width
        Characters of a line.
    """
    from rich.console import Console

    from evalcube.stages.analyze.render.table import left_out, terminal

    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(terminal(table, width=width))
    lines = [line.rstrip() for line in captured.get().splitlines()]
    if hidden := left_out(table, width=width):
        lines.append(f"to_dataframe() also has: {', '.join(dict.fromkeys(hidden))}.")
    return "\n".join(lines)


def html_table(table: TableSpec) -> str:
    """A table with all its columns as HTML, with its notes below; every text in it is only text.

    Parameters
    ----------
    table
        The table.
    """
    from evalcube.stages.analyze.labelled.axes import plain  # with xarray, which takes a while

    def cell(tag: str, text: str, *, right: bool) -> str:
        return f'<{tag} style="text-align:{"right" if right else "left"}">{escape(plain(text))}</{tag}>'

    heads = "".join(cell("th", column.full_head, right=column.right) for column in table.columns)
    rows = []
    for row, texts in zip(table.rows, table.texts(), strict=True):
        cells = zip(texts, table.columns, strict=True)
        faint = ' style="opacity:.6"' if table.dim(row) else ""
        rows.append(f"<tr{faint}>{''.join(cell('td', text, right=one.right) for text, one in cells)}</tr>")
    notes = "".join(f'<div style="opacity:.7">{escape(plain(note))}</div>' for note in table.notes)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>{notes}"
