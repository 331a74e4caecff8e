"""The task `dataset`, which asks the questions of a user's file."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import isqrt
from pathlib import Path
from typing import ClassVar

from evalcube.stages.generate.base import Cell, Task, TaskParams, Trial
from evalcube.stages.generate.dataset.books import Book, Library, RowView
from evalcube.stages.generate.dataset.fewshot import Examples, source_named
from evalcube.stages.generate.dataset.files import format_of
from evalcube.stages.generate.dataset.hub.fetch import locate
from evalcube.stages.generate.dataset.kept import kept_version
from evalcube.stages.generate.dataset.matching import context_of, load_grader, verdict_of
from evalcube.stages.generate.dataset.params import DatasetParams
from evalcube.stages.generate.dataset.rows import Item, draw_digest, labels
from evalcube.stages.generate.dataset.tables import Row
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.stream import Stream

_ROUNDS = 5
"""Pairs of rounds; each hides one half of the place behind a hash of the other."""
_MASK = (1 << 64) - 1


class Permutation:
    """A pseudo-random permutation of ``range(size)``, computed place by place.

    A Feistel network over a grid of two digits that is hardly larger than `size`; places outside are walked
    through until one is inside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002,
    doi:10.1007/3-540-45760-7_9, cycle walking on a generalised Feistel network).

    Parameters
    ----------
    key
        Whatever names the permutation.
    size
        Number of places, at least 1.

    Examples
    --------
    >>> shuffle = Permutation(b"key", 5)
    >>> sorted(shuffle[i] for i in range(5))
    [0, 1, 2, 3, 4]
    """

    __slots__ = ("_high", "_keys", "_low", "size")

    def __init__(self, key: bytes, size: int) -> None:
        self.size = size
        self._low = isqrt(max(size - 1, 0)) + 1
        self._high = -(-size // self._low)
        material = hashlib.shake_256(key).digest(16 * _ROUNDS)
        self._keys = [int.from_bytes(material[i : i + 8], "big") for i in range(0, len(material), 8)]

    def __getitem__(self, place: int) -> int:
        """What comes at `place`, which must be in ``range(size)``."""
        if not 0 <= place < self.size:
            raise IndexError(f"place {place} of {self.size}")
        position = self._once(place)
        while position >= self.size:
            position = self._once(position)
        return position

    def _once(self, place: int) -> int:
        high, low = divmod(place, self._low)
        for turn in range(0, 2 * _ROUNDS, 2):
            high = (high + _mix(low ^ self._keys[turn])) % self._high
            low = (low + _mix(high ^ self._keys[turn + 1])) % self._low
        return high * self._low + low


def _mix(value: int) -> int:
    """64 well-mixed bits (the finaliser of SplitMix64)."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


_LISTED = 40
"""Columns that a message lists."""


def check_rows(book: Book, params: DatasetParams) -> None:
    """Read every row that `params` select, as a sweep would."""
    for path, _ in params.where:
        _check_column("where", path, book)
    view = book.view(params)
    if not view.rows:
        wanted = ", ".join(f"{path}: {' or '.join(map(str, values))}" for path, values in params.where)
        raise TaskError(
            f"no row of {book.source.path} has {wanted}; correct `where`", field="where", value=wanted
        )
    for param, path in view.reader.fields:
        _check_column(param, path, book)
    _check_items(view)


def _check_column(param: str, path: str, book: Book) -> None:
    """Refuse a field whose column stands in no row."""
    if book.has_column(path):
        return
    columns = book.columns()
    near = difflib.get_close_matches(path, columns, n=1)
    listed = ", ".join(columns[:_LISTED]) + (", ..." if len(columns) > _LISTED else "")
    hint = f"Did you mean '{near[0]}'? " if near else ""
    raise TaskError(
        f"{param} names the unknown column '{path}'. {hint}Columns: {listed}", field=param, value=path
    )


def _check_items(view: RowView) -> None:
    first: TaskError | None = None
    problems = guesses = 0
    from_zero = False
    for position in range(len(view.rows)):
        try:
            item = view.item(position)
        except TaskError as error:
            first = first or error
            problems += 1
            continue
        guesses += item.by_place is not None
        from_zero = from_zero or item.by_place == 0
    if first is not None:
        further = problems - 1
        more = f" ({further} other row{'s have' if further > 1 else ' has'} problems, too)" if further else ""
        raise TaskError(f"{first.message}{more}", field=first.field, value=first.value)
    if guesses and not from_zero:
        raise TaskError(
            f"the answers in field '{view.reader.params.answer}' are numbers and none is 0, so that it is not sure "
            "whether they count from 0; say answer_is: index (from 0) or number (from 1)",
            field="answer_is",
            value="auto",
        )


__all__ = ["Dataset", "DatasetParams", "column_of", "rows_of"]

EXAMPLE = Path(__file__).with_name("example.jsonl")
"""A small file to show the task with; a path, as the params name it."""

