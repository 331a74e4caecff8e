"""Collects the samples of logs: which questions there are, who answered them, and the replies as the cache keeps them.

Texts go into a temporary file at once, so that memory holds some hundred bytes of each sample; and nothing is written
elsewhere before all logs were read and found right.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.bounded import log_error
from evalcube.flows.share.imports.samples import MOST_REPEATS, Answer, Question, Run, Sample, Scale
from evalcube.stages.generate.dataset.rows import MOST_TEXT
from evalcube.stages.process.grading import IMPORTED
from evalcube.stages.process.reading import TEXT_LIMIT
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status

REPLIED = -1
"""In the table of answers, in the place of a cause why there is none."""
_NONE = "(the log has no prompt)"
_MOST_IDENTITY = 1000
_MOST_MODELS, _MOST_QUESTIONS = 2_000, 100_000
"""Of a cube: what has more takes minutes to write, and is read sooner as several."""
_SPREAD = "Import the logs into several cubes; what reads cubes reads several as one"
"""Characters of the param `imported`."""


@dataclass(frozen=True, slots=True)
class TaskKey:
    """What makes a task of logs: who graded what, and how."""

    tool: str
    task: str
    grading: str
    """The scorer, with the scale where scores are not just right and wrong."""

    @property
    def identity(self) -> str:
        """The param `imported` of its cells."""
        return f"{self.tool}/{self.task}/{self.grading}"


@dataclass(frozen=True, slots=True)
class ModelSetting:
    """Who was asked, and with what: what becomes an evaluation."""

    tool: str
    model: str
    settings: str
    variant: int = 0
    """0, and more where one model was asked the questions of one task in several ways."""


@dataclass(eq=False)
class Questions:
    """The questions of a task, in the order of first mention."""

    place: int
    """Number of the task."""
    rows: dict[bytes, int] = field(default_factory=dict)
    """Digest of a question -> its row."""
    places: array[int] = field(default_factory=lambda: array("q"))
    """Offset and length of each row's text in the temporary file."""
    prompts: list[bytes] = field(default_factory=list)
    """Digest of each row's prompt."""
    setups: dict[str, str] = field(default_factory=dict)
    """How models were asked -> its name."""
    first_repeat: int = MOST_REPEATS
    """The least number of a repeat."""
    clusters: dict[int, bytes] = field(default_factory=dict)
    """Digest of the cluster of each row that has one."""


