"""What every log is read into: which run, which question, which answer; and how another tool's score is understood."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalcube.flows.errors import SweepError
from evalcube.flows.imports.bounded import finite, refused
from evalcube.stages.reply.body import token_count
from evalcube.stages.reply.status import Status

MOST_REPEATS = 100_000
MOST_NAME = 500
"""Characters of a model's or a task's name, or of a row's id."""

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


_ENDS = {"truncated": "length", "refused": "refused"}


def own_answer(said: Mapping[str, Any], text: object, parsed: object) -> Answer:
    """An answer that evalcube has exported, with how it ended as our own logs say it.

    Parameters
    ----------
    said
        What an export says of a trial beyond the other tool's fields.
    text, parsed
        The reply, and the answer in it.
    """
    status, latency, repeat = said.get("status"), finite(said.get("latency")), said.get("repeat")
    tokens = [token_count(said.get(name)) for name in ("prompt_tokens", "tokens")]
    prompt, completion = (-1 if count is None else count for count in tokens)
    reasoning = said.get("reasoning")
    return Answer(
        repeat if type(repeat) is int and 0 <= repeat < MOST_REPEATS else None,
        text if isinstance(text, str) else None,
        reasoning if isinstance(reasoning, str) else "",
        _ENDS.get(str(status), "stop"),
        status == "correct",
        parsed if isinstance(parsed, str) else None,
        prompt,
        completion,
        math.nan if latency is None else latency,
        unread=status == "invalid",
    )


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a log."""

    run: Run
    question: Question
    answer: Answer
    where: str
    """The place for messages: the file, and the line or the member."""


@dataclass(frozen=True)
class Wanted:
    """What a user says of logs that they do not say themselves."""

    model: str | None = None
    """Name of the model, in place of the log's."""
    task: str | None = None
    """Name of the task, in place of the log's."""
    score: str | None = None
    """Which of several scores counts."""
    filter: str | None = None
    """Which of lm-eval's filters counts."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Where lines of no known tool have what."""
    notes: dict[str, None] = field(default_factory=dict, compare=False)
    """What the reader has to say, in the order of first mention."""

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        self.notes[text] = None


class LogReader(Protocol):
    """Reads a log of one format."""

    def __call__(self, path: Any, wanted: Wanted) -> Iterator[Sample]:  # noqa: ANN401 - a path
        """The samples of a log, one at a time."""


@dataclass(frozen=True)
class Scale:
    """How scores become right and wrong."""

    correct_from: Mapping[str, float] = field(default_factory=dict)
    """Least score of a right answer by scorer, "" for all others; none if there are right and wrong answers only."""
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SweepError(
                f"`score_range`: {self.low:g}:{self.high:g} is no range", "Write LOW:HIGH, such as 0:10"
            )
        for least in self.correct_from.values():
            if not self.low < least <= self.high:
                raise SweepError(
                    f"`correct_from`: {least:g} is not above {self.low:g} and at most {self.high:g}",
                    "Give the least score of a right answer; another scale is said with `score_range`",
                )

    def _least(self, scorer: str) -> float | None:
        return self.correct_from.get(scorer, self.correct_from.get(""))

    def name(self, scorer: str) -> str:
        """The name of a grading: the scorer, and the scale where scores are not just right and wrong."""
        least = self._least(scorer)
        ranged = "" if (self.low, self.high) == (0, 1) else f" of {self.low:g}:{self.high:g}"
        return scorer + ("" if least is None else f">={least:g}") + ranged

    def grade(self, run: Run, answer: Answer, where: str) -> tuple[Status, float] | None:
        """The status of an answer and its score from 0 to 1; None if it was not scored.

        The tool's word stands: what it counts as right is right, however it ended. What it counts as wrong is cut,
        refused or without an answer, if the log says so.

        Raises
        ------
        SweepError
            If the score is no number of the scale, or neither right nor wrong.
        """
        value, blank = _number(answer.score, run, where)
        if value is None:
            return None
        if not self.low <= value <= self.high:
            raise refused(
                f"{where}, score '{run.scorer}'",
                f"{value:g} is not from {self.low:g} to {self.high:g}",
                "Say the scale with `score_range`, such as 0:10, and from where on an answer is right with "
                "`correct_from`",
            )
        score = (value - self.low) / (self.high - self.low)
        least = self._least(run.scorer)
        if least is None and score not in (0, 1):
            raise refused(
                f"{where}, score '{run.scorer}'",
                f"{value:g} is neither right nor wrong",
                f"Say from which score on an answer counts as right with `correct_from`, such as {run.scorer}=0.5, or "
                "take another score with `score`",
            )
        right = score == 1 if least is None else value >= least
        if right:
            return Status.CORRECT, score
        if blank or answer.unread:
            return Status.INVALID, score
        return {"length": Status.TRUNCATED, "refused": Status.REFUSED}.get(
            answer.finish, Status.INCORRECT
        ), score


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
        raise refused(
            f"{where}, score '{run.scorer}'", f"{shown} is no number", "Take another score with `score`"
        )
    return number, False


def canonical(values: Mapping[str, Any]) -> str:
    """A mapping as canonical JSON, without what is null or empty; what JSON cannot hold becomes text."""
    kept = {key: value for key, value in values.items() if value not in (None, "", [], {})}
    return json.dumps(_plain(kept), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def named(name: object, what: str, where: str, remedy: str) -> str:
    """A model's or a task's name, cut to a length that fits a board."""
    found = " ".join(str(name).split()) if isinstance(name, (str, int)) and not isinstance(name, bool) else ""
    if not found:
        raise refused(where, f"the log does not say the {what}", remedy)
    return found[:MOST_NAME]
