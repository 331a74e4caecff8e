"""Rules about which models there are, what the evaluations take, and what a model's endpoint cannot carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from evalcube.flows.config.findings import Finding, Path, unknown_name
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.serving import SERVED
from evalcube.stages.infer.apis import APIS, Api, ApiError
from evalcube.stages.process.judging import judge_messages
from evalcube.stages.reply.forms import CHAT

if TYPE_CHECKING:
    from evalcube.flows.config.models import Model, Sweep


def unique_names(config: Sweep) -> Iterator[Finding]:
    """No two models have one name."""
    for index, first in repeated(model.name for model in config.models):
        rule = f"model names must be unique: models[{first}] has this one, too"
        value = show(config.models[index].name)
        yield Finding(("models", index, "name"), rule, value, "Give one of them another name")


def repeated(names: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The index of each name that was there before, and the index where it was first."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            yield index, first[name]


def whole_prices(config: Sweep) -> Iterator[Finding]:
    """Prices are those of prompts and of completions: what is not said would cost nothing."""
    for index, model in enumerate(config.models):
        path, prices = ("models", index, "prices"), model.prices
        lacking = {"prompt", "completion"} - prices.model_fields_set if model.priced else set()
        for name in sorted(lacking):
            yield Finding(path, f"lacks {name}", remedy=f"Add {name}: 0 if they are free")
        if prices.cached is not None and not lacking and prices.cached > prices.prompt:
            rule = f"must be at most what other prompt tokens cost, {prices.prompt:g}"
            yield Finding((*path, "cached"), rule, f"{prices.cached:g}", "Remove it")


_Mistake = tuple[str, str, str]
"""A field of a model, the rule that it breaks, and what to do."""


def consistent(config: Sweep) -> Iterator[Finding]:
    """What a model says of itself goes together."""
    for index, model in enumerate(config.models):
        for field, rule, remedy in (*_mistakes(model), *_of_server(model)):
            path: Path = ("models", index, *field.split("."))
            yield Finding(path, rule, remedy=remedy, at_key=rule.startswith("excludes"))


def _mistakes(model: Model) -> Iterator[_Mistake]:
    address = model.addresses[0]
    if model.simulate is not None and not address.startswith("sim:"):
        rule = "only a simulated model has abilities to simulate"
        yield "simulate", rule, 'Remove it, or write endpoint: "sim:"'
    for name, asked in (("api", model.api != CHAT), ("batch", model.batch is not None)):
        if asked and address == "sim:":
            yield name, "a simulated model answers chat completions, one request at a time", "Remove it"
    keys = [name for name in ("key_env", "key_file", "key_command") if getattr(model, name) is not None]
    for name in keys[1:]:
        yield name, f"excludes {keys[0]}", "Give one of them"
    excluded = {
        "stream: true, as a batch's answers come as a file": model.stream,
        "local models, whose server has no batches": address.startswith("local:"),
        "serve, as servers that a run starts have no batches": model.serve is not None,
        "several addresses, as a batch is known to one server only": len(model.addresses) > 1,
    }
    for field, there in excluded.items():
        if there and model.batch is not None:
            yield "batch", f"excludes {field}", "Remove one of the two"


def _of_server(model: Model) -> Iterator[_Mistake]:
    serve = model.serve
    if serve is None and model.endpoint == SERVED:
        rule = "is the address of a model with serve: only"
        yield "endpoint", rule, "Add serve: {...}, or give its address"
    if serve is not None and model.endpoint != SERVED:
        yield "endpoint", "excludes serve", "Remove one of the two"
    if serve is not None and serve.preset == "ollama" and serve.model not in (None, model.model):
        rule = "Ollama serves a model under its own name, which is what is sent as model"
        yield "serve.model", rule, f"Write model: {show(serve.model)} beside the name, and leave this out"


def names_of(config: Sweep) -> list[str]:
    """The models' names, each once."""
    return list(dict.fromkeys(model.name for model in config.models))


def references(config: Sweep) -> Iterator[Finding]:
    """Evaluations take models, templates and samplers that there are."""
    kinds = {
        "models": names_of(config),
        "templates": list(config.templates),
        "samplers": list(config.samplers),
    }
    for index, rule in enumerate(config.evaluations or ()):
        for kind, names in kinds.items():
            for position, name in enumerate(getattr(rule, kind) or ()):
                if name not in names:
                    path = ("evaluations", index, kind, position)
                    yield unknown_name(path, kind[:-1], name, names, kind.capitalize())


def some_measured(config: Sweep) -> Iterator[Finding]:
    """The sweep measures a model."""
    if not any(model.measured for model in config.models):
        yield Finding(
            ("models",), "no model is measured", remedy="Remove `measured: false` from one, or add a model"
        )


def only_measured_are_evaluated(config: Sweep) -> Iterator[Finding]:
    """No evaluation takes a model that only judges."""
    judging = {model.name for model in config.models if not model.measured}
    for index, rule in enumerate(config.evaluations or ()):
        for position, name in enumerate(rule.models or ()):
            if name in judging:
                path = ("evaluations", index, "models", position)
                yield Finding(
                    path, f"model {show(name)} has `measured: false`", remedy="Remove it here, or there"
                )


def evaluations_fit(config: Sweep) -> Iterator[Finding]:
    """Evaluations' samplers and templates go to models whose API can carry them."""
    for model, template, sampler in config.combinations():
        if sampler in config.samplers:
            yield from _sampler(("samplers", sampler), config.samplers[sampler], APIS[model.api])
        if model.api != CHAT and template in config.templates:
            yield from _template(template, config.templates[template], APIS[model.api])


def judges_fit(config: Sweep) -> Iterator[Finding]:
    """Judges' samplers and messages go to models whose API can carry them."""
    apis = {model.name: APIS[model.api] for model in config.models}
    for index, judge in enumerate(config.judges):
        if judge.model not in apis:
            continue
        api = apis[judge.model]
        if not isinstance(judge.sampler, str):
            yield from _sampler(("judges", index, "sampler"), judge.sampler, api)
        elif judge.sampler in config.samplers:
            yield from _sampler(("samplers", judge.sampler), config.samplers[judge.sampler], api)
        try:
            api.write(judge_messages("", "", ""))
        except ApiError:
            yield Finding(
                ("judges", index, "model"),
                f"judges are asked with a system message, and api: {api.name} knows none",
                remedy="Take a model with another api",
            )


def _sampler(path: Path, sampler: Mapping[str, object], api: Api) -> Iterator[Finding]:
    for error in api.problems(sampler):
        where = path if error.param is None else (*path, error.param)
        yield Finding(where, error.rule, remedy=error.remedy, at_key=True)


def _template(name: str, messages: list[dict[str, str]], api: Api) -> Iterator[Finding]:
    try:
        api.write(messages)
    except ApiError as error:
        yield Finding(("templates", name), error.rule, remedy=error.remedy, at_key=True)
