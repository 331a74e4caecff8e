"""What every log is read into: which run, which question, which answer; and how another tool's score is understood."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.bounded import finite, log_error
from evalcube.stages.generate.dataset.rows import lookup
from evalcube.stages.reply.status import Status

MOST_REPEATS = 100_000
MOST_NAME = 500
"""Characters of a model's or a task's name, or of a row's id."""
_DEEPEST = 100
"""Levels of what becomes part of an identity, and so of a cube's description, which is read again and again."""

_WORDS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "correct": 1.0, "incorrect": 0.0, "yes": 1.0, "no": 0.0}
_WORDS |= {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Run:
    """How one model was asked the questions of one task."""

    tool: str
    task: str
    scorer: str
    model: str
    settings: str = "{}"
    """What of the model's requests is the same for all tasks, such as its temperature: canonical JSON."""
    setup: str = "{}"
    """How this task was put, such as the solver or the number of examples: canonical JSON."""
    setup_name: str = ""
    """The setup for people; no part of any identity."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a task."""

    content: str
    """What makes it this question, whoever is asked: equal contents are one question."""
    prompt: str
    reference: str = ""
    id: str | None = None
    options: tuple[str, ...] = ()
    cluster: str = ""
    """What it has in common with others, such as a passage."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One model's answer to a question, and what the tool made of it."""

    repeat: int | None = None
    """From 0; None if the log does not number them: the next one, then."""
    text: str | None = None
    """None where the log has no texts."""
    reasoning: str = ""
    finish: str = "stop"
    """``stop``, ``length`` or ``refused``."""
    score: object = None
    """As the log has it."""
    parsed: str | None = None
    """The answer as the tool read it."""
    prompt_tokens: int = -1
    completion_tokens: int = -1
    latency: float = math.nan
    """Seconds."""
    failure: str = ""
    """Why there is no answer; empty if there is one."""
    unread: bool = False
    """Whether the tool found no answer in the reply."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a log."""

    run: Run
    question: Question
    answer: Answer
    where: str
    """The place for messages: the file, and the line or the member."""


@dataclass(frozen=True)
class LogHints:
    """What a user says of logs that they do not say themselves."""

    model: str | None = None
    """Name of the model, in place of the log's."""
    task: str | None = None
    """Name of the task, in place of the log's."""
    score: str | None = None
    """Which of several scores counts; of lm-eval ``METRIC,FILTER`` says which filter, too."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Where lines of no known tool have what."""
    notes: dict[str, None] = field(default_factory=dict, compare=False)
    """What the reader has to say, in the order of first mention."""
    lenient: bool = False
    """Whether what is wrong in a log is left out, and the rest is taken."""
    left_out: dict[str, None] = field(default_factory=dict, compare=False)
    """What was left out, and why."""

    @contextmanager
    def sparing(self) -> Iterator[None]:
        """Note what is wrong and go on, if that is wanted."""
        try:
            yield
        except SweepError as error:
            if not self.lenient:
                raise
            self.left_out[error.message] = None

    def cluster(self, *places: Mapping[str, Any]) -> str:
        """What a question has in common with others, by the field that was named: of the first place that has it."""
        name = self.fields.get("cluster", "")
        candidates = (lookup(record, name) for record in places if name)
        return as_text(next((value for value in candidates if value is not None), None))

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        self.notes[text] = None


LogReader = Callable[[Path, LogHints], Iterator[Sample]]
"""Reads the samples of a log of one format, one at a time."""


@dataclass(frozen=True)
class Scale:
    """How scores become right and wrong."""

    correct_from: float | None = None
    """Least score of a right answer; None if there are right and wrong answers only."""

    def __post_init__(self) -> None:
        if self.correct_from is not None and not 0 < self.correct_from <= 1:
            raise SweepError(
                f"`correct_from`: {self.correct_from:g} is not above 0 and at most 1",
                "Give the least score of a right answer",
            )

    def name(self, scorer: str) -> str:
        """The name of a grading: the scorer, and from where on a share is right."""
        return scorer + ("" if self.correct_from is None else f">={self.correct_from:g}")

    def grade(self, run: Run, answer: Answer, where: str) -> tuple[Status, float] | None:
        """The status of an answer and its score from 0 to 1; None if it was not scored.

        The tool's word stands: what it counts as right is right, however it ended. What it counts as wrong is cut,
        refused or without an answer, if the log says so.
        """
        value, blank = _number(answer.score, run, where)
        if value is None:
            return None
        least = self.correct_from
        if value not in (0, 1) and (least is None or not 0 < value < 1):
            raise log_error(
                f"{where}, score '{run.scorer}'",
                f"{value:g} is neither right nor wrong",
                "Say from which share on an answer is right with `correct_from`, such as 0.5, take another score with "
                "`score`, or bring scores of another range to 0 to 1",
            )
        if value == 1 if least is None else value >= least:
            return Status.CORRECT, value
        if blank or answer.unread:
            return Status.INVALID, value
        return {"length": Status.TRUNCATED, "refused": Status.REFUSED}.get(
            answer.finish, Status.INCORRECT
        ), value


def _number(score: object, run: Run, where: str) -> tuple[float | None, bool]:
    """A score as a number, and whether it says that there was no answer; None where nothing was scored."""
    if score is None or (isinstance(score, float) and math.isnan(score)):
        return None, False
    if isinstance(score, bool):
        return float(score), False
    if isinstance(score, str):
        word = score.strip().lower()
        if word in _WORDS:
            return _WORDS[word], word == "n"
        try:
            return finite(float(word)), False
        except ValueError:
            pass
    number = finite(score)
    if number is None:
        shown = json.dumps(score, default=str)[:60]
        raise log_error(
            f"{where}, score '{run.scorer}'", f"{shown} is no number", "Take another score with `score`"
        )
    return number, False


def canonical(values: Mapping[str, Any]) -> str:
    """A mapping as canonical JSON, without what is null or empty; what JSON cannot hold becomes text."""
    filled = {key: value for key, value in values.items() if value not in (None, "", [], {})}
    return json.dumps(_plain(filled, _DEEPEST), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: object, levels: int) -> object:
    if not levels:
        rule = f"a question or a setting of a log is nested deeper than {_DEEPEST} levels"
        raise SweepError(rule, "Leave that log out")
    if isinstance(value, dict):
        return {str(key): _plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, levels - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def as_text(value: object) -> str:
    """A value of a log as text, others than texts as JSON; empty for none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def clean(name: object, kind: str, where: str, remedy: str) -> str:
    """A model's or a task's name, cut to a length that fits a board."""
    label = " ".join(str(name).split()) if isinstance(name, (str, int)) and not isinstance(name, bool) else ""
    if not label:
        raise log_error(where, f"the log does not say the {kind}", remedy)
    return label[:MOST_NAME]
