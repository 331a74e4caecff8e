"""A raw config mapping -> findings about rules between fields: unique names, references, tasks, templates.

The mapping may be wrong in any way; whatever `flows.config.models` finds by itself is passed over here, so
that one mistake is told once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pydantic import ValidationError

from flows.config.findings import Finding, Path, did_you_mean
from flows.config.models import ManifoldEntry
from flows.config.secrecy import mask, show
from flows.config.templates import Template
from flows.errors import TemplateError
from stages.generate import Entry, Task, TaskError, all_tasks, expand, find_problems

MOST_POINTS = 100_000
"""Points of one task, before equal ones are joined."""
SAMPLE_PROMPT = 'What is 2 + 3?\n"Quoted" text, a back\\slash and a line break are in here on purpose.'


def check(raw: Mapping[str, object]) -> list[Finding]:
    """Apply every rule between fields."""
    tasks = _Tasks(raw)
    checks: tuple[Callable[[Mapping[str, object]], Iterable[Finding]], ...] = (
        _unique_names,
        _simulate_only_with_sim,
        _token_limits,
        _references,
    )
    return [finding for rule in checks for finding in rule(raw)] + tasks.findings + _probe(raw, tasks.samples)


def _models(raw: Mapping[str, object]) -> Iterator[tuple[int, Mapping[str, object]]]:
    for index, model in enumerate(_items(raw.get("models"))):
        if isinstance(model, Mapping):
            yield index, model


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _unique_names(raw: Mapping[str, object]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, model in _models(raw):
        name = model.get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            yield Finding(
                ("models", index, "name"),
                f"model names must be unique: models[{first[name]}] has this one, too",
                show(name),
                "Give one of them another name",
            )
        first.setdefault(name, index)


def _simulate_only_with_sim(raw: Mapping[str, object]) -> Iterator[Finding]:
    for index, model in _models(raw):
        endpoint = model.get("endpoint")
        if model.get("simulate") is None or not isinstance(endpoint, str) or endpoint.startswith("sim"):
            continue
        yield Finding(
            ("models", index, "simulate"),
            "only a simulated model has abilities to simulate",
            remedy='Remove it, or write endpoint: "sim:"',
        )


def _token_limits(raw: Mapping[str, object]) -> Iterator[Finding]:
    for name, sampler in _mapping(raw.get("samplers")).items():
        for param in ("max_tokens", "max_completion_tokens"):
            value = _mapping(sampler).get(param, 1)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                yield Finding(
                    ("samplers", name, param),
                    "must be a whole number of at least 1",
                    show(value),
                    "Leave it out for the server's default",
                )


def _references(raw: Mapping[str, object]) -> Iterator[Finding]:
    known: dict[str, list[object]] = {
        "models": list(
            dict.fromkeys(model["name"] for _, model in _models(raw) if isinstance(model.get("name"), str))
        ),
        "templates": list(_mapping(raw.get("templates", {"plain": None}))),
        "samplers": list(_mapping(raw.get("samplers"))),
    }
    for index, rule in enumerate(_items(raw.get("evaluations"))):
        for kind, names in known.items():
            for position, name in enumerate(_items(_mapping(rule).get(kind))):
                if not names or not isinstance(name, str) or name in names:
                    continue
                yield Finding(
                    ("evaluations", index, kind, position),
                    f"unknown {kind[:-1]} {show(name)}",
                    remedy=did_you_mean(name, [str(known_name) for known_name in names], kind.capitalize()),
                )


class _Tasks:
    """The config's tasks, each checked through its own generator."""

    def __init__(self, raw: Mapping[str, object]) -> None:
        self.findings: list[Finding] = []
        self.samples: dict[str, Mapping[str, object]] = {}
        """Name of each good task -> params of its first point."""
        section = _mapping(raw.get("tasks"))
        if not section:
            return
        try:
            known = all_tasks()
        except TaskError as error:
            self.findings.append(Finding(("tasks",), _rule(error)))
            return
        for name, value in section.items():
            if name in known:
                self._check(name, known[name], value)
            else:
                remedy = did_you_mean(name, sorted(known), "Tasks")
                self.findings.append(
                    Finding(("tasks", name), f"unknown task {show(name)}", remedy=remedy, at_key=True)
                )

    def _check(self, name: str, task: Task, value: object) -> None:
        entries = dict(_good_entries(_mapping(value).get("manifold")))
        found = _too_many(name, list(entries.values()))
        if not found:
            for index, entry in entries.items():
                found += [_task_finding(name, index, error) for error in find_problems(task, [entry])]
        self.findings += found
        if entries and not found:
            self.samples[name] = expand(task, list(entries.values())[:1])[0].params.canonical()


def _good_entries(manifold: object) -> Iterator[tuple[int, Entry]]:
    """Pick the entries of the right form; the models tell what is wrong with the others."""
    for index, item in enumerate(_items(manifold)):
        try:
            entry = ManifoldEntry.model_validate(item).entry()
        except ValidationError:
            continue
        yield index, entry


def _too_many(name: str, entries: Sequence[Entry]) -> list[Finding]:
    total = sum(map(_size, entries))
    if total <= MOST_POINTS:
        return []
    rule = f"has {total:,} points, at most {MOST_POINTS:,} are allowed"
    return [Finding(("tasks", name, "manifold"), rule, remedy="Use fewer values")]


def _size(entry: Entry) -> int:
    if entry.points is not None:
        return len(entry.points)
    axes = (entry.grid or {}).values()
    return math.prod(len(values) if isinstance(values, (list, tuple)) else 1 for values in axes)


def _task_finding(name: str, index: int, error: TaskError) -> Finding:
    unknown = error.message.startswith("unknown")
    return Finding(("tasks", name, "manifold", index, *error.where), _rule(error), at_key=unknown)


def _rule(error: TaskError) -> str:
    return mask(" ".join(error.message.split())[:400].removesuffix("."))


def _probe(raw: Mapping[str, object], samples: Mapping[str, Mapping[str, object]]) -> list[Finding]:
    found = []
    for name, source in _mapping(raw.get("templates")).items():
        try:
            template = Template(source)  # type: ignore[arg-type]  # a wrong type is told by the models
        except TemplateError:
            continue
        finding = _probe_one(template, samples)
        if finding is not None:
            rule, remedy, where = finding
            found.append(Finding(("templates", name, *where), rule, remedy=remedy))
    return found


def _probe_one(
    template: Template, samples: Mapping[str, Mapping[str, object]]
) -> tuple[str, str, Path] | None:
    """Render with one prompt per task; return rule, remedy and place of what fails."""
    guesses: dict[str, Mapping[str, object]] = {} if "params" in template.uses else {"task": {}}
    for task, params in (samples or guesses).items():
        try:
            template.render(prompt=SAMPLE_PROMPT, task=task, params=params)
        except TemplateError as error:
            at = f" (with task {task})" if "params" in template.uses else ""
            return mask(error.message) + at, error.remedy, error.where
    if "prompt" not in template.uses:
        return "never uses the prompt: every question would be the same", "Write {{ prompt }} into it", ()
    return None
