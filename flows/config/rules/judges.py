"""Rules about assertions, rubrics and judges: declarations, references, who judges what."""

from __future__ import annotations

from collections.abc import Iterator

from evalcube.flows.config.assertions import declared_path, known_hooks, offers_tools
from evalcube.flows.config.findings import Finding, Path, unknown_name
from evalcube.flows.config.models import EvaluationRule, SweepConfig
from evalcube.flows.config.partial import each, keys, listed
from evalcube.flows.config.rules.models import names_of, repeated
from evalcube.flows.config.rules.sampling import limits
from evalcube.flows.config.secrecy import mask
from evalcube.stages.process.assertions import DeclarationError, parse_assertions, unmeasurable


def assertions(config: SweepConfig) -> Iterator[Finding]:
    """Each assertion is declared as its type asks."""
    for label, declarations in each(config.tasks, lambda task: task.assertions):
        path: Path = ("tasks", label, "assertions")
        for index, declared in each(declarations, dict):
            try:
                parse_assertions([declared], hooks=known_hooks())
            except DeclarationError as error:
                where = declared_path(error)
                if where[:2] != ("assertions", 0):  # of an installed package
                    yield Finding(path, mask(error.rule), remedy=error.remedy)
                    return
                remedy = error.remedy[:1].upper() + error.remedy[1:]
                yield Finding((*path, index, *where[2:]), mask(error.rule), remedy=remedy)


def measured_assertions(config: SweepConfig) -> Iterator[Finding]:
    """Assertions about tools are measured: every request offers some."""
    tools = _all_offer_tools(config)
    for label, declarations in each(config.tasks, lambda task: task.assertions):
        for index, declared in each(declarations, dict):
            try:
                parsed = parse_assertions([declared], hooks=known_hooks())
            except DeclarationError:
                continue
            for kind, why, remedy in unmeasurable(parsed, tools=tools):
                yield Finding(
                    ("tasks", label, "assertions", index), f"{kind} cannot be measured: {why}", remedy=remedy
                )


def _all_offer_tools(config: SweepConfig) -> bool:
    """Whether each sampler of an evaluation has tools, as far as samplers are valid."""
    samplers = dict(each(config.samplers))
    rules = (EvaluationRule(),) if config.evaluations is None else config.evaluations
    chosen = [list(rule.samplers or samplers) for _, rule in each(rules)]
    used = [samplers[name] for names in chosen for name in names if name in samplers]
    # A wrong value is somebody else's to report.
    wrong = ["tools" in keys(sampler) and "tools" not in dict(each(sampler)) for sampler in used]
    return all(bad or offers_tools(sampler) for bad, sampler in zip(wrong, used, strict=True))


def references(config: SweepConfig) -> Iterator[Finding]:
    """Judges have models and samplers that there are, and limits that are numbers of tokens."""
    models, samplers = listed(lambda: names_of(config)), listed(lambda: keys(config.samplers))
    for index, name in each(config.judges, lambda judge: judge.model):
        if models and name not in models:
            yield unknown_name(("judges", index, "model"), "model", name, models, "Models")
    for index, sampler in each(config.judges, lambda judge: judge.sampler):
        path: Path = ("judges", index, "sampler")
        if not isinstance(sampler, str):
            yield from limits(path, sampler, ("max_tokens",))
        elif samplers and sampler not in samplers:
            yield unknown_name(path, "sampler", sampler, samplers, "Samplers")


def control(config: SweepConfig) -> Iterator[Finding]:
    """The variant in use is one of the evaluations."""
    name = None if config.composite is None else config.composite.control
    if name is None:
        return
    first, *others = (part.strip() for part in name.replace(" · ", " / ").split(" / "))
    combinations = config.combinations()
    found = [row for row in combinations if row[0].name == first and set(others) <= set(row[1:])]
    if len(found) == 1:
        return
    path: Path = ("composite", "control")
    if not found:
        known = list(dict.fromkeys(model.name for model, _, _ in combinations))
        yield unknown_name(path, "evaluation", name, known, "Evaluations")
    else:
        shown = " / ".join((found[0][0].name, *found[0][1:]))
        yield Finding(path, f"several evaluations are called '{mask(name)}'", remedy=f"Write one as {shown}")


def unique_names(config: SweepConfig) -> Iterator[Finding]:
    """No two judges have one name."""
    named = dict(each(config.judges, lambda judge: "name" in judge.model_fields_set))
    for index, first in repeated(each(config.judges, lambda judge: judge.name)):
        yield Finding(
            ("judges", index, "name" if named[index] else "model"),
            f"judges need different names: judges[{first}] has this one, too",
            remedy="Give it a name of its own",
            shown=True,
        )


def rubrics_are_used(config: SweepConfig) -> Iterator[Finding]:
    """A rubric has judges."""
    if config.judges:
        return
    for label, rubric in each(config.tasks, lambda task: task.rubric):
        if rubric is not None:
            yield Finding(
                ("tasks", label, "rubric"),
                "nobody judges by it",
                remedy="Add judges: [{model: NAME}], or remove the rubric",
                at_key=True,
            )
