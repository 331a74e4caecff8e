"""The contract of a task, and the cells that make its trials.

Trial ``i`` of a cell is a function of (task name, generator version, params, seed, i) and of nothing else, so
that any trial can be made on any machine in any order, and a larger sample extends a smaller one.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.stream import Stream, canonical_json, cell_id, coordinate_seed


class TaskParams(BaseModel):
    """Base class of a task's params.

    Each field declares its range (``ge``, ``le``) and, in its description, its unit and what it makes harder.
    """

    # defaults are validated too: a rule between two params holds when only one of them is given
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_numbers(cls, value: object, info: ValidationInfo) -> object:
        # pydantic would take true for 1 and "8" for 8, and a typing slip would be another cell
        kind = cls.model_fields[info.field_name].annotation if info.field_name else None
        if kind in (int, float) and isinstance(value, (bool, str)):
            raise ValueError("a number is expected")
        return value

    def canonical(self) -> dict[str, object]:
        """Return all params as plain JSON values, defaults included: so a changed default makes another cell."""
        return self.model_dump(mode="json")

    def identity(self) -> dict[str, object]:
        """Return the params that determine the trials and the cell's id; by default, all of them."""
        return self.canonical()

    def drawn_by(self) -> dict[str, object]:
        """Return the params on which the random draws depend; by default, those of `identity`."""
        return self.identity()

    @classmethod
    def of(cls, params: TaskParams) -> Self:
        """`params` as this class.

        Parameters
        ----------
        params
            Of this class.

        Raises
        ------
        TypeError
            They belong to another task.
        """
        if not isinstance(params, cls):
            raise TypeError(f"{cls.__name__} expected, got {type(params).__name__}: params of another task")
        return params


def param(default: float, low: float, high: float, about: str) -> Any:  # noqa: ANN401 - a field of any number
    """A field of `TaskParams` with its range, both ends included, its unit and what it makes harder."""
    return Field(default, ge=low, le=high, description=about)


if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    P = _TypeVar("P", bound=TaskParams, default=TaskParams)
else:
    P = TypeVar("P", bound=TaskParams)


@dataclass(frozen=True, slots=True)
class Trial:
    """One question with its reference answer."""

    prompt: str
    """The question in plain English, with the answer's format stated."""
    answer: str
    """The reference answer in the form that the task's `parse` returns."""
    guess_chance: float = 0.0
    """Probability of a right answer by guessing: at least 1 / number of options; 0 if there are no options."""
    options: tuple[str, ...] = ()
    """The finite set of possible answers; empty for write-in answers."""
    extras: Mapping[str, object] = field(default_factory=dict, hash=False)
    """What a task adds for reading and grading replies, as plain JSON values; do not change it.

    ``tools``, in the format of OpenAI's API, are sent with the request. `Task.parse` then gets the reply's text with a
    last line ``Tool calls:`` and a JSON array of all calls, each with ``name`` and ``arguments`` (a text).
    ``turns``, each with ``role`` and ``content``, are sent before the prompt.
    """

    @property
    def tools(self) -> Sequence[Mapping[str, object]]:
        """Tools that the model may call; empty for most tasks."""
        tools = self.extras.get("tools")
        return tools if isinstance(tools, (list, tuple)) else ()

    @property
    def turns(self) -> Sequence[Mapping[str, str]]:
        """Messages that are sent before the prompt; empty for most tasks."""
        turns = self.extras.get("turns")
        return turns if isinstance(turns, (list, tuple)) else ()

    @property
    def cluster(self) -> int:
        """A number above 0, equal for all questions whose `extras` have the same ``cluster``; 0 if they have none."""
        name = self.extras.get("cluster")
        if name is None:
            return 0
        return max(1, int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:8]) >> 1)


def second_paragraph(trial: Trial) -> str:
    """The second paragraph of a trial's prompt: what is given, without the wording around it."""
    return trial.prompt.split("\n\n", 2)[1]


