"""Rows of an open file by number: JSONL and CSV by the place each begins at, Parquet by columns in memory."""

from __future__ import annotations

import ast
import csv
import io
import json
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest
from typing import Any, BinaryIO

Row = Mapping[str, object]

MOST_ROW_BYTES = 16 << 20
"""Bytes of one row of JSONL or CSV."""
MOST_PARQUET_BYTES = 4 << 30
"""Bytes that a Parquet file may unpack to: it is kept in memory."""
_LONGEST_LIST = 50_000
"""Characters of a list that is written as Python does."""
_BATCH_ROWS = 1024
_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 1 << 16
"""Bytes by which it is found out what separates the fields of a CSV file."""
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}

Reader = Callable[[int, int], bytes]
"""Gives the bytes between two places of a file."""
Unchanged = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The values of a name that stands twice in a row: refused where somebody asks for it."""

    values: tuple[object, ...]


def unambiguous(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """An object of pairs, in which names that stand twice have no value of their own."""
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            before = members[name]
            earlier = before.values if isinstance(before, Ambiguous) else (before,)
            value = Ambiguous((*earlier, value))  # noqa: PLW2901
        members[name] = value
    return members


class LineTable:
    """Rows of a text file of which only the places are in memory: 16 bytes per row."""

    def __init__(
        self,
        read: Reader,
        unchanged: Unchanged,
        parse: Callable[[bytes], Row],
        *,
        texts_only: bool,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.texts_only = texts_only
        self.notes = notes
        """How the file is read where that had to be guessed."""
        self.unchanged = unchanged
        self._read = read
        self._parse = parse
        self._starts, self._ends, self._lines = array("Q"), array("Q"), array("Q")

    def add(self, start: int, end: int, line: int) -> None:
        """Take note of the next row: its bytes, and the number of its first line, from 1."""
        self._starts.append(start)
        self._ends.append(end)
        self._lines.append(line)

    def __len__(self) -> int:
        return len(self._starts)

    def row(self, index: int) -> Row:
        """See `files.Table`."""
        return self._parse(self._read(self._starts[index], self._ends[index]))

    def line(self, index: int) -> int | None:
        """See `files.Table`."""
        return self._lines[index]


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each line with the place it begins at; a byte order mark is left out."""
    start = 0
    for number, line in enumerate(iter(lambda: file.readline(MOST_ROW_BYTES + 1), b""), 1):
        if len(line) > MOST_ROW_BYTES:
            raise ValueError(f"line {number} has more than {MOST_ROW_BYTES >> 20} MiB; shorten or split it")
        skip = len(_BOM) if number == 1 and line.startswith(_BOM) else 0
        yield start + skip, line[skip:]
        start += len(line)


def index_jsonl(file: BinaryIO, read: Reader, unchanged: Unchanged) -> LineTable:
    """The rows of a file with one JSON object per line; blank lines are passed over."""
    table = LineTable(read, unchanged, _json_object, texts_only=False)
    with file:
        for number, (start, line) in enumerate(_lines(file), 1):
            if line.strip():
                table.add(start, start + len(line), number)
    return table


def _json_object(data: bytes) -> Row:
    try:
        value = _JSON.decode(_decode(data))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply; flatten it") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not JSON: {error.msg} at character {error.pos + 1}; write one object per line"
        ) from error
    if isinstance(value, dict):
        return value
    kind = "array" if isinstance(value, list) else "value"
    raise ValueError(f"a JSON {kind}, not an object; write one object per line")


_JSON = json.JSONDecoder(object_pairs_hook=unambiguous)
"""`json.loads` would make one for each row."""


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        remedy = "save the file as UTF-8 (in Excel: CSV UTF-8)"
        raise ValueError(f"not UTF-8 at byte {error.start + 1} of the row; {remedy}") from error


def python_list(text: str) -> object:
    """A list as Python writes one of texts and numbers; None if the text is none. Nothing in it is evaluated.

    Examples
    --------
    >>> python_list("['Ann', 'Bob']"), python_list("[open('x')]")
    (['Ann', 'Bob'], None)
    """
    if len(text) > _LONGEST_LIST:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of backslashes that escape nothing
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def index_csv(file: BinaryIO, read: Reader, unchanged: Unchanged, delimiter: str = "") -> LineTable:
    """The rows of a CSV file whose first record names the columns; all values are texts, as written.

    A quoted field may hold delimiters, doubled quotes and line breaks. An empty field is no value, a row of them is
    passed over. Without a delimiter, the first rows say which it is.
    """
    with file:
        notes: tuple[str, ...] = ()
        if not delimiter and (delimiter := _guess_delimiter(file)) != ",":
            notes = (f"fields are separated by {_DELIMITERS[delimiter]}",)
        records = _records(file, delimiter)
        header = next(records, None)
        if header is None:
            raise ValueError("the file is empty; its first line must name the columns")
        columns = [name.strip() for name in header[0]]
        table = LineTable(
            read, unchanged, partial(_csv_record, columns, delimiter), texts_only=True, notes=notes
        )
        for number, (fields, start, end, line) in enumerate(records, 1):
            if any(map(str.strip, fields[len(columns) :])):
                raise ValueError(
                    f"row {number} (line {line}) has {len(fields)} fields, the header has {len(columns)}; "
                    "quote fields that hold delimiters"
                )
            if any(map(str.strip, fields)):
                table.add(start, end, line)
    return table


