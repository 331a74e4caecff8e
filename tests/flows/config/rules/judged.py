"""Configs with judges."""

from tests.flows.config.sources import text

MODELS = '[{name: a, endpoint: "sim:"}, {name: j, endpoint: "sim:", measured: false}]'


def judged(judges="[{model: j}]", task="rubric: Is short.", **sections):
    return text(
        models=MODELS,
        judges=judges,
        tasks=f"arithmetic: {{params: {{length: 4}}, {task}}}",
        **sections,
    )
