"""Check the fields and rows that a data set's params name, before a sweep is planned on them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from evalcube.stages.generate.dataset.books import Book, View
from evalcube.stages.generate.dataset.params import DatasetParams
from evalcube.stages.generate.errors import TaskError

_LISTED = 40
"""Columns that a message lists."""


def check_rows(book: Book, params: DatasetParams) -> None:
    """Read every row that `params` select, as a sweep would.

    Raises
    ------
    TaskError
        A field stands in no row, no row is selected, or a row lacks a field or holds something else in it.
    """
    columns = book.columns()
    for path, _ in params.where:
        _known("where", path, columns)
    view = book.view(params)
    if not view.rows:
        wanted = ", ".join(f"{path}: {' or '.join(map(str, values))}" for path, values in params.where)
        raise TaskError(
            f"no row of {book.source.path} has {wanted}; correct `where`", field="where", value=wanted
        )
    for param, path in view.reader.fields:
        _known(param, path, columns)
    _check_items(view)


def _known(param: str, path: str, columns: Sequence[str]) -> None:
    """Refuse a field whose column stands in no row."""
    if path in columns or path.split(".", 1)[0] in columns:
        return
    near = difflib.get_close_matches(path, columns, n=1)
    listed = ", ".join(columns[:_LISTED]) + (", ..." if len(columns) > _LISTED else "")
    hint = f"Did you mean '{near[0]}'? " if near else ""
    raise TaskError(
        f"{param} names the unknown column '{path}'. {hint}Columns: {listed}", field=param, value=path
    )


def _check_items(view: View) -> None:
    first: TaskError | None = None
    problems = guesses = 0
    from_zero = False
    for place in range(len(view.rows)):
        try:
            item = view.item(place)
        except TaskError as error:
            first = first or error
            problems += 1
            continue
        guesses += item.by_place is not None
        from_zero = from_zero or item.by_place == 0
    if first is not None:
        others = problems - 1
        more = f" ({others} other row{'s have' if others > 1 else ' has'} problems, too)" if others else ""
        raise TaskError(f"{first.message}{more}", field=first.field, value=first.value)
    if guesses and not from_zero:
        raise TaskError(
            f"the answers in field '{view.reader.params.answer}' are numbers and none is 0, so that it is not sure "
            "whether they count from 0; say answer_is: index (from 0) or number (from 1)",
            field="answer_is",
            value="auto",
        )
