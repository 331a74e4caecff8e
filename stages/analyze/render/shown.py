"""Results in Python as text, in a notebook, and as a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        """All `records` as they are; results whose tables say more have their own."""
        from evalcube.stages.analyze.render.table import Column, TableSpec

        rows = records(self.records()) or [{"": note} for note in self._notes()]
        columns = [
            Column(name.replace("_", " "), lambda row, name=name: str(row[name]), name=not number)  # type: ignore[misc]
            for number, name in enumerate(rows[0] if rows else ())
        ]
        return TableSpec(tuple(columns), rows, notes=self._notes() if self.records() else ())

    def _notes(self) -> tuple[str, ...]:
        return ()

    def sheet(self) -> TableSpec:
        """Return the columns, rows and notes to show."""
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
        return data_frame(self.records())

    def __str__(self) -> str:
        return text_table(self.sheet())

    def _repr_html_(self) -> str:
        return html_table(self.sheet())


def text_table(table: TableSpec) -> str:
    """A table as plain text, with what it leaves out and its notes below."""
    from rich.console import Console

    from evalcube.stages.analyze.render.table import left_out, terminal

    console = Console(width=WIDTH, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(terminal(table, width=WIDTH))
    lines = [line.rstrip() for line in captured.get().splitlines()]
    if hidden := left_out(table, width=WIDTH):
        lines.append(f"to_dataframe() also has: {', '.join(dict.fromkeys(hidden))}.")
    return "\n".join(lines)


def html_table(table: TableSpec) -> str:
    """A table with all its columns as HTML, with its notes below; every text in it is only text."""
    from evalcube.stages.analyze.labelled.axes import plain  # with xarray, which takes a while

    def cell(tag: str, text: str, *, right: bool) -> str:
        return f'<{tag} style="text-align:{"right" if right else "left"}">{escape(plain(text))}</{tag}>'

    heads = "".join(cell("th", column.full_head, right=column.right) for column in table.columns)
    rows = []
    for row, texts in zip(table.rows, table.texts(), strict=True):
        cells = zip(texts, table.columns, strict=True)
        faint = ' style="opacity:.6"' if table.dim(row) else ""
        rows.append(f"<tr{faint}>{''.join(cell('td', text, right=head.right) for text, head in cells)}</tr>")
    notes = "".join(f'<div style="opacity:.7">{escape(plain(note))}</div>' for note in table.notes)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>{notes}"


_PREFIXES = {"facets": "facet", "counters": ""}
"""What stands before the names within a mapping, where that is not the mapping's own name."""
_LABEL = "tier"
"""The key by which rows within a row are told apart."""


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of JSON values without anything nested.

    An estimate under ``score`` becomes ``score``, ``score_lower`` and ``score_upper``; what is said of a tier has the
    tier's name before it; lists of plain values become one text.

    Examples
    --------
    >>> flat({"score": {"value": 2.0, "lower": 1.0}, "tiers": [{"tier": "easy", "tokens": 3}], "front": ["a", "b"]})
    {'score': 2.0, 'score_lower': 1.0, 'easy_tokens': 3, 'front': 'a, b'}
    """
    leaves: dict[str, Any] = {}
    for name, value in _leaves(row):
        # A share and a counter have one name, such as truncated: the row's own keeps it.
        leaves[f"counter_{name}" if name in leaves else name] = value
    return leaves


def records(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows made flat, each with the keys of all; None where it has no value."""
    flat_rows = [flat(row) for row in rows]
    names = dict.fromkeys(name for row in flat_rows for name in row)
    return [{name: row.get(name) for name in names} for row in flat_rows]


def data_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows made flat, as a data frame."""
    import pandas as pd

    return pd.DataFrame(records(rows))


def _leaves(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        whole = "_".join(filter(None, (prefix, "" if name == "value" and prefix else str(name))))
        if isinstance(value, Mapping):
            yield from _leaves(value, "_".join(filter(None, (prefix, _PREFIXES.get(name, str(name))))))
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                label = str(item.get(_LABEL, f"{whole}_{index}"))
                inner = {key: part for key, part in item.items() if key != _LABEL}
                yield from _leaves(inner, "_".join(filter(None, (prefix, label))))
        elif isinstance(value, list | tuple):
            yield whole, ", ".join(map(str, value))
        else:
            yield whole, value
