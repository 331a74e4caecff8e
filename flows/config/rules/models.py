"""Rules about which models there are, and what the evaluations take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from evalcube.flows.config.findings import Finding, unknown_name
from evalcube.flows.config.models import EvaluationRule, SweepConfig
from evalcube.flows.config.partial import each, every, keys, listed
from evalcube.flows.config.secrecy import show


def unique_names(config: SweepConfig) -> Iterator[Finding]:
    """No two models have one name."""
    for index, first in repeated(each(config.models, lambda model: model.name)):
        yield Finding(
            ("models", index, "name"),
            f"model names must be unique: models[{first}] has this one, too",
            remedy="Give one of them another name",
            shown=True,
        )


def repeated(names: Iterable[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """The index of each name that was there before, and the index where it was first."""
    first: dict[str, int] = {}
    for index, name in names:
        if first.setdefault(name, index) != index:
            yield index, first[name]


def simulate_only_with_sim(config: SweepConfig) -> Iterator[Finding]:
    """Only simulated models have abilities."""
    for index, wrong in each(
        config.models,
        lambda model: model.simulate is not None and not model.addresses[0].startswith("sim:"),
    ):
        if wrong:
            yield Finding(
                ("models", index, "simulate"),
                "only a simulated model has abilities to simulate",
                remedy='Remove it, or write endpoint: "sim:"',
            )


def one_key(config: SweepConfig) -> Iterator[Finding]:
    """A model's key is in one place."""
    for index, given in each(
        config.models,
        lambda model: [
            name for name in ("key_env", "key_file", "key_command") if getattr(model, name) is not None
        ],
    ):
        for name in given[1:]:
            yield Finding(("models", index, name), f"excludes {given[0]}", remedy="Give one of them")


def names_of(config: SweepConfig) -> list[str]:
    """The models' names, each once."""
    return list(dict.fromkeys(name for _, name in each(config.models, lambda model: model.name)))


def references(config: SweepConfig) -> Iterator[Finding]:
    """Evaluations take models, templates and samplers that there are."""
    kinds: dict[str, tuple[Callable[[EvaluationRule], Sequence[str] | None], list[str]]] = {
        "models": (lambda rule: rule.models, listed(lambda: names_of(config))),
        "templates": (lambda rule: rule.templates, listed(lambda: keys(config.templates))),
        "samplers": (lambda rule: rule.samplers, listed(lambda: keys(config.samplers))),
    }
    for kind, (read, names) in kinds.items():
        for index, chosen in each(config.evaluations, read):
            for position, name in each(chosen):
                if names and name not in names:
                    path = ("evaluations", index, kind, position)
                    yield unknown_name(path, kind[:-1], name, names, kind.capitalize())


def some_measured(config: SweepConfig) -> Iterator[Finding]:
    """The sweep measures a model."""
    if not any(every(config.models, lambda model: model.measured)):
        yield Finding(
            ("models",), "no model is measured", remedy="Remove `measured: false` from one, or add a model"
        )


def only_measured_are_evaluated(config: SweepConfig) -> Iterator[Finding]:
    """No evaluation takes a model that only judges."""
    rows = each(config.models, lambda model: (model.name, model.measured))
    judging = {name for _, (name, measured) in rows if not measured}
    for index, chosen in each(config.evaluations, lambda rule: rule.models):
        for position, name in each(chosen):
            if name in judging:
                yield Finding(
                    ("evaluations", index, "models", position),
                    f"model {show(name)} has `measured: false`",
                    remedy="Remove it here, or there",
                )
