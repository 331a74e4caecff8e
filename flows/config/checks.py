"""A raw config mapping -> findings about rules between fields: unique names, references, tasks, templates.

The mapping may be wrong in any way; whatever `flows.config.models` finds by itself is passed over here, so
that one mistake is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from flows.config.apichecks import check_apis
from flows.config.findings import Finding, Path, did_you_mean
from flows.config.judgechecks import check_judging
from flows.config.precision import LEVELS
from flows.config.raw import items, mapping
from flows.config.secrecy import mask, show
from flows.config.tasks import CheckedTasks
from flows.config.templates import Template
from flows.config.viewchecks import check_views
from flows.errors import TemplateError

SAMPLE_PROMPT = 'What is 2 + 3?\n"Quoted" text, a back\\slash and a line break are in here on purpose.'


def check(raw: Mapping[str, object]) -> list[Finding]:
    """Apply every rule between fields."""
    tasks = CheckedTasks(raw)
    checks: tuple[Callable[[Mapping[str, object]], Iterable[Finding]], ...] = (
        _unique_names,
        _simulate_only_with_sim,
        _token_limits,
        _references,
        _trials_or_precision,
        _spend_has_prices,
        check_judging,
    )
    found = [finding for rule in checks for finding in rule(raw)]
    found += check_apis(raw, tasks.samples)
    return found + tasks.findings + _probe(raw, tasks.samples) + check_views(raw, tasks.tasks)


def _models(raw: Mapping[str, object]) -> Iterator[tuple[int, Mapping[str, object]]]:
    for index, model in enumerate(items(raw.get("models"))):
        if isinstance(model, Mapping):
            yield index, model


def _unique_names(raw: Mapping[str, object]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, model in _models(raw):
        name = model.get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            yield Finding(
                ("models", index, "name"),
                f"model names must be unique: models[{first[name]}] has this one, too",
                show(name),
                "Give one of them another name",
            )
        first.setdefault(name, index)


def _simulate_only_with_sim(raw: Mapping[str, object]) -> Iterator[Finding]:
    for index, model in _models(raw):
        endpoint = model.get("endpoint")
        if model.get("simulate") is None or not isinstance(endpoint, str) or endpoint.startswith("sim"):
            continue
        yield Finding(
            ("models", index, "simulate"),
            "only a simulated model has abilities to simulate",
            remedy='Remove it, or write endpoint: "sim:"',
        )


def _token_limits(raw: Mapping[str, object]) -> Iterator[Finding]:
    for name, sampler in mapping(raw.get("samplers")).items():
        for param in ("max_tokens", "max_completion_tokens"):
            value = mapping(sampler).get(param, 1)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                yield Finding(
                    ("samplers", name, param),
                    "must be a whole number of at least 1",
                    show(value),
                    "Leave it out for the server's default",
                )


def _references(raw: Mapping[str, object]) -> Iterator[Finding]:
    known: dict[str, list[object]] = {
        "models": list(
            dict.fromkeys(model["name"] for _, model in _models(raw) if isinstance(model.get("name"), str))
        ),
        "templates": list(mapping(raw.get("templates", {"plain": None}))),
        "samplers": list(mapping(raw.get("samplers"))),
    }
    for index, rule in enumerate(items(raw.get("evaluations"))):
        for kind, names in known.items():
            for position, name in enumerate(items(mapping(rule).get(kind))):
                if not names or not isinstance(name, str) or name in names:
                    continue
                yield Finding(
                    ("evaluations", index, kind, position),
                    f"unknown {kind[:-1]} {show(name)}",
                    remedy=did_you_mean(name, [str(known_name) for known_name in names], kind.capitalize()),
                )


def _trials_or_precision(raw: Mapping[str, object]) -> Iterator[Finding]:
    precision, trials = raw.get("precision"), raw.get("trials")
    if precision is None or trials is None:
        return
    level = LEVELS.get(precision) if isinstance(precision, str) else None
    base = mapping(precision).get("base") if level is None else level.base
    if trials == base:  # says the same twice, as a config that was written out does
        return
    yield Finding(
        ("precision",),
        f"excludes trials ({show(trials)}): precision decides how many trials a cell has",
        remedy="Remove one of the two",
        at_key=True,
    )


def _spend_has_prices(raw: Mapping[str, object]) -> Iterator[Finding]:
    usd = mapping(raw.get("spend")).get("usd")
    if usd is None or any(
        price for _, model in _models(raw) for price in mapping(model.get("prices")).values()
    ):
        return
    yield Finding(
        ("spend", "usd"),
        "no model has prices, so that this bound would never be reached",
        show(usd),
        "Give the models prices (USD per million tokens), or bound tokens",
    )


def _probe(raw: Mapping[str, object], samples: Mapping[str, Mapping[str, object]]) -> list[Finding]:
    found = []
    for name, source in mapping(raw.get("templates")).items():
        try:
            template = Template(source)  # type: ignore[arg-type]  # a wrong type is told by the models
        except TemplateError:
            continue
        finding = _probe_one(template, samples)
        if finding is not None:
            rule, remedy, where = finding
            found.append(Finding(("templates", name, *where), rule, remedy=remedy))
    return found


def _probe_one(
    template: Template, samples: Mapping[str, Mapping[str, object]]
) -> tuple[str, str, Path] | None:
    """Render with one prompt per task; return rule, remedy and place of what fails."""
    guesses: dict[str, Mapping[str, object]] = {} if "params" in template.uses else {"task": {}}
    for task, params in (samples or guesses).items():
        try:
            template.render(prompt=SAMPLE_PROMPT, task=task, params=params)
        except TemplateError as error:
            at = f" (with task {task})" if "params" in template.uses else ""
            return mask(error.message) + at, error.remedy, error.where
    if "prompt" not in template.uses:
        return "never uses the prompt: every question would be the same", "Write {{ prompt }} into it", ()
    return None
