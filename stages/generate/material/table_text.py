"""Tables in Markdown, CSV or JSON for the task `tables`, and how many rows make a prompt of a given length."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat

NUMBERS = tuple("age height length orders points price score speed stock visits weight width".split())
"""Names of columns of whole numbers."""
TEXTS = {
    "city": "Bergen Cairo Lima Madrid Nairobi Osaka Quito Toronto".split(),
    "color": "black blue brown green orange purple red yellow".split(),
    "fruit": "apple banana cherry grape lemon mango papaya plum".split(),
    "animal": "badger camel dolphin falcon otter panda rabbit tiger".split(),
    "metal": "aluminium copper gold iron nickel silver tin zinc".split(),
    "weekday": "Friday Monday Saturday Sunday Thursday Tuesday Wednesday".split(),
}
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