_RIGHT, _WRONG = "right", "wrong"
"""What is read where a grader of the user's decides."""
_CLOSING = "End with a last line of the form\nAnswer: <{}>"


class Dataset(Task[DatasetParams]):
    """Ask the questions of a JSONL, CSV or Parquet file.

    A cell has as many trials as rows are selected, and gives each of them once, in an order that the seed and what
    each row asks decide. The file itself is no part of a cell's identity, its SHA-256 is.
    """

    name: ClassVar[str] = "dataset"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "the questions of a JSONL, CSV or Parquet file"
    guess_rule: ClassVar[str] = "1/options where options are given, else 0"
    Params: ClassVar[type[TaskParams]] = DatasetParams

    def __init__(self) -> None:
        self._library = Library()

    def example(self) -> TaskParams:
        """A bundled file of word problems."""
        return self.resolve(
            DatasetParams(file=str(EXAMPLE), prompt="question", options="options", answer_is="text")
        )

    def resolve(self, params: DatasetParams) -> TaskParams:
        """Read the file, check every selected row, and return the params with format, digest and rows filled in."""
        if params.imported:
            raise TaskError(
                "questions that another tool asked come with its replies: `evalcube import` makes such cells, and no "
                "sweep can ask them; remove it",
                field="imported",
                value=params.imported,
            )
        if params.grader:
            load_grader(params.grader)
        if params.match == "math":
            from evalcube.stages.generate.foreign.maths import require_math

            require_math()
        resolved = source_named(self._with_digest(params))
        resolved = resolved.redrawn().model_copy(update={"rows": 0})
        shots = resolved.fewshot
        if shots and shots.source.file:
            examples = self._with_digest(resolved.of_examples())
            named = {"file": examples.file, "format": examples.format, "sha256": examples.sha256}
            source = shots.source.model_copy(update=named)
            resolved = resolved.model_copy(update={"fewshot": shots.model_copy(update={"source": source})})
        book = self._library.book(resolved.file, resolved.format, resolved.digest())
        book.check(resolved, lambda: self._check(book, resolved))
        return resolved.model_copy(update={"rows": len(book.view(resolved).rows)})

    def _with_digest(self, params: DatasetParams) -> DatasetParams:
        """The params with format and digest of their file."""
        p = locate(params)
        form = format_of(p.file, p.format)
        sha256 = p.sha256 or kept_version(p.file) or self._library.digest(p.file)
        return p.model_copy(update={"format": form, "sha256": sha256})

    def _check(self, book: Book, params: DatasetParams) -> bool:
        check_rows(book, params)
        if params.fewshot:
            self._examples(params).check(book.view(params))
        return True

    def _examples(self, params: DatasetParams) -> Examples:
        return self._library.examples(params, lambda view: Examples(params, view, _trial))

    def remarks(self, params: DatasetParams) -> Iterator[str]:
        """How the file is read where that had to be guessed, and two rows that ask the same with different answers."""
        view, asked = self._view(params), dict[int, tuple[int, int]]()
        if view.source.table.notes:
            yield f"{view.source.path}: {' and '.join(view.source.table.notes)}"
        if not params.answer or params.imported or params.grader:
            return
        for position, index in enumerate(view.rows):
            item = view.item(position)
            right = item.accepted or (item.options[item.right],)
            # Hashes, as all texts of a file together may be larger than memory.
            answer, key = hash(tuple(sorted(right))), hash((item.whole_question, *sorted(item.options)))
            earlier, other_answer = asked.setdefault(key, (index, answer))
            if other_answer != answer:
                yield (
                    f"{view.source.place(index)}: row {earlier + 1} asks the same and has another answer; one of them "
                    "is graded wrongly whatever a reply says, so correct or remove one"
                )
                return

    def has_reference(self, params: DatasetParams) -> bool:
        """Whether the params name a field with the answer, or a grader."""
        return bool(params.answer or params.grader or params.imported)

    def size(self, params: DatasetParams) -> int | None:
        """Number of selected rows; known without the file when the params are resolved."""
        return params.rows or len(self._view(params).rows)

    def generate(self, params: DatasetParams, stream: Stream) -> Trial:
        """Make the trial of a row that `stream` draws."""
        view = self._view(params)
        return self._trial(params, view, stream.below(len(view.rows)), stream)

    def generate_at(self, params: DatasetParams, index: int, key: bytes, stream: Stream) -> Trial:
        """Make the trial of the row that comes at `index`."""
        view = self._view(params)
        return self._trial(params, view, place_of(params, view, index, key), stream, key)

    def _trial(
        self, params: DatasetParams, view: RowView, place: int, stream: Stream, key: bytes | None = None
    ) -> Trial:
        item = view.item(place)
        if key is not None and params.draws == "row" and item.options:
            stream = Stream(int.from_bytes(draw_digest(key, item.whole_question, item.options), "big"))
        trial = _trial(params, item, stream)
        if item.turns:
            trial = replace(trial, extras={**trial.extras, "turns": list(map(dict, item.turns))})
        return self._examples(params).before(view.row(place), item, trial) if params.fewshot else trial

    def row_id(self, params: DatasetParams, index: int, key: bytes) -> str:
        """The text in the field that `id` names, of the row that comes at `index`; empty without one."""
        if not params.id:
            return ""
        view = self._view(params)
        return view.value(place_of(params, view, index, key), params.id) or ""

    def column(self, params: DatasetParams, name: str, key: bytes) -> list[str | None]:
        """What a column has in the row of each trial; empty without it. Without a name, the numbers of the rows."""
        view = self._view(params)
        places = [place_of(params, view, index, key) for index in range(len(view.rows))]
        if not name:
            return [str(view.rows[position] + 1) for position in places]
        book = self._library.book(params.file, format_of(params.file, params.format), params.digest())
        return [] if not book.has_column(name) else [view.value(position, name) for position in places]

    def parse(self, text: str) -> str | None:
        """Read a text; the other kinds need to know the params."""
        from evalcube.stages.generate.answers.texts import (
            read_text,  # with all readers: who plans reads no reply
        )

        return read_text(text)

    def parse_reply(self, text: str, params: DatasetParams, trial: Trial) -> str | None:
        """Read the answer as the params' kind says; without a reference, it is the whole reply."""
        if params.imported:
            return text.strip() or None
        if params.grader:
            right = verdict_of(params.grader, load_grader(params.grader)(text, context_of(trial)))
            return None if right is None else (_RIGHT if right else _WRONG)
        if not params.answer or params.match == "judge":
            return text.strip() or None
        from evalcube.stages.generate.dataset.kinds import read_answer

        return read_answer(text, params, trial)

    def grade_reply(self, answer: str, params: DatasetParams, trial: Trial) -> bool:
        """Whether the answer is one of those that are accepted; false without a reference.

        Replies that another tool graded are never graded by this: what it said is recorded with them.
        """
        if params.grader and not params.imported:
            return answer == _RIGHT
        if params.imported or not params.answer:
            return False
        from evalcube.stages.generate.dataset.kinds import is_accepted

        return is_accepted(answer, params, trial)

    def difficulty(self, params: DatasetParams) -> float:  # noqa: ARG002
        """1: nothing is known of how hard the rows are."""
        return 1.0

    def _view(self, params: DatasetParams) -> RowView:
        return self._library.view(params)


