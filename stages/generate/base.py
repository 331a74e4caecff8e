"""The contract of a task: validated params and a trial index in, one trial out.

Trial ``i`` of a cell is a function of (task name, generator version, params, seed, i) and of nothing else, so
that any trial can be made on any machine in any order, and a larger sample extends a smaller one.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from stages.generate.errors import TaskError
from stages.generate.stream import Stream, canonical_json, cell_id, coordinate_seed


class TaskParams(BaseModel):
    """Base of a task's params model.

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
        """All params, defaults included, as plain values: a changed default makes another cell."""
        return self.model_dump(mode="json")

    def identity(self) -> dict[str, object]:
        """What makes the trials: enters the cell's id and stream; `canonical` unless a task says otherwise."""
        return self.canonical()

    @classmethod
    def of(cls, params: TaskParams) -> Self:
        """`params` as this class; TypeError if they belong to another task."""
        if not isinstance(params, cls):
            raise TypeError(f"{cls.__name__} expected, got {type(params).__name__}: params of another task")
        return params


@dataclass(frozen=True, slots=True)
class Trial:
    """One question with its truth."""

    prompt: str
    """The question in plain English, with the answer's format stated."""
    answer: str
    """The reference answer in the form that the task's `parse` returns."""
    guess_chance: float = 0.0
    """1/|options| where the answer is one of a listed finite set, else 0."""
    options: tuple[str, ...] = ()
    """The finite set of possible answers; empty for write-in answers."""
    extras: Mapping[str, object] = field(default_factory=dict, hash=False)
    """What a task adds for reading and grading replies, as plain JSON values; treat as read-only."""


class Task(ABC):
    """One family of questions. Subclasses are stateless; an instance may be shared by threads."""

    name: ClassVar[str]
    """Identity of the task in configs and cubes."""
    version: ClassVar[int]
    """Generator version; raise it whenever any prompt or answer changes."""
    summary: ClassVar[str]
    """What is asked, in one line."""
    guess_rule: ClassVar[str]
    """How `Trial.guess_chance` comes about, in words."""
    Params: ClassVar[type[TaskParams]]

    @abstractmethod
    def generate(self, params: TaskParams, stream: Stream) -> Trial:
        """Make one trial; every random choice comes from `stream`."""

    @abstractmethod
    def parse(self, text: str) -> str | None:
        """Read the answer from a model's final answer: normalised, the last one wins; None if there is none.

        Never raises, whatever text a model sends.
        """

    @abstractmethod
    def difficulty(self, params: TaskParams) -> float:
        """Size of the problem in elementary steps (> 0), growing along each declared dimension."""

    def grade(self, answer: str, reference: str) -> bool:
        """Tell whether a parsed answer is right; equality unless a task says otherwise."""
        return answer == reference

    # ---- for tasks whose trials are not made up; the others leave these as they are

    def example(self) -> TaskParams:
        """Params to show the task with: the defaults, where they make a whole point."""
        return self.Params()

    def resolve(self, params: TaskParams) -> TaskParams:
        """Look at what params refer to, once, when a sweep is planned; return params that stand by themselves.

        Raises
        ------
        TaskError
            What the params refer to is missing or wrong.
        """
        return params

    def has_reference(self, params: TaskParams) -> bool:  # noqa: ARG002
        """Whether there are right answers; else trials are there for assertions and judges only."""
        return True

    def size(self, params: TaskParams) -> int | None:  # noqa: ARG002
        """Number of different trials of a cell; None if there is no end to them."""
        return None

    def generate_at(self, params: TaskParams, index: int, key: bytes, stream: Stream) -> Trial:  # noqa: ARG002
        """Make trial `index` of the cell that `key` names; for tasks with a `size`, to give each trial once."""
        return self.generate(params, stream)

    def parse_reply(self, text: str, params: TaskParams, trial: Trial) -> str | None:  # noqa: ARG002
        """Like `parse`, for tasks that need to know what was asked."""
        return self.parse(text)

    def grade_reply(self, answer: str, params: TaskParams, trial: Trial) -> bool:  # noqa: ARG002
        """Like `grade`, for tasks that need to know what was asked."""
        return self.grade(answer, trial.answer)


@dataclass(frozen=True)
class Cell:
    """One point of a task: the source of its trials."""

    task: Task = field(compare=False)  # `id` has its name and version
    params: TaskParams = field(compare=False)  # ... and what matters of these
    seed: int
    id: str = field(init=False)
    """See `stages.generate.stream.cell_id`."""
    _prefix: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        identity = self.params.identity()
        prefix = (
            f"{self.task.name}\n{self.task.version}\n{coordinate_seed(identity, self.seed)}\n"
            f"{self.seed}\n{canonical_json(identity)}\n"
        )
        object.__setattr__(self, "id", cell_id(self.task.name, self.task.version, identity, self.seed))
        object.__setattr__(self, "_prefix", prefix.encode())

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
        """Make trial `index` (from 0); costs the same for every index.

        Raises
        ------
        TaskError
            The cell has a size, and `index` is not below it.
        """
        if self.size is not None and not 0 <= index < self.size:
            raise TaskError(
                f"there is no trial {index}: task '{self.task.name}' has {self.size} different trials at this "
                f"point, from 0 to {self.size - 1}; ask for at most {self.size}",
                field="trials",
                value=index,
            )
        digest = hashlib.sha256(self._prefix + str(index).encode()).digest()
        stream = Stream(int.from_bytes(digest, "big"))
        return self.task.generate_at(self.params, index, self._prefix, stream)

    def parse(self, text: str, trial: Trial) -> str | None:
        """Read the answer to one of the cell's trials; never raises, None if there is none."""
        return self.task.parse_reply(text, self.params, trial)

    def grade(self, answer: str, trial: Trial) -> bool:
        """Tell whether a parsed answer to one of the cell's trials is right."""
        return self.task.grade_reply(answer, self.params, trial)