class Collection:
    """What was read so far. Use it as a context: its temporary file goes with it.

    Parameters
    ----------
    scale
        How scores become right and wrong.
    """

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by leaving the context
        self._end = 0
        self.tasks: dict[TaskKey, Questions] = {}
        self.asked: dict[ModelSetting, int] = {}
        self.variants: dict[int, dict[str, str]] = {}
        """By place of an evaluation, how it was asked each task, where that tells it from another one."""
        self.causes: dict[str, int] = {}
        """Why there are no answers, with the numbers by which the table of answers names it."""
        self.samples = self.repeated = 0
        """Samples read; of them, those that said again what another said."""
        self._setups: dict[tuple[ModelSetting, TaskKey], dict[str, int]] = {}
        self._slots: dict[tuple[int, int], dict[int, int]] = {}
        self._occurrences: dict[tuple[int, int, bytes], dict[str | None, int]] = {}
        self._next: dict[tuple[int, int, int], int] = {}
        self._entries = array("q")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, sample: Sample) -> None:
        """Take in one sample."""
        run, answer, where = sample.run, sample.answer, sample.where
        graded = None if answer.failure else self._scale.grade(run, answer, where)
        if graded and max(len(answer.text or ""), len(answer.reasoning)) > TEXT_LIMIT:
            raise log_error(where, f"its reply has more than {TEXT_LIMIT:,} characters", "Leave it out")
        self.samples += 1
        key = TaskKey(run.tool, run.task, self._scale.name(run.scorer))
        if len(key.identity) > _MOST_IDENTITY:
            rule = f"its task and its score have names of more than {_MOST_IDENTITY:,} characters"
            raise log_error(where, rule, "Leave this log out")
        questions = self.tasks.setdefault(key, Questions(len(self.tasks)))
        task = questions.place
        asked = self._place(run, key, questions, where)
        row, sent = self._row(questions, (asked, task), sample)
        record = encode_reply(answer, *graded, sent) if graded else None
        self._enter(asked, questions, row, answer, record, where)

    def _place(self, run: Run, key: TaskKey, questions: Questions, where: str) -> int:
        """The place of the evaluation, another one for each way in which it was asked this task."""
        questions.setups.setdefault(run.setup, run.setup_name)
        setups = self._setups.setdefault((ModelSetting(run.tool, run.model, run.settings), key), {})
        variant = setups.setdefault(run.setup, len(setups))
        index = self.asked.setdefault(
            ModelSetting(run.tool, run.model, run.settings, variant), len(self.asked)
        )
        if len(self.asked) > _MOST_MODELS:
            raise log_error(where, f"the logs have more than {_MOST_MODELS:,} models", _SPREAD)
        if variant:
            self.variants.setdefault(index, {})[key.identity] = run.setup
        return index

    def _row(self, questions: Questions, who: tuple[int, int], sample: Sample) -> tuple[int, str | None]:
        """The row of a question, and the prompt that was sent if it is not the row's."""
        question = sample.question
        content = _digest(question.content)
        seen = self._occurrences.setdefault((*who, content), {})
        # A data set may have a question twice: they are told apart by their order, as ids are not equal everywhere.
        occurrence = seen.setdefault(question.id, len(seen))
        digest = _digest(f"{content.hex()}/{occurrence}") if occurrence else content
        prompt = _whole(question.prompt) or f"{_NONE} {question.id or ''}".strip()
        if len(prompt) > MOST_TEXT:
            raise log_error(
                sample.where,
                f"its prompt has {len(prompt):,} characters; {MOST_TEXT:,} are the most",
                "Leave it out",
            )
        row = questions.rows.get(digest)
        if row is None:
            row = questions.rows[digest] = len(questions.rows)
            if row >= _MOST_QUESTIONS:
                raise log_error(
                    sample.where, f"its task has more than {_MOST_QUESTIONS:,} questions", _SPREAD
                )
            questions.prompts.append(_digest(prompt))
            questions.places.extend(self._keep(_as_row(digest, question, prompt)))
        self._cluster(questions, row, sample)
        return row, None if questions.prompts[row] == _digest(prompt) else prompt

    def _cluster(self, questions: Questions, row: int, sample: Sample) -> None:
        """Add to a row the cluster of its question, if the sample says one, which must be the same in all."""
        cluster = _whole(sample.question.cluster)
        if not cluster:
            return
        if questions.clusters.setdefault(row, _digest(cluster)) != _digest(cluster):
            raise log_error(
                f"{sample.where}, cluster",
                f"{cluster[:60]!r} is another one than this question had before",
                "Name with `map` a field that is the question's own, or rename this one",
            )
        places = slice(row * 2, row * 2 + 2)
        line = json.loads(self._read_bytes(*questions.places[places]))
        if "cluster" not in line:
            questions.places[places] = array("q", self._keep(_as_line(line | {"cluster": cluster})))

    def _enter(
        self, asked: int, questions: Questions, row: int, answer: Answer, record: bytes | None, where: str
    ) -> None:
        task = questions.place
        slots = self._slots.setdefault((asked, task), {})
        repeat = self._free(asked, task, row) if answer.repeat is None else answer.repeat
        number = slots.get(_slot(row, repeat))
        if number is not None:
            before = self.record(number)
            if record is None or before == record:
                self.repeated += 1
                return
            if before is not None:
                raise log_error(
                    where,
                    f"another log has another answer to this question by the same model, repeat {repeat}",
                    "Import one of the logs with another name for the model, by `model`",
                )
        if repeat >= MOST_REPEATS:
            raise log_error(where, f"a question may have {MOST_REPEATS:,} repeats", "Leave some out")
        if record is None:  # below 0, an offset is a cause
            offset, length = -1 - self.causes.setdefault(answer.failure or "not scored", len(self.causes)), 0
        else:
            offset, length = self._keep(record)
        if number is not None:  # what failed in one log was answered in another
            self._entries[number * 6 + 4 : number * 6 + 6] = array("q", (offset, length))
            return
        questions.first_repeat = min(questions.first_repeat, repeat)
        slots[_slot(row, repeat)] = len(self._entries) // 6
        self._entries.extend((asked, task, row, repeat, offset, length))

    def _free(self, asked: int, task: int, row: int) -> int:
        """The first repeat of a question that there is no answer for."""
        slots, repeat = self._slots[asked, task], self._next.get((asked, task, row), 0)
        while _slot(row, repeat) in slots:
            repeat += 1
        self._next[asked, task, row] = repeat
        return repeat

    def _keep(self, data: bytes) -> tuple[int, int]:
        offset = self._end
        self._file.seek(offset)
        self._file.write(data)
        self._end += len(data)
        return offset, len(data)

    def _read_bytes(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)

    # ---- when all is read

    def table(self) -> npt.NDArray[np.int64]:
        """One line for each answer: evaluation, task, row, repeat, and `REPLIED` or why there is no reply.

        Rows and repeats are final: questions that more evaluations were asked come first, so that who was asked fewer
        of them lacks none in between; and where repeats are numbered from 1, they begin at 0.
        """
        table: npt.NDArray[np.int64] = np.array(self._entries, dtype=np.int64).reshape(-1, 6)[:, :5].copy()
        table[:, 4] = np.where(table[:, 4] < 0, -1 - table[:, 4], REPLIED)
        for task, (questions, order) in enumerate(zip(self.tasks.values(), self._orders, strict=True)):
            mine = table[:, 1] == task
            table[mine, 2] = order[table[mine, 2]]
            table[mine, 3] -= questions.first_repeat
        return table

    @cached_property
    def _orders(self) -> list[npt.NDArray[np.int64]]:
        """By task, the final row of each row; asked for when all is read."""
        entries = np.array(self._entries, dtype=np.int64).reshape(-1, 6)
        orders = []
        for task, questions in enumerate(self.tasks.values()):
            pairs = np.unique(entries[entries[:, 1] == task][:, [0, 2]], axis=0)
            asked = np.bincount(pairs[:, 1], minlength=len(questions.rows))
            final = np.empty(len(asked), dtype=np.int64)
            final[np.argsort(-asked, kind="stable")] = np.arange(len(asked))
            orders.append(final)
        return orders

    def rows(self, task: int) -> Iterator[bytes]:
        """The lines of a task's data file, in the final order."""
        questions = list(self.tasks.values())[task]
        for row in np.argsort(self._orders[task]).tolist():
            yield self._read_bytes(*questions.places[row * 2 : row * 2 + 2])

    def record(self, number: int) -> bytes | None:
        """The reply of a line of `table`; None if there is none."""
        offset, length = self._entries[number * 6 + 4 : number * 6 + 6]
        return None if offset < 0 else self._read_bytes(offset, length)