def _guess_delimiter(file: BinaryIO) -> str:
    """What separates the fields: a comma unless the header and the row below agree on another."""
    head = file.read(_HEAD_BYTES).removeprefix(_BOM).decode(errors="replace")
    file.seek(0)
    for delimiter in _DELIMITERS:
        rows = csv.reader(io.StringIO(head, newline="\n"), delimiter=delimiter)
        try:
            counts = [len(row) for row in islice(filter(None, rows), 2)]
        except csv.Error:  # a field of this size is none
            continue
        if min(counts, default=1) > 1 and len(set(counts)) == 1:
            return delimiter
    return ","


def _records(file: BinaryIO, delimiter: str) -> Iterator[tuple[list[str], int, int, int]]:
    """Fields of each record that is not blank, the places it begins and ends at, and its first line."""
    offset = line = first = 0

    def texts() -> Iterator[str]:
        nonlocal offset, line
        for start, data in _lines(file):
            offset, line = start + len(data), line + 1
            if offset - begin > MOST_ROW_BYTES:
                raise ValueError(
                    f"the row on line {first} has more than {MOST_ROW_BYTES >> 20} MiB; is a quote open?"
                )
            yield _decode(data)

    begin = 0
    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        begin, first = offset, line + 1
        try:
            fields = next(reader, None)
        except (csv.Error, ValueError) as error:
            raise ValueError(f"the row on line {first}: {error}") from error
        if fields is None:
            return
        if fields:
            yield fields, begin, offset, first


def _csv_record(columns: list[str], delimiter: str, data: bytes) -> Row:
    # newline="\n": the line ends inside of quotes stay as they are
    lines = io.StringIO(_decode(data.removeprefix(_BOM)), newline="\n")
    try:
        fields = next(csv.reader(lines, delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration) as error:
        raise ValueError(f"no CSV record ({error})") from error
    return unambiguous(islice(zip_longest(columns, (field or None for field in fields)), len(columns)))


class ParquetTable:
    """Rows of a Parquet file, kept in memory as columns."""

    texts_only = False
    notes: tuple[str, ...] = ()

    def __init__(self, file: BinaryIO, unchanged: Unchanged) -> None:
        with file:
            self._columns, self._rows = _parquet_columns(file)
        self.unchanged = unchanged

    def __len__(self) -> int:
        return self._rows

    def row(self, index: int) -> Row:
        """See `files.Table`."""
        return {
            name: column if isinstance(column, Ambiguous) else _python_value(column[index])
            for name, column in self._columns.items()
        }

    def line(self, index: int) -> int | None:  # noqa: ARG002 - a format without lines
        """See `files.Table`."""
        return None


def _python_value(scalar: Any) -> object:  # noqa: ANN401 - pyarrow, which may not be there
    """The value of a scalar; its text where Python has no such type, as for times by the nanosecond."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return str(scalar)


def _parquet_columns(file: BinaryIO) -> tuple[dict[str, Any], int]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ValueError(
            "Parquet files need the package pyarrow; install it with: pip install 'evalcube[parquet]'"
        ) from error
    try:
        parquet = pq.ParquetFile(file)
        batches, size = [], 0
        # Counted while unpacking: what the file says of its size is no promise, and one text may stand in all rows.
        for batch in parquet.iter_batches(_BATCH_ROWS):
            batches.append(batch)
            size += batch.nbytes
            if size > MOST_PARQUET_BYTES:
                raise ValueError(
                    f"the file unpacks to more than {MOST_PARQUET_BYTES >> 30} GiB; drop columns, or write it as JSONL"
                )
        table = pa.Table.from_batches(batches, parquet.schema_arrow)
        columns = zip(table.schema, (column.combine_chunks() for column in table.columns), strict=True)
        return unambiguous((field.name, _shortest(column, field.type)) for field, column in columns), len(
            table
        )
    except (pa.ArrowException, KeyError, OSError) as error:
        raise ValueError(f"no readable Parquet file ({error}); write it again") from error


def _shortest(column: Any, kind: Any) -> Any:  # noqa: ANN401 - pyarrow, which may not be there
    """A column whose numbers of 32 bits are the shortest decimals that they stand for: 0.1, not 0.10000000149."""
    import pyarrow as pa

    text = _retype(kind, pa.string())
    return column if text == kind else column.cast(text).cast(_retype(kind, pa.float64()))


def _retype(kind: Any, leaf: Any) -> Any:  # noqa: ANN401 - types of pyarrow, which may not be there
    """A type of Arrow with another one in the place of numbers of 32 bits."""
    import pyarrow as pa

    if pa.types.is_float32(kind):
        return leaf
    if pa.types.is_list(kind):
        return pa.list_(_retype(kind.value_type, leaf))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_retype(field.type, leaf)) for field in kind])
    return kind
