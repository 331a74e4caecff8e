"""Rules about which models there are, and what the evaluations take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evalcube.flows.config.findings import Finding, unknown_name
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.secrecy import show


def unique_names(config: Sweep) -> Iterator[Finding]:
    """No two models have one name."""
    for index, first in repeated(model.name for model in config.models):
        yield Finding(
            ("models", index, "name"),
            f"model names must be unique: models[{first}] has this one, too",
            remedy="Give one of them another name",
            shown=True,
        )


def repeated(names: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The index of each name that was there before, and the index where it was first."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            yield index, first[name]


def simulate_only_with_sim(config: Sweep) -> Iterator[Finding]:
    """Only simulated models have abilities."""
    for index, model in enumerate(config.models):
        if model.simulate is not None and not model.addresses[0].startswith("sim:"):
            yield Finding(
                ("models", index, "simulate"),
                "only a simulated model has abilities to simulate",
                remedy='Remove it, or write endpoint: "sim:"',
            )


def simulated_models_speak_chat(config: Sweep) -> Iterator[Finding]:
    """The simulated model that a run starts answers chat completions, each by itself."""
    for index, model in enumerate(config.models):
        asked = {"api": model.api != "chat", "batch": model.batch is not None}
        for name in (name for name, wrong in asked.items() if wrong and model.addresses[0] == "sim:"):
            yield Finding(
                ("models", index, name),
                "a simulated model answers chat completions, one request at a time",
                remedy="Remove it",
            )


def one_key(config: Sweep) -> Iterator[Finding]:
    """A model's key is in one place."""
    for index, model in enumerate(config.models):
        given = [name for name in ("key_env", "key_file", "key_command") if getattr(model, name) is not None]
        for name in given[1:]:
            yield Finding(("models", index, name), f"excludes {given[0]}", remedy="Give one of them")


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
                yield Finding(
                    ("evaluations", index, "models", position),
                    f"model {show(name)} has `measured: false`",
                    remedy="Remove it here, or there",
                )
