"""Shared hypothesis strategies and seeded draws over the params of any task."""

from __future__ import annotations

import random
from typing import Any, Literal, get_args, get_origin

from hypothesis import strategies as st
from pydantic import ValidationError

from evalcube.stages.generate import Task, TaskParams

DESCRIBES_A_FILE = {"dataset": {"format", "answer_is", "rows", "match"}, "tools": {"call"}}
"""Fields that must agree with the file that a task reads, with each other, or with how its requests are sent, and
cannot be varied by themselves."""


LONGEST = {("haystack", "length"): 5000}
"""Values up to which a field is drawn, where greater ones only take longer."""


def bounds(task: Task, field: str) -> tuple[Any, Any]:
    """Lowest and highest value that a numeric field declares."""
    limits: dict[str, Any] = {}
    for rule in task.Params.model_fields[field].metadata:
        limits |= {name: getattr(rule, name) for name in ("ge", "le") if hasattr(rule, name)}
    return limits["ge"], limits["le"]


def choices(task: Task, field: str) -> tuple[Any, ...]:
    """Values of a field that has a finite list of them; empty for a number."""
    annotation = task.Params.model_fields[field].annotation
    if field in DESCRIBES_A_FILE.get(task.name, ()):
        return ()
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def listed_fields(task: Task) -> list[str]:
    return [field for field in task.Params.model_fields if choices(task, field)]


def numeric_fields(task: Task) -> list[str]:
    fixed = DESCRIBES_A_FILE.get(task.name, ())
    fields = task.Params.model_fields
    return [field for field, info in fields.items() if info.annotation in (int, float) and field not in fixed]


def params_with(task: Task, **values: Any) -> TaskParams:
    """The params of the task's example with some values set."""
    return task.Params(**task.example().model_dump(exclude_defaults=True) | values)


def index_of(task: Task, params: TaskParams, number: int) -> int:
    """A trial's index made from any number."""
    size = task.size(params)
    return number if size is None else number % size


def random_params(task: Task, rng: random.Random) -> TaskParams:
    """Valid params, each field anywhere in its range, small values and limits often."""
    while True:
        values: dict[str, Any] = {field: rng.choice(choices(task, field)) for field in listed_fields(task)}
        for field in numeric_fields(task):
            low, high = bounds(task, field)
            high = LONGEST.get((task.name, field), high)
            if task.Params.model_fields[field].annotation is int:
                near = min(high, low + 6)
                values[field] = rng.choice([low, high, rng.randint(low, near), rng.randint(low, high)])
            else:
                values[field] = rng.choice([low, high, rng.uniform(low, high)])
        try:
            return params_with(task, **values)
        except ValidationError:  # two fields that do not go together
            continue


def params_of(task: Task) -> st.SearchStrategy[TaskParams]:
    """Any valid params of a task."""
    return st.randoms(use_true_random=False).map(lambda rng: random_params(task, rng))


def hostile_text() -> st.SearchStrategy[str]:
    """Text and decoded bytes as a broken or malicious model may send them."""
    pieces = st.sampled_from(
        [
            "answer",
            "Answer:",
            "is",
            "**",
            "\\boxed{",
            "}",
            "\\text{",
            "(",
            "-",
            "1",
            ",",
            "true",
            "or",
            "\n",
            " ",
            "not",
        ]
    )
    return st.one_of(
        st.text(),
        st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
        st.binary().map(lambda raw: raw.decode("latin-1")),
        st.lists(pieces, max_size=40).map("".join),
    )
