"""A raw config mapping -> findings about what each model's API cannot carry: parameters, roles of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flows.config.findings import Finding, Path
from flows.config.judges import DEFAULT_SAMPLER
from flows.config.raw import items, mapping
from flows.config.secrecy import show
from flows.config.templates import Template
from flows.errors import TemplateError
from stages.infer.apis import APIS, Api, ApiError
from stages.process.rubric import judge_messages
from stages.reply.forms import CHAT, MESSAGES

Row = Mapping[str, object]


def check_apis(raw: Row, samples: Mapping[str, Row]) -> list[Finding]:
    """Find samplers and templates that go to models whose API has no such thing.

    Parameters
    ----------
    samples
        Params to render templates with, by task.
    """
    kinds = {
        str(model.get("name")): APIS[str(model["api"])]
        for model in items(raw.get("models"))
        if isinstance(model, Mapping) and model.get("api", CHAT) != CHAT and str(model["api"]) in APIS
    }
    found: dict[tuple[Path, str], Finding] = {}
    for finding in (*_batches(raw), *_evaluations(raw, kinds, samples), *_judges(raw, kinds)):
        found.setdefault((finding.path, finding.rule), finding)  # several models may break one rule
    return list(found.values())


def _batches(raw: Row) -> Iterator[Finding]:
    for index, row in enumerate(items(raw.get("models"))):
        model = mapping(row)
        if model.get("batch") in (None, False):
            continue
        for broken, rule, remedy in (
            (
                model.get("api") == MESSAGES,
                "excludes api: messages, which has batches of another kind",
                "Use api: chat, or remove batch",
            ),
            (
                model.get("stream") is True,
                "excludes stream: true, as a batch's answers come as a file",
                "Remove one of the two",
            ),
            (
                str(model.get("endpoint")).startswith("local:"),
                "excludes local models, whose server has no batches",
                "Remove it",
            ),
        ):
            if broken:
                yield Finding(("models", index, "batch"), rule, show(model["batch"]), remedy, at_key=True)


def _evaluations(raw: Row, kinds: Mapping[str, Api], samples: Mapping[str, Row]) -> Iterator[Finding]:
    templates = mapping(raw.get("templates"))
    samplers = mapping(raw.get("samplers"))
    rules = [mapping(rule) for rule in items(raw.get("evaluations"))] or [{}]
    measured = [
        str(model.get("name"))
        for model in items(raw.get("models"))
        if isinstance(model, Mapping) and model.get("measured") is not False
    ]
    for rule in rules:
        for model in _chosen(rule, "models", measured):
            api = kinds.get(model)
            if api is None:
                continue
            for name in _chosen(rule, "samplers", list(samplers)):
                yield from _sampler(("samplers", name), samplers.get(name), api)
            for name in _chosen(rule, "templates", list(templates)):
                if name in templates:
                    yield from _template(name, templates[name], api, samples)


def _chosen(rule: Row, kind: str, default: Sequence[str]) -> list[str]:
    return [name for name in items(rule.get(kind)) if isinstance(name, str)] or list(default)


def _judges(raw: Row, kinds: Mapping[str, Api]) -> Iterator[Finding]:
    samplers = mapping(raw.get("samplers"))
    for index, row in enumerate(items(raw.get("judges"))):
        judge = mapping(row)
        api, sampler = kinds.get(str(judge.get("model"))), judge.get("sampler", DEFAULT_SAMPLER)
        if api is None:
            continue
        if isinstance(sampler, str):
            yield from _sampler(("samplers", sampler), samplers.get(sampler), api)
        else:
            yield from _sampler(("judges", index, "sampler"), sampler, api)
        try:
            api.write(judge_messages("", "", ""))
        except ApiError:
            yield Finding(
                ("judges", index, "model"),
                f"judges are asked with a system message, and api: {api.name} knows none",
                remedy="Take a model with api: chat or messages",
            )


def _sampler(path: Path, sampler: object, api: Api) -> Iterator[Finding]:
    if not isinstance(sampler, Mapping):
        return  # told by the models, or by the references
    params = {name: value for name, value in sampler.items() if isinstance(name, str)}
    for error in api.problems(params):
        where = path if error.param is None else (*path, error.param)
        yield Finding(where, error.rule, remedy=error.remedy, at_key=True)


def _template(name: str, source: object, api: Api, samples: Mapping[str, Row]) -> Iterator[Finding]:
    try:
        template = Template(source)  # type: ignore[arg-type]  # a wrong type is told by the models
        for task, params in (samples or {"task": {}}).items():
            api.write(template.render(prompt="?", task=task, params=params))
    except TemplateError:
        return  # told where templates are tried
    except ApiError as error:
        yield Finding(("templates", name), error.rule, remedy=error.remedy, at_key=True)
