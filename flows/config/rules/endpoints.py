"""Rules about what a model's endpoint cannot carry: batches, parameters, roles of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from evalcube.flows.config.findings import Finding, Path
from evalcube.flows.config.models import EvaluationRule, ModelConfig, SweepConfig
from evalcube.flows.config.partial import each, keys, listed
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.serving import SERVED
from evalcube.flows.config.templates import Template
from evalcube.flows.errors import TemplateError
from evalcube.stages.infer.apis import APIS, Api, ApiError
from evalcube.stages.process.rubric import judge_messages
from evalcube.stages.reply.forms import CHAT, MESSAGES

Samples = Mapping[str, Mapping[str, object]]
"""Task -> params of one of its points, to render templates with."""

_NO_BATCHES: tuple[tuple[Callable[[ModelConfig], bool], str, str], ...] = (
    (
        lambda model: model.api == MESSAGES,
        "excludes api: messages, which has batches of another kind",
        "Use api: chat, or remove batch",
    ),
    (
        lambda model: model.stream,
        "excludes stream: true, as a batch's answers come as a file",
        "Remove one of the two",
    ),
    (
        lambda model: model.addresses[0].startswith("local:"),
        "excludes local models, whose server has no batches",
        "Remove it",
    ),
    (
        lambda model: model.serve is not None,
        "excludes serve, as servers that a run starts have no batches",
        "Remove it",
    ),
    (
        lambda model: len(model.addresses) > 1,
        "excludes several addresses, as a batch is known to one server only",
        "Give one address, or remove it",
    ),
)


def batches(config: SweepConfig) -> Iterator[Finding]:
    """Only endpoints that have batches are asked so."""
    for excludes, rule, remedy in _NO_BATCHES:
        given = dict(each(config.models, lambda model: model.batch is not None))
        for index, broken in each(config.models, excludes):
            if broken and given.get(index):
                yield Finding(("models", index, "batch"), rule, remedy=remedy, at_key=True, shown=True)


def served(config: SweepConfig) -> Iterator[Finding]:
    """A model has either an address or a server of its own, and a preset can serve it."""
    for index, (given, endpoint) in each(
        config.models, lambda model: (model.serve is not None, model.endpoint)
    ):
        if given != (endpoint == SERVED):
            rule = "excludes serve" if given else "is the address of a model with serve: only"
            yield Finding(
                ("models", index, "endpoint"),
                rule,
                remedy="Remove one of the two" if given else "Add serve: {...}, or give its address",
                at_key=given,
            )
    for index, (serve, model) in each(config.models, lambda model: (model.serve, model.model)):
        if serve is not None and serve.preset == "ollama" and serve.model not in (None, model):
            yield Finding(
                ("models", index, "serve", "model"),
                "Ollama serves a model under its own name, which is what is sent as model",
                remedy=f"Write model: {show(serve.model)} beside the name, and leave this out",
                shown=True,
            )


def in_turn(config: SweepConfig) -> Iterator[Finding]:
    """Servers that take turns agree on how many run, and no judge waits for its turn."""
    first: int | None = None
    names: set[str] = set()
    rows = each(config.models, lambda model: (model.name, None if model.serve is None else model.serve.keep))
    for index, (name, keep) in rows:
        if keep is None:
            continue
        names.add(name)
        first = keep if first is None else first
        if keep != first:
            yield Finding(
                ("models", index, "serve", "keep"),
                f"must be the same for all servers that take turns, and is {first} above",
                remedy="Give the same number",
                shown=True,
            )
    for index, name in each(config.judges, lambda judge: judge.model):
        if name in names:
            yield Finding(
                ("judges", index, "model"),
                "a judge rates answers while others give them, and its server has `keep`: it waits for its turn",
                remedy="Remove `keep` there, or serve the judge elsewhere and give its endpoint",
                shown=True,
            )


def evaluations_fit(config: SweepConfig, samples: Samples) -> Iterator[Finding]:
    """Evaluations' samplers and templates go to models whose API can carry them.

    Parameters
    ----------
    samples
        Of the tasks that are valid.
    """
    apis = _apis(config)
    rows = each(config.models, lambda model: (model.name, model.measured))
    measured = [name for _, (name, is_measured) in rows if is_measured]
    samplers = dict(listed(lambda: each(config.samplers)))
    templates = dict(listed(lambda: each(config.templates)))
    rules = (EvaluationRule(),) if config.evaluations is None else config.evaluations
    for _, (models, names) in each(
        rules, lambda rule: (_chosen(rule.models, measured), _chosen(rule.samplers, samplers))
    ):
        for model, name in product(models, names):
            if model in apis and name in samplers:
                yield from _sampler(("samplers", name), samplers[name], apis[model])
    for _, (models, names) in each(
        rules, lambda rule: (_chosen(rule.models, measured), _chosen(rule.templates, templates))
    ):
        for model, name in product(models, names):
            if model in apis and name in templates:
                yield from _template(name, templates[name], apis[model], samples)


def _chosen(names: Sequence[str] | None, default: Iterable[str]) -> list[str]:
    return list(default) if names is None else [name for _, name in each(names)]


def judges_fit(config: SweepConfig) -> Iterator[Finding]:
    """Judges' samplers and messages go to models whose API can carry them."""
    apis = _apis(config)
    samplers = dict(listed(lambda: each(config.samplers)))
    for index, (model, sampler) in each(config.judges, lambda judge: (judge.model, judge.sampler)):
        if model not in apis:
            continue
        if not isinstance(sampler, str):
            yield from _sampler(("judges", index, "sampler"), sampler, apis[model])
        elif sampler in samplers:
            yield from _sampler(("samplers", sampler), samplers[sampler], apis[model])
    for index, model in each(config.judges, lambda judge: judge.model):
        try:
            if model in apis:
                apis[model].write(judge_messages("", "", ""))
        except ApiError:
            yield Finding(
                ("judges", index, "model"),
                f"judges are asked with a system message, and api: {apis[model].name} knows none",
                remedy="Take a model with api: chat or messages",
            )


def _apis(config: SweepConfig) -> dict[str, Api]:
    """The API of each model whose API does not carry everything."""
    rows = each(config.models, lambda model: (model.name, model.api))
    return {name: APIS[api] for _, (name, api) in rows if api != CHAT}


def _sampler(path: Path, sampler: Mapping[str, object], api: Api) -> Iterator[Finding]:
    given = dict.fromkeys(keys(sampler), True) | dict(each(sampler))  # one with a wrong value is given, too
    for error in api.problems(given):
        where = path if error.param is None else (*path, error.param)
        yield Finding(where, error.rule, remedy=error.remedy, at_key=True)


def _template(name: str, source: str | list[dict[str, str]], api: Api, samples: Samples) -> Iterator[Finding]:
    template = Template(source)
    try:
        for task, params in (samples or {"task": {}}).items():
            api.write(template.render(prompt="?", task=task, params=params))
    except TemplateError:
        return  # `evalcube.flows.config.rules.templates` says so
    except ApiError as error:
        yield Finding(("templates", name), error.rule, remedy=error.remedy, at_key=True)
