"""The packaged suites, among them recipes of known ones, and what a task takes over from one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import abc, files
from itertools import chain
from typing import Any

from evalcube.flows.config.findings import Finding
from evalcube.flows.config.near_names import did_you_mean, listed
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.text import YamlText
from evalcube.flows.errors import SweepError, need_text
from evalcube.stages.generate.errors import TaskError

_SHOWN = 12
"""Tasks that a sentence names."""


def recipe_names() -> list[str]:
    """The packaged suites that ask the questions of a known data set."""
    return sorted(_files("suites/recipes"))


def suite_names() -> list[str]:
    """The packaged suites."""
    return sorted([*_files("suites"), *_files("suites/recipes")])


@cache
def _files(folder: str) -> Mapping[str, abc.Traversable]:
    paths = files("evalcube.flows.config").joinpath(folder).iterdir()
    return {path.name.removesuffix(".yaml"): path for path in paths if path.name.endswith(".yaml")}


def suite_text(name: str) -> str:
    """The YAML text of a suite."""
    available = suite_names()
    if need_text("name", name) not in available:
        raise SweepError(f"there is no suite {show(name)}", did_you_mean(name, available, "Suites"))
    return {**_files("suites"), **_files("suites/recipes")}[name].read_text(encoding="utf-8")


def suite_section(name: str) -> dict[str, Any]:
    """What a suite says, as plain values; raises as `suite_text`."""
    section: Any = YamlText(suite_text(name)).value
    return with_suites({**section})[0]


def unverified(tasks: object) -> tuple[str, ...]:
    """What to say of tasks whose recipes nobody has held against published numbers, a sentence; empty where all are."""
    named = tasks.items() if isinstance(tasks, Mapping) else ()
    recipes = {str(label): task.get("recipe") for label, task in named if isinstance(task, Mapping)}
    labels = [label for label, row in recipes.items() if isinstance(row, Mapping) and not row.get("verified")]
    if not labels:
        return ()
    shown = listed([label[:128] for label in labels], _SHOWN)
    text = (
        f"verified: no ({shown}). Nobody has run it on the real rows yet and compared: hold such a number against "
        "others made the same way, and not against published ones."
    )
    return (text,)


def joined_suites(names: Sequence[str]) -> dict[str, Any]:
    """Several suites as one: the tasks of all, each with its own questions, asked in one way."""
    sections = {name: suite_section(name) for name in names}
    first, whole = names[0], sections[names[0]]
    for name, section in sections.items():
        differ = sorted(
            key
            for key in {*whole, *section} - {"name", "tasks", "trials", "judges"}
            if whole.get(key) != section.get(key)
        )
        if differ or (name != first and whole["tasks"].keys() & section["tasks"]):
            rule = f"{first} and {name} differ in {', '.join(differ) or 'what tasks of one name ask'}"
            remedy = (
                "Run them one after the other, or name tasks of both in one config: {gsm8k: {suite: gsm8k}}"
            )
            raise SweepError(f"{rule}, so that they are not one sweep", remedy)
        whole = {**whole, "tasks": {**whole["tasks"], **(section["tasks"] if name != first else {})}}
        whole |= {"judges": section["judges"]} if "judges" in section else {}
    return {**whole, "name": " ".join(names), "trials": max(tasks["trials"] for tasks in sections.values())}


def with_suites(raw: dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """A config whose tasks that name a suite say what that suite's task says, with a group of lm-eval as its tasks.

    What is wrong with such names comes beside it.
    """
    tasks, mistakes = raw.get("tasks"), list[Finding]()
    if not isinstance(tasks, Mapping):
        return raw, mistakes
    filled = {label: _fill_from_suite(label, task, mistakes) for label, task in tasks.items()}
    return {**raw, "tasks": dict(chain(*(_members(*item, mistakes) for item in filled.items())))}, mistakes


def _members(label: object, task: object, found: list[Finding]) -> Iterator[tuple[object, object]]:
    """A task by its label, or all tasks of the group that it names."""
    own = task if isinstance(task, Mapping) else {}
    name, params = str(own.get("task") or label), own.get("params")
    names: list[str] = []
    if name.startswith("lm-eval:"):
        from evalcube.stages.generate.foreign.lm_eval import members_of

        try:
            names = members_of(name, str((isinstance(params, Mapping) and params.get("include_path")) or ""))
        except TaskError as error:
            found.append(Finding(("tasks", str(label)), error.message))
    for member in names:
        yield ((member if name == label else f"{label} {member.rpartition(':')[2]}"), {**own, "task": member})
    if not names:
        yield label, task


def _fill_from_suite(label: object, task: object, found: list[Finding]) -> object:
    """A task with what its suite says of it."""
    if not isinstance(task, Mapping) or not isinstance(task.get("suite"), str):
        return task
    path, own = ("tasks", str(label), "suite"), {name: task[name] for name in task if name != "suite"}
    try:
        tasks = suite_section(task["suite"])["tasks"]
    except SweepError as error:
        found.append(Finding(path, error.message, remedy=error.remedy))
        return task
    wanted = next(iter(tasks)) if len(tasks) == 1 else own.get("task", label)
    if wanted not in tasks:
        rule = f"has no task {show(str(wanted))}"
        found.append(Finding(path, rule, remedy=did_you_mean(str(wanted), list(tasks), "Its tasks")))
        return task
    taken = {"task": wanted, **tasks[wanted]}
    params = {"params": {**(taken.get("params") or {}), **own["params"]}} if _mergeable(own, taken) else {}
    return {**taken, **{name: own[name] for name in own if name != "task"}, **params}


def _mergeable(own: Mapping[str, object], taken: Mapping[str, object]) -> bool:
    return isinstance(own.get("params"), Mapping) and isinstance(taken.get("params") or {}, Mapping)