def column_of(cell: Cell, name: str) -> list[str | None]:
    """What a column of the file has in the row of each trial of a cell; empty if it has none, or asks no file."""
    task, params = cell.task, cell.params
    if isinstance(task, Dataset) and isinstance(params, DatasetParams):
        return task.column(params, name, cell.key)
    return []


def rows_of(params: DatasetParams) -> Iterator[Row]:
    """Every row of a resolved point's file as it stands there, selected or not."""
    source = Library().book(params.file, format_of(params.file, params.format), params.digest()).source
    return map(source.row, range(len(source.table)))


def place_of(params: DatasetParams, view: RowView, index: int, key: bytes) -> int:
    """Place in the selection of the row that comes at `index`."""
    if params.order == "file":
        return index
    return view.order(key)[index] if params.draws == "row" else _shuffle(key, len(view.rows))[index]


# One for all trials of a cell, which come one after another; it holds ten numbers.
_shuffle = lru_cache(maxsize=64)(Permutation)


def _trial(params: DatasetParams, item: Item, stream: Stream) -> Trial:
    """A row's trial; the options in the order that `stream` gives."""
    if params.imported:
        guess = 1 / len(item.options) if item.options else 0.0
        return Trial(
            item.question, item.accepted[0] if item.accepted else "", guess, item.options, item.extras
        )
    if not item.options:
        accepted = {"accepted": list(item.accepted)} if len(item.accepted) > 1 else {}
        prompt = _prompt(params, item.question, params.kind)
        return Trial(prompt, item.accepted[0] if item.accepted else "", extras={**item.extras, **accepted})
    order = list(range(len(item.options)))
    if params.option_order == "shuffled":
        stream.shuffle(order)
    names, texts = labels(item.options), [item.options[i] for i in order]
    listed = "\n".join(f"{name}) {text}" for name, text in zip(names, texts, strict=True))
    prompt = _prompt(params, f"{item.question}\n\n{listed}", "letter" if names[0] == "A" else "number")
    extras = {**item.extras, "choices": texts}
    return Trial(prompt, names[order.index(item.right)], 1 / len(names), names, extras)


def _prompt(params: DatasetParams, question: str, holder: str) -> str:
    """The question with the instruction about the answer's format."""
    if params.instruction != "auto":
        closing = params.instruction
    elif (hint := wordings("dataset").hints.get(params.match)) is not None:
        closing = hint
    else:
        closing = _CLOSING.format("JSON" if holder == "json" else holder) if params.answer else ""
    return f"{question}\n\n{closing}" if closing else question
