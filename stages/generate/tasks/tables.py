"""Task `tables`: a question about some rows of a table."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import shake_128
from itertools import repeat
from math import log10
from operator import ge, gt, le, lt
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.numbers import NUMBERS as NUMBER_FORM
from evalcube.stages.generate.answers.numbers import plain_decimal, plain_numbers
from evalcube.stages.generate.answers.values import AnyOf, PatternForm, read_value
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import COLUMNS
from evalcube.stages.generate.stream import Stream

NUMBERS = tuple(COLUMNS["numbers"].split())
"""Names of columns of whole numbers."""
TEXTS: dict[str, list[str]] = {name: text.split() for name, text in COLUMNS["texts"].items()}
"""Names of columns of words -> the words."""

Column = tuple[str, list[str]]
"""Name and cells from top to bottom."""

BYTES_PER_TOKEN = {"markdown": 2.1, "csv": 1.7, "json": 2.3}
"""Bytes of a table to a token, between what tokenizers do that take digits in threes (o200k_base and cl100k_base:
2.3, 1.9, 2.4) and one by one (SmolLM2's: 1.7, 1.35, 2.1); means over 216 tables of 20 to 400 rows."""
_POWERS = (1, 10, 100, 1000)
_TOKENS_AROUND, _TOKENS_PER_CONDITION = 45, 8
"""Tokens of a prompt around the table, measured likewise."""


def markdown(columns: list[Column]) -> str:
    """A table with bars between the cells."""
    head = f"| {' | '.join([name for name, _ in columns])} |\n|{' --- |' * len(columns)}\n| "
    return head + " |\n| ".join(map(" | ".join, _rows(columns))) + " |"


def csv(columns: list[Column]) -> str:
    """Values with commas between them, the names in the first line; no value needs quotes."""
    return "\n".join([",".join([name for name, _ in columns]), *map(",".join, _rows(columns))])


def json(columns: list[Column]) -> str:
    """An array with one object per row and line."""
    pieces: list[Iterable[str]] = []
    before = "  {"
    for name, values in columns:
        quote = "" if name in NUMBERS else '"'
        pieces += [repeat(f'{before}"{name}": {quote}'), values]
        before = f"{quote}, "
    pieces.append(repeat(before.replace(", ", "}")))
    # `repeat` never ends, so the columns decide where the rows do
    return "[\n" + ",\n".join(map("".join, zip(*pieces, strict=False))) + "\n]"


WRITERS: dict[str, Callable[[list[Column]], str]] = {"markdown": markdown, "csv": csv, "json": json}
"""Format -> writer of a table."""


def _rows(columns: list[Column]) -> Iterable[tuple[str, ...]]:
    return zip(*[values for _, values in columns], strict=True)


def rows_for(tokens: int, form: str, columns: int, max_value: int, conditions: int) -> int:
    """Rows that make a prompt of about `tokens` tokens; may be 0 or negative. See `tokens_for`."""
    space = tokens - _TOKENS_AROUND - _TOKENS_PER_CONDITION * conditions
    return round(space * BYTES_PER_TOKEN[form] / _row_bytes(form, columns, max_value))


def tokens_for(rows: int, form: str, columns: int, max_value: int, conditions: int) -> int:
    """Tokens of a prompt about a table of `rows` rows, by the expected bytes of a row.

    The true number is 0.75 to 1.3 times that where a tokenizer takes digits in threes, 1 to 1.7 times where it takes
    them one by one.
    """
    table = rows * _row_bytes(form, columns, max_value) / BYTES_PER_TOKEN[form]
    return round(table) + _TOKENS_AROUND + _TOKENS_PER_CONDITION * conditions


def _row_bytes(form: str, columns: int, max_value: int) -> float:
    """Expected bytes of a row, its line end included."""
    texts = (columns - 1) // 2
    numbers = columns - 1 - texts
    word = _mean_length([word for words in TEXTS.values() for word in words])
    cells = 4 + texts * word + numbers * _mean_digits(max_value)
    if form == "csv":
        return cells + columns
    if form == "markdown":
        return cells + 3 * columns + 2
    names = 2 + texts * _mean_length(list(TEXTS)) + numbers * _mean_length(list(NUMBERS))
    return cells + names + 6 * columns + 4 + 2 * (texts + 1)


def _mean_length(words: list[str]) -> float:
    return sum(map(len, words)) / len(words)


def _mean_digits(largest: int) -> float:
    """Mean length of the decimal numbers from 0 to `largest`."""
    digits = sum(
        len(str(power)) * (min(10 * power, largest + 1) - power) for power in _POWERS if power <= largest
    )
    return (1 + digits) / (largest + 1)


MOST_ROWS = 1000
_IDS = tuple(f"{letter}{number}" for letter in "ABCDEFGHJKLMNPQRSTUVWXYZ" for number in range(100, 1000))
_DIGITS = tuple(map(str, range(10_000)))
_DRAW_BITS = 16
"""Two bytes for a cell: numbers up to 99 are equally frequent within 0.2%, those up to 9999 within a sixth."""
_HOLDS = 2 / 3
"""Share of the rows, about, for which a condition holds."""

_SAY = wordings("tables")

_WORDS = {word.lower(): word for words in TEXTS.values() for word in words}
_NAME = re.compile(rf"(?<![\w.])(?:(?P<id>[A-Z][0-9]{{3}})|{'|'.join(_WORDS)})(?!\w)", re.IGNORECASE)


class TablesParams(TaskParams):
    """Params of `Tables`."""

    columns: int = param(4, 2, 12, "Columns, the id included; more values to tell apart in each row.")
    max_value: int = param(99, 9, 9999, "Largest number in the table; longer calculations.")
    format: Literal["markdown", "csv", "json"] = Field("markdown", description="How the table is written.")
    operation: Literal["count", "sum", "min", "max", "mean", "top", "lookup"] = Field(
        "sum", description="What is asked; a lookup finds one value."
    )
    conditions: int = param(
        1,
        0,
        4,
        "Conditions that a row must all meet; more to check, but fewer rows to calculate with. "
        "A lookup ignores this.",
    )
    target_tokens: int = param(
        0, 0, 32_000, "Estimated length of the prompt in tokens; sets `rows`, so give only one."
    )
    rows: int = param(12, 4, MOST_ROWS, "Rows of the table; more to go through.")

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the caller passes
        # one cell has one set of params, so that a lookup brings its conditions and a target its rows
        if not isinstance(data, dict):
            return data
        if data.get("operation") == "lookup":
            data = {"conditions": 0, **data}
        rows = _target_rows({name: data.get(name, cls.model_fields[name].default) for name in _TARGET})
        return {"rows": rows, **data} if rows and 4 <= rows <= MOST_ROWS else data

    @field_validator("conditions")
    @classmethod
    def _none_in_lookup(cls, value: int, info: ValidationInfo) -> int:
        if value and info.data.get("operation") == "lookup":
            raise ValueError("must be 0 for operation lookup, which names its row; leave it out")
        return value

    @field_validator("target_tokens")
    @classmethod
    def _reachable(cls, value: int, info: ValidationInfo) -> int:
        rows = _target_rows({**info.data, "target_tokens": value})
        if rows is not None and not 4 <= rows <= MOST_ROWS:
            settings = [info.data[name] for name in _TARGET[1:]]
            low, high = tokens_for(4, *settings), tokens_for(MOST_ROWS, *settings)
            raise ValueError(
                f"must be from {low} to {high} for these columns in this format (4 to {MOST_ROWS} rows), or 0"
            )
        return value

    @field_validator("rows")
    @classmethod
    def _agrees_with_target(cls, value: int, info: ValidationInfo) -> int:
        rows = _target_rows(info.data)
        if rows is not None and value != rows:
            raise ValueError(f"must be {rows} for target_tokens {info.data['target_tokens']}; leave it out")
        return value


_TARGET = ("target_tokens", "format", "columns", "max_value", "conditions")


def _target_rows(values: Mapping[str, Any]) -> int | None:
    """Rows for the target among some params; None if there is none, or if a value is not valid."""
    try:
        tokens, *settings = [values[name] for name in _TARGET]
        return rows_for(tokens, *settings) if tokens else None
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return None  # the fields' own rules report what is wrong


class Tables(Task[TablesParams]):
    """Filter the rows of a table and aggregate one column of those left."""

    name = "tables"
    version = 2
    summary = "filter and aggregate over a table"
    guess_rule = "0"
    Params = TablesParams

    def generate(self, params: TablesParams, stream: Stream) -> Trial:
        """Fill a table, take conditions that one of its rows meets, and work out the question."""
        columns = _columns(params.rows, params.columns, params.max_value, stream)
        ids = columns[0][1]
        numeric = [column for column in columns[1:] if column[0] in NUMBERS]
        anchor = stream.below(params.rows)
        if params.operation == "lookup":
            name, values = stream.choice(columns[1:])
            answer = values[anchor]
            rows = ""
        else:
            conditions, matching = _filter(columns[1:], params.conditions, anchor, stream)
            rows = f"the rows where {' and '.join(conditions)}" if conditions else "all rows of the table"
            name, values = stream.choice(numeric)
            answer = _aggregate(params.operation, matching, values, ids)
        question = stream.choice(_SAY.questions[params.operation]).format(c=name, rows=rows, id=ids[anchor])
        form = {"lookup": "value", "top": "id"}.get(params.operation, "number")
        closing = stream.choice(_SAY.closings).format(form=form)
        table = WRITERS[params.format](columns)
        prompt = (
            f"{stream.choice(_SAY.openings)} {_SAY.shapes[params.format]}\n\n{table}\n\n{question} {closing}"
        )
        return Trial(prompt, answer)

    def parse(self, text: str) -> str | None:
        """Read a number, an id or a word of the tables; numbers come without separators and final zeros."""
        return read_value(plain_numbers(text), _VALUES)

    def difficulty(self, params: TablesParams) -> float:
        """Per row, the operation where the row is left, the checks that decide, and a little for each column.

        A check decides where all others hold: who errs in another still leaves the row out. The largest or smallest
        value is one however few rows are left, and few errors change which.
        """
        weight = {"lookup": 0.25, "count": 0.7, "min": 0.4, "max": 0.4, "top": 0.5, "sum": 2.0, "mean": 2.5}
        work = weight[params.operation] * (1 + 0.25 * log10(params.max_value))
        checks = 0.75 * params.conditions * _HOLDS ** (params.conditions - 1)
        if params.operation in ("min", "max", "top"):
            checks /= 4
        else:
            work *= _HOLDS**params.conditions
        return params.rows * (work + checks + 0.1 * params.columns)


def _columns(rows: int, count: int, max_value: int, stream: Stream) -> list[Column]:
    """The id, then text and number columns in any order; about half are numbers, at least one."""
    texts = (count - 1) // 2
    names = stream.sample(_TEXT_NAMES, texts) + stream.sample(NUMBERS, count - 1 - texts)
    stream.shuffle(names)
    draws = _draws(rows * count, stream)
    ids = dict.fromkeys([_IDS[draw * len(_IDS) >> _DRAW_BITS] for draw in draws[:rows]])
    while len(ids) < rows:
        ids[stream.choice(_IDS)] = None
    columns: list[Column] = [("id", list(ids))]
    for i, name in enumerate(names, 1):
        if name in TEXTS:
            values: Sequence[str] = stream.sample(TEXTS[name], stream.between(3, 5))
            size = len(values)
        else:
            values, size = _DIGITS, max_value + 1
        cells = [values[draw * size >> _DRAW_BITS] for draw in draws[i * rows : (i + 1) * rows]]
        columns.append((name, cells))
    return columns


def _draws(count: int, stream: Stream) -> tuple[int, ...]:
    """`count` random numbers of `_DRAW_BITS` bits; a table takes too many to draw them one by one."""
    seed = stream.below(1 << 53).to_bytes(7, "little")
    return struct.unpack(f"<{count}H", shake_128(seed).digest(2 * count))


def _filter(columns: list[Column], count: int, anchor: int, stream: Stream) -> tuple[list[str], list[int]]:
    """Conditions in words, spread over the columns, and the rows that meet them; `anchor` is one of them."""
    conditions, matching = [], list(range(len(columns[0][1])))
    order = stream.sample(columns, len(columns))
    for turn in range(count):
        name, values = order[turn % len(order)]
        words, matching = _condition(name, values, anchor, matching, stream)
        conditions.append(words)
    return conditions, matching


def _condition(
    name: str, values: list[str], anchor: int, matching: list[int], stream: Stream
) -> tuple[str, list[int]]:
    own, drawn = values[anchor], stream.choice(values)
    if name in TEXTS:
        if drawn == own:
            return f"{name} is {own}", [row for row in matching if values[row] == own]
        return f"{name} is not {drawn}", [row for row in matching if values[row] != drawn]
    limit = int(drawn)
    pair = ("at least", "at most") if drawn == own else _BELOW if int(own) < limit else _ABOVE
    word = pair[stream.below(2)]
    holds = _COMPARE[word]
    return f"{name} is {word} {drawn}", [row for row in matching if holds(int(values[row]), limit)]


_TEXT_NAMES = tuple(TEXTS)
_BELOW, _ABOVE = ("less than", "at most"), ("more than", "at least")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "less than": lt,
    "at most": le,
    "more than": gt,
    "at least": ge,
}


def _aggregate(operation: str, matching: list[int], values: list[str], ids: list[str]) -> str:
    if operation == "count":
        return str(len(matching))
    numbers = [int(values[row]) for row in matching]
    if operation == "top":
        return ids[matching[numbers.index(max(numbers))]]
    if operation == "mean":
        # exact: no float comes near a tie
        hundredths = (200 * sum(numbers) + len(numbers)) // (2 * len(numbers))
        return plain_decimal(f"{hundredths // 100}.{hundredths % 100:02d}", negative=False)
    if operation == "sum":
        return str(sum(numbers))
    return str(min(numbers) if operation == "min" else max(numbers))


def _name(match: re.Match[str]) -> Mention:
    return Mention(*match.span(), match[0].upper() if match["id"] else _WORDS.get(match[0].lower(), match[0]))


_VALUES = AnyOf(NUMBER_FORM, PatternForm(_NAME, _name))