class Task(ABC, Generic[P]):
    """A family of questions, to subclass.

    An instance is shared by threads and sent to other processes. So it has no state, or only state that is guarded by a
    lock and that a copy does not need.
    """

    name: ClassVar[str]
    """Identity of the task in configs and cubes."""
    version: ClassVar[int]
    """Generator version; raise it whenever any prompt or answer changes."""
    summary: ClassVar[str]
    """What the task asks, in one line."""
    guess_rule: ClassVar[str]
    """How often guessing is right (`Trial.guess_chance`), in words."""
    Params: ClassVar[type[TaskParams]]

    @abstractmethod
    def generate(self, params: P, stream: Stream) -> Trial:
        """Make one trial.

        Parameters
        ----------
        params
            Params of the point, an instance of the task's `Params`, as `resolve` returned it.
        stream
            The only source of randomness: equal params and an equal stream must make an equal trial.
        """

    @abstractmethod
    def parse(self, text: str) -> str | None:
        """Return the answer in a reply, in the form of `Trial.answer`; None if it has no answer.

        It must never raise an exception, and takes time in proportion to the text, whatever a model sends.

        Parameters
        ----------
        text
            The reply's text without its reasoning.
        """

    @abstractmethod
    def difficulty(self, params: P) -> float:
        """Return the size of the problem in elementary steps, above 0; more steps give more occasions for a mistake.

        Parameters
        ----------
        params
            Params of the point, an instance of the task's `Params`.
        """

    def grade(self, answer: str, reference: str) -> bool:
        """Return whether a parsed answer is right; by default, whether it equals the reference.

        Parameters
        ----------
        answer
            What `parse` returned.
        reference
            The trial's `Trial.answer`.
        """
        return answer == reference

    def problem(self, trial: Trial) -> str:
        """Return a text that is equal for trials that ask the same, perhaps in other words; by default, the prompt.

        Parameters
        ----------
        trial
            A trial of this task.
        """
        return trial.prompt

    def second_reader(self, params: P) -> str:  # noqa: ARG002
        """Return the name of the other grader that `theirs` calls, such as a published recipe's; empty if none.

        Parameters
        ----------
        params
            Params of the point, an instance of the task's `Params`.
        """
        return ""

    def theirs(self, text: str, params: P, trial: Trial) -> float | None:  # noqa: ARG002
        """Return that grader's score of a reply, from 0 to 1 (right); None if it finds no answer.

        It is called once for each reply, in addition to `parse_reply` and `grade_reply`, also for truncated and refused
        ones. It must never raise an exception, whatever a model sends, and takes bounded time.

        Parameters
        ----------
        text
            The reply's text without its reasoning.
        params, trial
            Params of the point, and the trial that was asked.
        """
        return None

    # ---- for tasks whose trials are not made up; the others leave these as they are

    def example(self) -> TaskParams:
        """Return params for an example of the task; by default, the defaults of all params."""
        return self.Params()

    def resolve(self, params: P) -> TaskParams:
        """Return the params after everything that they refer to, such as a file, has been read and checked.

        It is called once for each point, when a sweep is planned, and not on workers.

        Parameters
        ----------
        params
            Validated params; a file that they name may be missing.

        Raises
        ------
        TaskError
            If something that the params refer to is missing or wrong.
        """
        return params

    def has_reference(self, params: P) -> bool:  # noqa: ARG002
        """Return whether there are right answers; without them, only assertions and judges rate replies.

        Parameters
        ----------
        params
            Params of the point, an instance of the task's `Params`.
        """
        return True

    def size(self, params: P) -> int | None:  # noqa: ARG002
        """Return the number of different trials of a cell; None if it is unlimited.

        Parameters
        ----------
        params
            Params of the point, an instance of the task's `Params`.
        """
        return None

    def generate_at(self, params: P, index: int, key: bytes, stream: Stream) -> Trial:  # noqa: ARG002
        """Make trial `index` of a cell; a task with a `size` must make each of its trials once.

        Parameters
        ----------
        params
            Params of the point, an instance of the task's `Params`.
        index
            Number of the trial, from 0, below `size`.
        key
            Identity of the cell's draws: task, version, seed and `TaskParams.drawn_by`; an order of all trials can be
            derived from it.
        stream
            Source of randomness of this trial, see `generate`.
        """
        return self.generate(params, stream)

    def row_id(self, params: P, index: int, key: bytes) -> str:  # noqa: ARG002
        """Return the id that the source of the questions gives the question of trial `index`; empty if it has no ids.

        Parameters
        ----------
        params, index, key
            As for `generate_at`.
        """
        return ""

    def parse_reply(self, text: str, params: P, trial: Trial) -> str | None:  # noqa: ARG002
        """Like `parse`, for tasks that need to know what was asked.

        Parameters
        ----------
        text
            The reply's text without its reasoning.
        params, trial
            Params of the point, and the trial that was asked.
        """
        return self.parse(text)

    def grade_reply(self, answer: str, params: P, trial: Trial) -> bool:  # noqa: ARG002
        """Like `grade`, for tasks that need to know what was asked.

        Parameters
        ----------
        answer
            What `parse_reply` returned.
        params, trial
            Params of the point, and the trial that was asked.
        """
        return self.grade(answer, trial.answer)

    def fault(self, answer: str | None, params: P, trial: Trial) -> str:  # noqa: ARG002
        """Return what is wrong with an answer, in a few words that other answers can share; empty if not known.

        Parameters
        ----------
        answer
            A wrong answer as `parse_reply` returned it; None if it found none.
        params, trial
            Params of the point, and the trial that was asked.
        """
        return ""


