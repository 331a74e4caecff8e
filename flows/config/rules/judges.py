"""Rules about assertions, rubrics and judges: declarations, references, who judges what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalcube.flows.config.findings import Finding, Path, unknown_name
from evalcube.flows.config.judges import declared_path, known_hooks, offers_tools
from evalcube.flows.config.rules.models import names_of, repeated
from evalcube.flows.config.rules.sampling import limits
from evalcube.flows.config.secrecy import mask, show
from evalcube.stages.process.assertions import DeclarationError, parse_assertions, unmeasurable

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep


def assertions(config: Sweep) -> Iterator[Finding]:
    """Each assertion is declared as its type asks, and those about tools are measured: every request offers some."""
    samplers = {sampler for _, _, sampler in config.combinations()}
    tools = all(offers_tools(params) for name, params in config.samplers.items() if name in samplers)
    for label, task in config.tasks.items():
        path: Path = ("tasks", label, "assertions")
        for index, declared in enumerate(task.assertions or ()):
            try:
                parsed = parse_assertions([declared], hooks=known_hooks())
            except DeclarationError as error:
                where = declared_path(error)
                if where[:2] != ("assertions", 0):  # of an installed package
                    yield Finding(path, mask(error.rule), remedy=error.remedy)
                    return
                remedy = error.remedy[:1].upper() + error.remedy[1:]
                yield Finding((*path, index, *where[2:]), mask(error.rule), remedy=remedy)
                continue
            for kind, why, remedy in unmeasurable(parsed, tools=tools):
                yield Finding((*path, index), f"{kind} cannot be measured: {why}", remedy=remedy)


def references(config: Sweep) -> Iterator[Finding]:
    """Judges have models and samplers that there are, and limits that are numbers of tokens."""
    models, samplers = names_of(config), list(config.samplers)
    for index, judge in enumerate(config.judges):
        if judge.model not in models:
            yield unknown_name(("judges", index, "model"), "model", judge.model, models, "Models")
        path: Path = ("judges", index, "sampler")
        if not isinstance(judge.sampler, str):
            yield from limits(path, judge.sampler, ("max_tokens",))
        elif judge.sampler not in samplers:
            yield unknown_name(path, "sampler", judge.sampler, samplers, "Samplers")


def control(config: Sweep) -> Iterator[Finding]:
    """The variant in use is one of the evaluations."""
    name = None if config.composite is None else config.composite.control
    if name is None:
        return
    first, *remaining = (part.strip() for part in name.replace(" · ", " / ").split(" / "))
    combinations = config.combinations()
    matches = [row for row in combinations if row[0].name == first and set(remaining) <= set(row[1:])]
    if len(matches) == 1:
        return
    path: Path = ("composite", "control")
    if not matches:
        available = list(dict.fromkeys(model.name for model, _, _ in combinations))
        yield unknown_name(path, "evaluation", name, available, "Evaluations")
    else:
        shown = " / ".join((matches[0][0].name, *matches[0][1:]))
        yield Finding(path, f"several evaluations are called '{mask(name)}'", remedy=f"Write one as {shown}")


def unique_names(config: Sweep) -> Iterator[Finding]:
    """No two judges have one name."""
    for index, first in repeated(judge.name for judge in config.judges):
        judge = config.judges[index]
        path: Path = ("judges", index, "name" if "name" in judge.model_fields_set else "model")
        rule = f"judges need different names: judges[{first}] has this one, too"
        yield Finding(path, rule, show(judge.name), "Give it a name of its own")


def rubrics_are_used(config: Sweep) -> Iterator[Finding]:
    """A rubric has judges."""
    if config.judges:
        return
    for label, task in config.tasks.items():
        if task.rubric is not None:
            remedy = "Add judges: [{model: NAME}], or give `judges` with the models, or remove the rubric"
            yield Finding(("tasks", label, "rubric"), "nobody judges by it", remedy=remedy, at_key=True)
