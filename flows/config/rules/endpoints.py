"""Rules about what a model's endpoint cannot carry: batches, parameters, roles of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from flows.config.findings import Finding, Path
from flows.config.models import EvaluationRule, ModelConfig, SweepConfig
from flows.config.partial import each, keys, listed
from flows.config.templates import Template
from flows.errors import TemplateError
from stages.infer.apis import APIS, Api, ApiError
from stages.process.rubric import judge_messages
from stages.reply.forms import CHAT, MESSAGES

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
        lambda model: model.endpoint.startswith("local:"),
        "excludes local models, whose server has no batches",
        "Remove it",
    ),
)


def batches(config: SweepConfig) -> Iterator[Finding]:
    """Only endpoints that have batches are asked so."""
    for excludes, rule, remedy in _NO_BATCHES:
        given = dict(each(config.models, lambda model: model.batch is not None))
        for index, broken in each(config.models, excludes):
            if broken and given.get(index):
                yield Finding(("models", index, "batch"), rule, remedy=remedy, at_key=True, shown=True)


def carries(config: SweepConfig, samples: Samples) -> Iterator[Finding]:
    """Samplers and templates go to models whose API can carry them; what several models lack is reported once.

    Parameters
    ----------
    samples
        Of the tasks that are valid.
    """
    rows = each(config.models, lambda model: (model.name, model.api))
    apis = {name: APIS[api] for _, (name, api) in rows if api != CHAT}
    found: dict[tuple[Path, str], Finding] = {}
    for rule in (_evaluations(config, apis, samples), _judges(config, apis)):
        for finding in rule:
            found.setdefault((finding.path, finding.rule), finding)
    yield from found.values()


def _evaluations(config: SweepConfig, apis: Mapping[str, Api], samples: Samples) -> Iterator[Finding]:
    rows = each(config.models, lambda model: (model.name, model.measured))
    measured = [name for _, (name, is_measured) in rows if is_measured]
    samplers = dict(listed(lambda: each(config.samplers)))
    templates = dict(listed(lambda: each(config.templates)))

    def asked(rule: EvaluationRule) -> tuple[list[str], list[str], list[str]]:
        return (
            _chosen(rule.models, measured),
            _chosen(rule.samplers, samplers),
            _chosen(rule.templates, templates),
        )

    rules = (EvaluationRule(),) if config.evaluations is None else config.evaluations
    for _, (models, by_samplers, by_templates) in each(rules, asked):
        for api in (apis[model] for model in models if model in apis):
            for name in by_samplers:
                if name in samplers:
                    yield from _sampler(("samplers", name), samplers[name], api)
            for name in by_templates:
                if name in templates:
                    yield from _template(name, templates[name], api, samples)


def _chosen(names: Sequence[str] | None, default: Iterable[str]) -> list[str]:
    return list(default) if names is None else [name for _, name in each(names)]


def _judges(config: SweepConfig, apis: Mapping[str, Api]) -> Iterator[Finding]:
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
        return  # `flows.config.rules.templates` says so
    except ApiError as error:
        yield Finding(("templates", name), error.rule, remedy=error.remedy, at_key=True)