@dataclass(frozen=True)
class Cell:
    """One point of a task, which makes its trials.

    Two cells with equal `id` have equal trials.
    """

    task: Task = field(compare=False)  # `id` has its name and version
    params: TaskParams = field(compare=False)  # ... and what matters of these
    seed: int
    id: str = field(init=False)
    """See `evalcube.stages.generate.stream.cell_id`."""
    key: bytes = field(init=False, repr=False, compare=False)
    """Names what draws, see `Task.generate_at`."""

    def __post_init__(self) -> None:
        self.task.Params.of(self.params)
        identity = self.params.identity()
        drawn = self.params.drawn_by()
        prefix = (
            f"{self.task.name}\n{self.task.version}\n{coordinate_seed(drawn, self.seed)}\n"
            f"{self.seed}\n{canonical_json(drawn)}\n"
        )
        object.__setattr__(self, "id", cell_id(self.task.name, self.task.version, identity, self.seed))
        object.__setattr__(self, "key", prefix.encode())

    @cached_property
    def plain_params(self) -> dict[str, object]:
        """The canonical params, made once; treat as read-only."""
        return self.params.canonical()

    @cached_property
    def difficulty(self) -> float:
        """Size of the cell's problems in elementary steps; see `Task.difficulty`."""
        return self.task.difficulty(self.params)

    @cached_property
    def size(self) -> int | None:
        """Number of different trials; None if there is no end to them."""
        return self.task.size(self.params)

    def trial(self, index: int) -> Trial:
        """Make one trial; it costs the same for every index."""
        if self.size is not None and not 0 <= index < self.size:
            raise TaskError(
                f"there is no trial {index}: task '{self.task.name}' has {self.size} different trials at this "
                f"point, from 0 to {self.size - 1}; ask for at most {self.size}",
                field="trials",
                value=index,
            )
        # A digest and not seed + index: trial 1 of one seed must not be trial 0 of the next.
        digest = hashlib.sha256(self.key + str(index).encode()).digest()
        trial = self.task.generate_at(self.params, index, self.key, Stream(int.from_bytes(digest, "big")))
        prompt, answer = getattr(trial, "prompt", None), getattr(trial, "answer", None)
        if not (isinstance(prompt, str) and isinstance(answer, str)):
            raise TaskError(
                f"task '{self.task.name}' made {repr(trial)[:200]}, which is no Trial with a prompt and an answer as "
                "texts; correct its `generate`"
            )
        return trial

    def row_id(self, index: int) -> str:
        """What the source of the questions calls the one of a trial, without making it; mostly empty."""
        return self.task.row_id(self.params, index, self.key)

    def parse(self, text: str, trial: Trial) -> str | None:
        """The answer in a reply to one of the cell's trials; None if there is none. Never raises."""
        return self.task.parse_reply(text, self.params, trial)

    def grade(self, answer: str, trial: Trial) -> bool:
        """Whether a parsed answer to one of the cell's trials is right."""
        return self.task.grade_reply(answer, self.params, trial)

    def fault(self, answer: str | None, trial: Trial) -> str:
        """In what way a wrong answer to one of the cell's trials is wrong, where the task tells; else empty."""
        return self.task.fault(answer, self.params, trial)
