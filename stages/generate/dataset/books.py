"""The open files of a process and the rows that params select in them; each is read once."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from weakref import ref

from evalcube.stages.generate.dataset.files import Table, file_digest, file_state, format_of, open_table
from evalcube.stages.generate.dataset.params import DatasetParams
from evalcube.stages.generate.dataset.rows import Item, RowError, RowReader, lookup, plain
from evalcube.stages.generate.dataset.tables import Row
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.recent import Recent

_OPEN_FILES = 8
"""Files that a process keeps open."""
_VIEWS = 512
"""Selections of one file that a process keeps."""
_INDICES = 4
"""Sets of fields by whose values a process keeps a file's rows."""
_ORDERS = 4
"""Orders of one selection that a process keeps, one for each seed."""
_COLUMNS = 2000
"""Columns that are remembered for messages."""

V = TypeVar("V")


@dataclass(frozen=True)
class RowView:
    """The rows of a file that a point of the task asks about."""

    source: SourceTable
    reader: RowReader
    rows: Sequence[int]
    """Their indices in the file."""
    _orders: dict[bytes, Sequence[int]] = field(default_factory=dict, compare=False)

    def item(self, place: int) -> Item:
        """The question at a place of the selection."""
        index = self.rows[place]
        return self.source.read_row(index, lambda row: self.reader.item(row, index + 1))

    def row(self, place: int) -> Row:
        """The row at a place of the selection; `TaskError` names one that cannot be read."""
        return self.source.row(self.rows[place])

    def value(self, place: int, path: str) -> str | None:
        """A field of the row at a place of the selection as text, None if it is none; `TaskError` as for `item`."""
        return self.source.read_row(self.rows[place], lambda row: plain(lookup(row, path)))

    def order(self, key: bytes) -> Sequence[int]:
        """Places of the selection in the order of what their rows draw: rows that come or go move no others."""
        order = self._orders.get(key)
        if order is None:
            if len(self._orders) >= _ORDERS:
                self._orders.clear()
            own = (self.source.read_row(index, lambda row: self.reader.draw(row, key)) for index in self.rows)
            draws = array("Q", (int.from_bytes(draw[:8], "big") for draw in own))
            order = self._orders[key] = array("Q", sorted(range(len(draws)), key=draws.__getitem__))
        return order


class SourceTable:
    """A table whose errors say where."""

    def __init__(self, path: str, table: Table) -> None:
        self.path = path
        self.table = table

    def row(self, index: int) -> Row:
        """Row `index` from 0; `TaskError` names the row that cannot be read."""
        try:
            return self.table.row(index)
        except ValueError as error:
            raise TaskError(f"{self.place(index)}: {error}", field="file", value=self.path) from error

    def read_row(self, index: int, read: Callable[[Row], V]) -> V:
        """What is read of a row of the file; `TaskError` names the row that lacks it."""
        try:
            return read(self.row(index))
        except RowError as problem:
            raise TaskError(
                f"{self.place(index)}: {problem}", field=problem.param, value=problem.path
            ) from problem

    def place(self, index: int) -> str:
        """Where a row stands: the file, the row and the line, both from 1."""
        line = self.table.line(index)
        return f"{self.path}, row {index + 1}" + ("" if line is None else f" (line {line})")


