"""Rules about templates: each renders with the params of every task, and asks the question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evalcube.flows.config.findings import Finding
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.secrecy import mask
from evalcube.flows.config.templates import Template
from evalcube.flows.errors import TemplateError

SAMPLE_PROMPT = 'What is 2 + 3?\n"Quoted" text, a back\\slash and a line break are in here on purpose.'


def renders(config: Sweep, samples: Mapping[str, Mapping[str, object]]) -> Iterator[Finding]:
    """Each template renders, and uses the prompt.

    Parameters
    ----------
    samples
        Task -> params of one of its points, for the tasks that are valid.
    """
    for name, source in config.templates.items():
        finding = _tried(name, Template(source), samples)
        if finding is not None:
            yield finding


def _tried(name: str, template: Template, samples: Mapping[str, Mapping[str, object]]) -> Finding | None:
    """What fails when the template is rendered with one prompt per task."""
    guesses: dict[str, Mapping[str, object]] = {} if "params" in template.uses else {"task": {}}
    for task, params in (samples or guesses).items():
        try:
            template.render(prompt=SAMPLE_PROMPT, task=task, params=params)
        except TemplateError as error:
            at = f" (with task {task})" if "params" in template.uses else ""
            return Finding(
                ("templates", name, *error.where),
                mask(error.message) + at,
                remedy=error.remedy,
                text_line=error.line,
            )
    if "prompt" not in template.uses:
        rule = "never uses the prompt: every question would be the same"
        return Finding(("templates", name), rule, remedy="Write {{ prompt }} into it")
    return None
