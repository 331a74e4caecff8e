"""A raw config mapping -> findings about assertions, rubrics and judges: declarations, references, who judges what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from flows.config.findings import Finding, Path, did_you_mean
from flows.config.raw import items, mapping
from flows.config.secrecy import mask, show
from stages.process.assertions import DeclarationError, Hooks, parse_assertions
from stages.process.assertions.hooks import installed_hooks


def check_judging(raw: Mapping[str, object]) -> Iterator[Finding]:
    """Apply every rule about assertions, rubrics and judges."""
    yield from _assertions(raw)
    yield from _judges(raw)
    yield from _unmeasured(raw)
    if not items(raw.get("judges")):
        for label, task in mapping(raw.get("tasks")).items():
            if isinstance(mapping(task).get("rubric"), str):
                yield Finding(
                    ("tasks", label, "rubric"),
                    "nobody judges by it",
                    remedy="Add judges: [{model: NAME}], or remove the rubric",
                    at_key=True,
                )


def _assertions(raw: Mapping[str, object]) -> Iterator[Finding]:
    for label, task in mapping(raw.get("tasks")).items():
        path: Path = ("tasks", label, "assertions")
        for index, declared in enumerate(items(mapping(task).get("assertions"))):
            if not isinstance(declared, Mapping):
                continue  # told by the models
            try:
                parse_assertions([declared], hooks=known_hooks())
            except DeclarationError as error:
                where = declared_path(error)
                if where[:2] != ("assertions", 0):  # of an installed package
                    yield Finding(path, mask(error.rule), remedy=error.remedy)
                    return
                yield Finding((*path, index, *where[2:]), mask(error.rule), remedy=_sentence(error.remedy))


@cache
def known_hooks() -> Hooks:
    """The functions that installed packages have for assertions, looked for once in a process."""
    return installed_hooks()


def declared_path(error: DeclarationError) -> Path:
    """Where a declaration is wrong, as steps.

    Examples
    --------
    >>> declared_path(DeclarationError("assertions[1].children[0]", "values[2]", 3, "rule", "remedy"))
    ('assertions', 1, 'children', 0, 'values', 2)
    """
    place = f"{error.where}.{error.field}" if error.field else error.where
    return tuple(int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", place))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _names(rows: object) -> list[str]:
    return [str(row["name"]) for row in items(rows) if isinstance(row, Mapping) and "name" in row]


def _judges(raw: Mapping[str, object]) -> Iterator[Finding]:
    models = list(dict.fromkeys(_names(raw.get("models"))))
    samplers = list(mapping(raw.get("samplers")))
    first: dict[str, int] = {}
    for index, judge in enumerate(items(raw.get("judges"))):
        fields = mapping(judge)
        model, sampler = fields.get("model"), fields.get("sampler")
        yield from _reference(("judges", index, "model"), model, models, "Models")
        yield from _reference(("judges", index, "sampler"), sampler, samplers, "Samplers")
        limit = mapping(sampler).get("max_tokens", 1)
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            yield Finding(
                ("judges", index, "sampler", "max_tokens"),
                "must be a whole number of at least 1",
                show(limit),
            )
        name = fields.get("name", model)
        if isinstance(name, str) and name in first:
            yield Finding(
                ("judges", index, "name" if "name" in fields else "model"),
                f"judges need different names: judges[{first[name]}] has this one, too",
                show(name),
                "Give it a name of its own",
            )
        elif isinstance(name, str):
            first[name] = index


def _reference(path: Path, name: object, known: Sequence[str], what: str) -> Iterator[Finding]:
    if isinstance(name, str) and known and name not in known:
        yield Finding(
            path, f"unknown {what.lower()[:-1]} {show(name)}", remedy=did_you_mean(name, list(known), what)
        )


def _unmeasured(raw: Mapping[str, object]) -> Iterator[Finding]:
    rows = [model for model in items(raw.get("models")) if isinstance(model, Mapping)]
    judging = {str(model.get("name")) for model in rows if model.get("measured") is False}
    if rows and len(judging) == len(rows):
        yield Finding(
            ("models",), "no model is measured", remedy="Remove `measured: false` from one, or add a model"
        )
    for index, rule in enumerate(items(raw.get("evaluations"))):
        for position, name in enumerate(items(mapping(rule).get("models"))):
            if name in judging:
                yield Finding(
                    ("evaluations", index, "models", position),
                    f"model {show(name)} has `measured: false`",
                    remedy="Remove it here, or there",
                )