class Book:
    """A file with what has been found out about it."""

    def __init__(self, source: SourceTable) -> None:
        self.source = source
        self._rows = len(source.table)
        # Reentrant: a check of the rows, run under the lock, asks for views and columns itself.
        self._lock = threading.RLock()
        # no view refers back to its book: an evicted file is closed at once, not when cycles are collected
        self._views: Recent[DatasetParams, RowView] = Recent(_VIEWS)
        self._indices: Recent[tuple[str, ...], Mapping[tuple[str | None, ...], Sequence[int]]] = Recent(
            _INDICES
        )
        self._columns: Sequence[str] = ()
        self._checked: Recent[DatasetParams, bool] = Recent(_VIEWS)

    def check(self, params: DatasetParams, check: Callable[[], bool]) -> None:
        """Run a check of what `params` select, unless it has been passed before."""
        # Under the lock, long as it takes: other threads that plan the same file wait for the result.
        with self._lock:
            self._checked.obtain(params, check)

    def view(self, params: DatasetParams) -> RowView:
        """The rows that `params` select."""
        with self._lock:
            return self._views.obtain(params, lambda: self._view(params))

    def _view(self, params: DatasetParams) -> RowView:
        reader = RowReader(params, texts_only=self.source.table.texts_only)
        return RowView(self.source, reader, self._select_rows(params))

    def _select_rows(self, params: DatasetParams) -> Sequence[int]:
        if not params.where:
            return range(self._rows)
        fields = tuple(field for field, _ in params.where)
        wanted = [{plain(value) for value in values} for _, values in params.where]
        selected = array("Q")
        for key, rows in self._indices.obtain(fields, lambda: self._index_rows(fields)).items():
            if all(value in values for value, values in zip(key, wanted, strict=True)):
                selected.extend(rows)
        return array("Q", sorted(selected))

    def _index_rows(self, fields: tuple[str, ...]) -> Mapping[tuple[str | None, ...], Sequence[int]]:
        """Values of the fields -> rows that have them."""
        rows_by_key: dict[tuple[str | None, ...], array[int]] = {}
        for index in range(self._rows):
            key = self.source.read_row(
                index, lambda row: tuple(plain(lookup(row, field)) for field in fields)
            )
            rows_by_key.setdefault(key, array("Q")).append(index)
        return rows_by_key

    def has_column(self, path: str) -> bool:
        """Whether a column has a field's name, or that of its first step, in any row; mostly the first tells."""
        names = {path, path.partition(".")[0]}
        return bool(self._rows and names & self.source.row(0).keys()) or bool(names & set(self.columns()))

    def columns(self) -> Sequence[str]:
        """The columns that there are in any row, in the file's order; reads every row once."""
        with self._lock:
            if not self._columns:
                names: dict[str, None] = {}
                for index in range(self._rows):
                    names.update(dict.fromkeys(self.source.row(index)))
                    if len(names) > _COLUMNS:
                        names = dict.fromkeys(list(names)[:_COLUMNS])
                self._columns = list(names)
            return self._columns


class Library:
    """The files that a process has open, each read once. Safe to use from several threads.

    Files are kept by path and digest, so that content which has changed is never taken for what it was.
    A copy (by pickling) starts empty.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books: Recent[tuple[str, str, str], Book] = Recent(_OPEN_FILES)
        self._digests: Recent[str, tuple[tuple[int, ...], str]] = Recent(_OPEN_FILES)
        self._latest: tuple[DatasetParams, ref[RowView]] | None = None
        self._examples: Recent[DatasetParams, Any] = Recent(_VIEWS)

    def __reduce__(self) -> tuple[object, ...]:
        # A lock and open descriptors mean nothing in another process; it opens what it needs.
        return Library, ()

    def book(self, path: str, form: str, sha256: str) -> Book:
        """The rows of a file whose digest is known."""
        key = (path, form, sha256)
        with self._lock:
            book = self._books.get(key)
            # Offsets into a file that was written to in place would lead to the midst of other rows.
            if book is None or not book.source.table.unchanged():
                book = self._books.put(key, Book(SourceTable(path, open_table(path, form, sha256))))
            return book

    def view(self, params: DatasetParams) -> RowView:
        """The rows that resolved `params` select; raises as `book`."""
        latest = self._latest
        # Trials of a cell come one after another, with one object as params: to find a view costs as much as to use it.
        view = latest[1]() if latest is not None and latest[0] is params else None
        if view is None or not view.source.table.unchanged():
            view = self.book(params.file, format_of(params.file, params.format), params.digest()).view(params)
            self._latest = params, ref(view)
        return view

    def examples(self, params: DatasetParams, make: Callable[[RowView], V]) -> V:
        """What is made of the rows that the examples of resolved `params` are from; raises as `book`."""
        return cast("V", self._examples.obtain(params, lambda: make(self.view(params.of_examples()))))

    def digest(self, path: str) -> str:
        """A file's SHA-256; read again when the file system says that the file is another one."""
        with self._lock:
            # The state before the digest: a file that changes meanwhile has another state the next time.
            state = file_state(path)
            remembered = self._digests.get(path)
            if remembered is None or remembered[0] != state:
                remembered = self._digests.put(path, (state, file_digest(path)))
            return remembered[1]
