"""Size, format and operation in, a table and a question about some of its rows out."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from math import log10
from typing import ClassVar, Literal

from pydantic import Field

from stages.generate.answers import explicit_answers, normalised
from stages.generate.base import Task, TaskParams, Trial
from stages.generate.stream import Stream

NUMBERS = tuple("age height length orders points price score speed stock visits weight width".split())
TEXTS = {
    "city": "Bergen Cairo Lima Madrid Nairobi Osaka Quito Toronto".split(),
    "color": "black blue brown green orange purple red yellow".split(),
    "fruit": "apple banana cherry grape lemon mango papaya plum".split(),
    "animal": "badger camel dolphin falcon otter panda rabbit tiger".split(),
    "metal": "aluminium copper gold iron nickel silver tin zinc".split(),
    "weekday": "Friday Monday Saturday Sunday Thursday Tuesday Wednesday".split(),
}
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"

_OPENINGS = (
    "Here is a table.",
    "Look at this table.",
    "The following table is given.",
    "A table of records:",
)
_SHAPES = {
    "markdown": "It is written in Markdown.",
    "csv": "It is written as CSV, with the names of the columns in the first line.",
    "json": "It is written as JSON, one object per row.",
}
_QUESTIONS = {
    "count": ("Count {rows}.", "What is the number of {rows}?"),
    "sum": ("What is the sum of {c} over {rows}?", "Add up {c} over {rows}."),
    "min": ("What is the smallest {c} among {rows}?", "Find the minimum of {c} over {rows}."),
    "max": ("What is the largest {c} among {rows}?", "Find the maximum of {c} over {rows}."),
    "mean": (
        "What is the mean of {c} over {rows}, rounded to two decimals (halves up)?",
        "Compute the mean of {c} over {rows} and round it to two decimals (halves up).",
    ),
    "top": (
        "Which id has the largest {c} among {rows}? If several have it, take the one nearest the top.",
        "Take the largest {c} among {rows} and give the id of its row, the first one if there are several.",
    ),
    "lookup": ("What is the {c} of the row with id {id}?", "Look up the {c} in the row with id {id}."),
}
_CLOSINGS = (
    "End with a last line of the form\nAnswer: <{form}>",
    "Finish with one line that reads\nAnswer: <{form}>",
    "Give it on a last line of its own:\nAnswer: <{form}>",
)

_WORDS = {word.lower(): word for words in TEXTS.values() for word in words}
_VALUE = re.compile(
    r"(?<![\w.])(?<![0-9],)(?:(?P<id>[A-Z][0-9]{3})"
    r"|(?P<number>-?(?:[0-9]++(?:,[0-9]{3}(?![0-9]))*+(?:\.[0-9]++)?+|\.[0-9]++))"
    rf"|(?P<word>{'|'.join(_WORDS)}))(?!\w)",
    re.IGNORECASE,
)
_CALCULATION = re.compile(r"[\s*`$)]{0,6}(?:[-+*/×·÷^=≈]|\\times|\\approx|plus\b|minus\b)\s{0,3}[-$(0-9]")
_OR = re.compile(r"[\s*`$\"',]{0,6}or\b[\s*`$\"']{0,6}", re.IGNORECASE)
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*")

_Column = tuple[str, list[int] | list[str]]


class TablesParams(TaskParams):
    """Params of `Tables`."""

    rows: int = Field(12, ge=4, le=500, description="Rows of the table; more to go through.")
    columns: int = Field(
        4, ge=2, le=12, description="Columns, the id included; more values to tell apart in each row."
    )
    conditions: int = Field(
        1,
        ge=0,
        le=4,
        description="Conditions on the rows, all to hold; each is a check per row (not in lookup).",
    )
    max_value: int = Field(99, ge=9, le=9999, description="Largest number in the table; longer calculations.")
    format: Literal["markdown", "csv", "json"] = Field("markdown", description="How the table is written.")
    operation: Literal["count", "sum", "min", "max", "mean", "top", "lookup"] = Field(
        "sum", description="What is asked; sums and means take a calculation, a lookup only finds one value."
    )


class Tables(Task):
    """Filter the rows of a table and aggregate one column of those left."""

    name: ClassVar[str] = "tables"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "filter and aggregate over a table"
    guess_rule: ClassVar[str] = "0: a value to be written in"
    Params: ClassVar[type[TaskParams]] = TablesParams

    def generate(self, params: TaskParams, stream: Stream) -> Trial:
        """Fill a table, take conditions that one of its rows meets, and work out the question."""
        p = TablesParams.of(params)
        columns = _columns(p, stream)
        ids = columns[0][1]
        numeric = [column for column in columns[1:] if column[0] in NUMBERS]
        anchor = stream.below(p.rows)
        if p.operation == "lookup":
            name, values = stream.choice(columns[1:])
            answer = str(values[anchor])
            rows = ""
        else:
            conditions, kept = _filter(columns[1:], p.conditions, anchor, stream)
            rows = f"the rows where {' and '.join(conditions)}" if conditions else "all rows of the table"
            name, values = stream.choice(numeric)
            answer = _aggregate(p.operation, kept, values, ids)
        question = stream.choice(_QUESTIONS[p.operation]).format(c=name, rows=rows, id=ids[anchor])
        form = {"lookup": "value", "top": "id"}.get(p.operation, "number")
        closing = stream.choice(_CLOSINGS).format(form=form)
        table = _WRITERS[p.format](columns)
        prompt = f"{stream.choice(_OPENINGS)} {_SHAPES[p.format]}\n\n{table}\n\n{question} {closing}"
        return Trial(prompt, answer)

    def parse(self, text: str) -> str | None:
        """Read a number, an id or a word of the tables; numbers come without separators and final zeros."""
        for segment in explicit_answers(text):
            matches = list(_VALUE.finditer(segment))
            if not matches:
                continue
            first = matches[0]
            if len(matches) > 1 and _OR.fullmatch(segment, first.end(), matches[1].start()):
                return None
            if first.start() == 0 and not _CALCULATION.match(segment, first.end()):
                return _canonical(first)
            inside = [match for match in matches if "(" not in segment[first.end() : match.start()]]
            return _canonical(inside[-1])
        text = normalised(text)
        for bold in reversed(deque(_BOLD.finditer(text), maxlen=20)):
            match = _VALUE.fullmatch(bold[1].strip(" .!"))
            if match:
                return _canonical(match)
        last = deque(_VALUE.finditer(text), maxlen=1)
        return _canonical(last[0]) if last else None

    def difficulty(self, params: TaskParams) -> float:
        """Per row, one step for the operation, half a step per condition and a little for each column."""
        p = TablesParams.of(params)
        weight = {
            "lookup": 0.25,
            "count": 0.75,
            "min": 0.75,
            "max": 0.75,
            "top": 1.0,
            "sum": 2.0,
            "mean": 2.5,
        }
        digits = 1 + 0.25 * log10(p.max_value)
        return p.rows * (weight[p.operation] * digits + 0.5 * p.conditions + 0.1 * p.columns)


def _columns(p: TablesParams, stream: Stream) -> list[_Column]:
    """The id, then text and number columns in any order; about half are numbers, at least one."""
    texts = (p.columns - 1) // 2
    names = stream.sample(tuple(TEXTS), texts) + stream.sample(NUMBERS, p.columns - 1 - texts)
    stream.shuffle(names)
    below = stream.below
    numbers: dict[int, None] = {}
    while len(numbers) < p.rows:
        numbers[100 + below(900)] = None
    columns: list[_Column] = [("id", [f"{_LETTERS[below(24)]}{number}" for number in numbers])]
    size = p.max_value + 1
    for name in names:
        if name in TEXTS:
            words = stream.sample(TEXTS[name], stream.between(3, 5))
            kinds = len(words)
            columns.append((name, [words[below(kinds)] for _ in range(p.rows)]))
        else:
            columns.append((name, [below(size) for _ in range(p.rows)]))
    return columns


def _filter(columns: list[_Column], count: int, anchor: int, stream: Stream) -> tuple[list[str], list[int]]:
    """Conditions in words, spread over the columns, and the rows that meet them; `anchor` is one of them."""
    conditions, kept = [], list(range(len(columns[0][1])))
    order = stream.sample(columns, len(columns))
    for turn in range(count):
        name, values = order[turn % len(order)]
        words, kept = _condition(name, values, anchor, kept, stream)
        conditions.append(words)
    return conditions, kept


def _condition(
    name: str, values: list[int] | list[str], anchor: int, kept: list[int], stream: Stream
) -> tuple[str, list[int]]:
    own, other = values[anchor], stream.choice(values)
    if isinstance(own, int) and isinstance(other, int):
        if other == own:
            word = "at least" if stream.below(2) else "at most"
        else:
            word = (
                ("less than", "at most")[stream.below(2)]
                if own < other
                else ("more than", "at least")[stream.below(2)]
            )
        return f"{name} is {word} {other}", [row for row in kept if _COMPARE[word](int(values[row]), other)]
    if other == own:
        return f"{name} is {own}", [row for row in kept if values[row] == own]
    return f"{name} is not {other}", [row for row in kept if values[row] != other]


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "less than": int.__lt__,
    "at most": int.__le__,
    "more than": int.__gt__,
    "at least": int.__ge__,
}


def _aggregate(
    operation: str, kept: list[int], values: list[int] | list[str], ids: list[int] | list[str]
) -> str:
    if operation == "count":
        return str(len(kept))
    numbers = [int(values[row]) for row in kept]
    if operation == "top":
        return str(ids[kept[numbers.index(max(numbers))]])
    if operation == "mean":
        # exact: no float comes near a tie
        hundredths = (200 * sum(numbers) + len(numbers)) // (2 * len(numbers))
        return _trimmed(f"{hundredths // 100}.{hundredths % 100:02d}")
    if operation == "sum":
        return str(sum(numbers))
    return str(min(numbers) if operation == "min" else max(numbers))


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def _canonical(match: re.Match[str]) -> str:
    if match["id"]:
        return match["id"].upper()
    if match["word"]:
        return _WORDS.get(match["word"].lower(), match["word"])
    digits = match["number"].replace(",", "")
    number = _trimmed(digits.lstrip("-").lstrip("0"))
    number = f"0{number}" if number[:1] in ("", ".") else number
    return f"-{number}" if digits[0] == "-" and number != "0" else number


def _markdown(columns: list[_Column]) -> str:
    head = f"| {' | '.join([name for name, _ in columns])} |\n|{' --- |' * len(columns)}\n"
    line = f"| {' | '.join(['%s'] * len(columns))} |"
    return head + "\n".join([line % row for row in zip(*[values for _, values in columns], strict=True)])


def _csv(columns: list[_Column]) -> str:
    head = ",".join([name for name, _ in columns]) + "\n"
    line = ",".join(["%s"] * len(columns))
    return head + "\n".join([line % row for row in zip(*[values for _, values in columns], strict=True)])


def _json(columns: list[_Column]) -> str:
    fields = [
        json.dumps(name) + (": %s" if isinstance(values[0], int) else ': "%s"') for name, values in columns
    ]
    line = "  {" + ", ".join(fields) + "}"
    rows = [line % row for row in zip(*[values for _, values in columns], strict=True)]
    return "[\n" + ",\n".join(rows) + "\n]"


_WRITERS: dict[str, Callable[[list[_Column]], str]] = {"markdown": _markdown, "csv": _csv, "json": _json}
