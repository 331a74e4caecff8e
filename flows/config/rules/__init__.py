"""Rules between the fields and the sections of a config: unique names, references, tasks, templates.

Rules about one field, or within one section, stand with the section's model. Those here get a config whose fields
are all valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from pydantic import ValidationError

from evalcube.flows.config.findings import Finding, Path, findings, problem_of, sorted_error
from evalcube.flows.config.kept_questions import offer_missing
from evalcube.flows.config.raw_config import named_code
from evalcube.flows.config.recipes import with_suites
from evalcube.flows.config.rules import judges, models, sampling, tasks
from evalcube.flows.config.text import YamlText
from evalcube.stages.named_code import allow_code

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep


def _check(config: Sweep) -> list[Finding]:
    """Apply every rule."""
    checked = tasks.CheckedTasks(config)
    rules: tuple[Iterator[Finding], ...] = (
        models.unique_names(config),
        models.whole_prices(config),
        models.consistent(config),
        sampling.parameter_names(config),
        sampling.token_limits(config),
        models.references(config),
        sampling.trials_or_precision(config),
        sampling.spend_has_prices(config),
        judges.assertions(config),
        judges.references(config),
        judges.unique_names(config),
        judges.rubrics_are_used(config),
        judges.control(config),
        models.some_measured(config),
        models.only_measured_are_evaluated(config),
        models.evaluations_fit(config),
        models.judges_fit(config),
        iter(checked.findings),
        tasks.renders(config, checked.samples),
        tasks.coordinates(config, checked.tasks),
    )
    mistakes: dict[tuple[Path, str], Finding] = {}
    for rule in rules:
        for finding in rule:
            mistakes.setdefault((finding.path, finding.rule), finding)  # several models may break one rule
    return list(mistakes.values())


def check_config(
    kind: type[Sweep],
    raw: dict[str, object],
    source: str,
    text: YamlText | None,
    *,
    models_from: str = "",
    cube: str | FilePath | None = None,
) -> Sweep:
    """Return the config that a mapping is; raise ConfigError with all mistakes, first those of fields."""
    # Whoever gives a config may run what it names. A cube's own notes come here only after `acting_config` has looked.
    raw, mistakes = with_suites({key: value for key, value in raw.items() if not key.startswith("x-")})
    allow_code(named_code(raw))
    try:
        config = kind.model_validate(raw)
        offer_missing(raw.get("tasks"), str(cube or config.cube))
        mistakes += [] if mistakes else _check(config)
    except ValidationError as error:
        mistakes += findings(error, kind)
    if mistakes:
        raise sorted_error(
            problem_of(mistake, models_from, None)
            if models_from and mistake.path[:1] == ("models",)
            else problem_of(mistake, source, text)
            for mistake in mistakes
        )
    return config
