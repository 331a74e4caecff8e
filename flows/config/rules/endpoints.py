"""Rules about what a model's endpoint cannot carry: batches, parameters, roles of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from evalcube.flows.config.findings import Finding, Path
from evalcube.flows.config.models import Model, Sweep
from evalcube.flows.config.secrecy import show
from evalcube.flows.config.serving import SERVED
from evalcube.flows.config.templates import Template
from evalcube.flows.errors import TemplateError
from evalcube.stages.infer.apis import APIS, Api, ApiError
from evalcube.stages.process.rubric import judge_messages
from evalcube.stages.reply.forms import CHAT

Samples = Mapping[str, Mapping[str, object]]
"""Task -> params of one of its points, to render templates with."""

_NO_BATCHES: tuple[tuple[str, Callable[[Model], bool]], ...] = (
    *(
        (f"api: {name}, which has batches of another kind", lambda model, name=name: model.api == name)
        for name, api in APIS.items()
        if not api.batches
    ),
    ("stream: true, as a batch's answers come as a file", lambda model: model.stream),
    ("local models, whose server has no batches", lambda model: model.addresses[0].startswith("local:")),
    ("serve, as servers that a run starts have no batches", lambda model: model.serve is not None),
    ("several addresses, as a batch is known to one server only", lambda model: len(model.addresses) > 1),
)
"""What a batch excludes."""


def batches(config: Sweep) -> Iterator[Finding]:
    """Only endpoints that have batches are asked so."""
    for index, model in enumerate(config.models):
        for what, there in _NO_BATCHES if model.batch is not None else ():
            if there(model):
                path, remedy = ("models", index, "batch"), "Remove one of the two"
                yield Finding(path, f"excludes {what}", remedy=remedy, at_key=True, shown=True)


def served(config: Sweep) -> Iterator[Finding]:
    """A model has either an address or a server of its own, and a preset can serve it."""
    for index, model in enumerate(config.models):
        serve, given = model.serve, model.serve is not None
        if given != (model.endpoint == SERVED):
            rule = "excludes serve" if given else "is the address of a model with serve: only"
            yield Finding(
                ("models", index, "endpoint"),
                rule,
                remedy="Remove one of the two" if given else "Add serve: {...}, or give its address",
                at_key=given,
            )
        if serve is not None and serve.preset == "ollama" and serve.model not in (None, model.model):
            yield Finding(
                ("models", index, "serve", "model"),
                "Ollama serves a model under its own name, which is what is sent as model",
                remedy=f"Write model: {show(serve.model)} beside the name, and leave this out",
                shown=True,
            )


def evaluations_fit(config: Sweep, samples: Samples) -> Iterator[Finding]:
    """Evaluations' samplers and templates go to models whose API can carry them.

    Parameters
    ----------
    samples
        Of the tasks that are valid.
    """
    for model, template, sampler in config.combinations():
        if model.api != CHAT and sampler in config.samplers:
            yield from _sampler(("samplers", sampler), config.samplers[sampler], APIS[model.api])
        if model.api != CHAT and template in config.templates:
            yield from _template(template, config.templates[template], APIS[model.api], samples)


def judges_fit(config: Sweep) -> Iterator[Finding]:
    """Judges' samplers and messages go to models whose API can carry them."""
    # Chat carries everything.
    apis = {model.name: APIS[model.api] for model in config.models if model.api != CHAT}
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
                remedy="Take a model with api: chat or messages",
            )


def _sampler(path: Path, sampler: Mapping[str, object], api: Api) -> Iterator[Finding]:
    for error in api.problems(sampler):
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
