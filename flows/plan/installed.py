"""The installed task that a cube's description names, or what stands for it; and its second reader, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from evalcube.flows.config.manifold import ReaderConfig
from evalcube.flows.plan.spec import TaskSpec, damage_error
from evalcube.stages.generate import TASKS, Task, all_tasks
from evalcube.stages.generate.absent import AbsentTask
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.plugins import GROUP
from evalcube.stages.generate.reader import OWN

_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99} [A-Za-z0-9][A-Za-z0-9.+!_-]{0,49}")
"""A package with its version as a cube's notes may have them: shown, and never installed."""


def installed_task(spec: TaskSpec, package: str) -> Task:
    """The task, or one in its place that says why it cannot be used, and what to do."""
    try:
        task = all_tasks().get(spec.name)
    except TaskError as error:
        return AbsentTask(
            spec.name, spec.version, f"{error.message}; this cube's trials of it cannot be made again"
        )
    if task is not None and task.version == spec.version:
        return task
    state = "is not installed" if task is None else f"is installed in version {task.version}"
    name, _, version = package.partition(" ")
    if _PACKAGE.fullmatch(package):
        remedy = f"It is of package {package}: pip install {name}=={version}"
    elif spec.name in TASKS:
        remedy = "Install the version of evalcube that wrote the cube"
    else:
        remedy = f"Install the package that has it (pip install PACKAGE), an entry point of group {GROUP}"
    rule = f"task '{spec.name}' version {spec.version} of this cube {state}; its prompts cannot be made again"
    return AbsentTask(spec.name, spec.version, f"{rule}. {remedy}")


def check_described_reader(described: Mapping[str, Any], index: int) -> None:
    """Refuse a second reader that no config could name; its name is always written."""
    own = described.keys() == {"name", OWN} and described[OWN] is True
    try:
        if described:
            ReaderConfig.model_validate(
                {"name": described["name"], "grader": OWN} if own else {"name": None, **described}
            )
    except ValidationError as error:
        raise damage_error(error, "tasks", index, "reader") from None
