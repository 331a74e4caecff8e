"""Rules between the fields and the sections of a config: unique names, references, tasks, templates.

Rules about one field, or within one section, stand with the section's model. Those here get a config whose fields
are all valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalcube.flows.config.findings import Finding, Path
from evalcube.flows.config.rules import judges, models, sampling, tasks

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep


def check(config: Sweep) -> list[Finding]:
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