def encode_reply(answer: Answer, status: Status, score: float, sent: str | None) -> bytes:
    """A reply with its grade as the cache keeps it: a chat completion with one more field."""
    finish = {"length": "length", "refused": "content_filter"}.get(answer.finish, "stop")
    message = {"role": "assistant", "content": answer.text}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    usage = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
    grade = {
        "status": status.name.lower(),
        "score": score,
        "answer": answer.parsed,
        "prompt": sent,
        "text": None if answer.text is not None else False,
    }
    body = {
        "choices": [{"message": message, "finish_reason": finish}],
        "usage": {name: count for name, count in usage.items() if count >= 0},
        IMPORTED: {name: value for name, value in grade.items() if value is not None},
    }
    return Record(
        200, answer.latency, json.dumps(body, separators=(",", ":")).encode(), imported=True
    ).encode()


def _as_row(digest: bytes, question: Question, prompt: str) -> bytes:
    """A line of a data file."""
    row: dict[str, Any] = {"question": digest.hex(), "id": question.id, "prompt": prompt}
    row |= {"answer": _whole(question.reference), "options": list(question.options)}
    row |= {"cluster": _whole(question.cluster)}
    return _as_line({name: value for name, value in row.items() if value not in (None, "", [])})


def _as_line(row: dict[str, Any]) -> bytes:
    data = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
    if len(data) > MOST_ROW:
        raise SweepError(f"question '{row.get('id')}': its text has {len(data):,} bytes", "Leave it out")
    return data


MOST_ROW = 15 * 2**20
"""Bytes of a question; a data set's rows have at most 16 MiB."""


def _whole(text: str) -> str:
    """A text without halves of surrogate pairs and line breaks around it, as a data set gives it back."""
    return text.encode("utf-8", "replace").decode().strip("\n")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _slot(row: int, repeat: int) -> int:
    return row * (MOST_REPEATS + 1) + repeat
