"""Rules about tasks, known and with valid points, and about templates, which must render with the params of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalcube.flows.config.findings import Finding, Path, unknown_name
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.secrecy import mask
from evalcube.flows.config.templates import Template
from evalcube.flows.errors import TemplateError
from evalcube.stages.generate import Axis, Entry, Task, TaskError, all_tasks, expand, find_problems

_Parts = dict[int | None, list[Entry]]
"""Index of each valid entry of a manifold -> its records."""

MOST_POINTS = 100_000
"""Points of one task, before equal ones are joined."""


class CheckedTasks:
    """The config's tasks, each checked through its own generator."""

    def __init__(self, config: Sweep) -> None:
        self.findings: list[Finding] = []
        self.samples: dict[str, Mapping[str, object]] = {}
        """Label of each good task -> params of its first point."""
        self.tasks: dict[str, Task] = {}
        """Label -> task, where it is known."""
        generators = all_tasks()
        for label, task in config.tasks.items():
            name = task.task or label
            path: Path = ("tasks", label) if task.task is None else ("tasks", label, "task")
            if name not in generators:
                names = sorted(generators)
                self.findings.append(
                    unknown_name(path, "task", name, names, "Tasks", at_key=task.task is None)
                )
                continue
            try:
                self.tasks[label] = generators[name]
            except TaskError as error:
                self.findings.append(Finding(path, _rule(error), at_key=task.task is None))
                continue
            parts = dict(task.parts(degree=config.degree, density=config.density))
            self._check(label, self.tasks[label], parts)

    def _check(self, label: str, task: Task, parts: _Parts) -> None:
        found = _too_many(label, [entry for part in parts.values() for entry in part])
        if not found:
            once: dict[Path, Finding] = {}
            for index, entries in parts.items():
                for error in find_problems(task, entries):
                    finding = _finding(("tasks", label), index, entries, error)
                    once.setdefault(finding.path, finding)
            found = list(once.values())
        self.findings += found
        if parts and not found:
            first = next(iter(parts.values()))
            self.samples[label] = expand(task, first[:1])[0].params.canonical()


def _too_many(label: str, entries: Sequence[Entry]) -> list[Finding]:
    total = sum(entry.size() for entry in entries)
    if total <= MOST_POINTS:
        return []
    rule = f"has {total:,} points, at most {MOST_POINTS:,} are allowed"
    return [Finding(("tasks", label, "manifold"), rule, remedy="Use fewer values")]


def _finding(path: Path, index: int | None, entries: Sequence[Entry], error: TaskError) -> Finding:
    where = error.where
    if index is None or where[:1] == ("params",):
        path = (*path, "params", *where[1:])
    else:
        path = (*path, "manifold", index, *_written(where, entries[0]))
    return Finding(path, _rule(error), at_key=error.message.startswith("unknown"))


def _written(where: Path, entry: Entry) -> Path:
    """Where a value of an axis stands: below `range`, if the axis is written so."""
    if len(where) == 3 and where[0] == "grid" and isinstance(where[2], int):
        axis = (entry.grid or {}).get(str(where[1]))
        return (*where[:2], "range", where[2]) if isinstance(axis, Axis) else where
    return where


def _rule(error: TaskError) -> str:
    return mask(" ".join(error.message.split())[:400].removesuffix("."))


SAMPLE_PROMPT = 'What is 2 + 3?\n"Quoted" text, a back\\slash and a line break are in here on purpose.'


def renders(config: Sweep, samples: Mapping[str, Mapping[str, object]]) -> Iterator[Finding]:
    """Each template renders, and uses the prompt.

    Parameters
    ----------
    samples
        Task -> params of one of its points, for the tasks that are valid.
    """
    for name, source in config.templates.items():
        finding = _tried(name, Template(source), samples)
        if finding is not None:
            yield finding


def _tried(name: str, template: Template, samples: Mapping[str, Mapping[str, object]]) -> Finding | None:
    """What fails when the template is rendered with one prompt per task."""
    guesses: dict[str, Mapping[str, object]] = {} if "params" in template.uses else {"task": {}}
    for task, params in (samples or guesses).items():
        try:
            template.render(prompt=SAMPLE_PROMPT, task=task, params=params)
        except TemplateError as error:
            at = f" (with task {task})" if "params" in template.uses else ""
            return Finding(
                ("templates", name, *error.where),
                mask(error.message) + at,
                remedy=error.remedy,
                text_line=error.line,
            )
    if "prompt" not in template.uses:
        rule = "never uses the prompt: every question would be the same"
        return Finding(("templates", name), rule, remedy="Write {{ prompt }} into it")
    return None
