"""Configs as text, for tests of how they are read."""

from collections.abc import Callable

import pytest

from evalcube.flows.config.load import parse_config
from evalcube.flows.errors import ConfigError

GOOD = {
    "models": '- {name: a, endpoint: "sim:"}',
    "samplers": "greedy: {temperature: 0}",
    "tasks": "arithmetic: {manifold: [{points: [{length: 4}]}]}",
}


def text(**sections: str) -> str:
    """Write a config with one line per section, in this order: models, samplers, tasks, the others."""
    merged = {**GOOD, **sections}
    return "".join(f"{name}:\n  {body}\n" if body else "" for name, body in merged.items())


def problems(source: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(source, "c.yaml")
    return str(caught.value).splitlines()


def takes(section: Callable[..., object], **fields: object) -> bool:
    try:
        section(**fields)
    except ConfigError:
        return False
    return True


FULL = """\
name: full
trials: 20
spend: {tokens: 200000, usd: 20}
degree: 1
models:
  - {name: alpha, endpoint: "sim:", simulate: {ability: 4}, facets: {size: 3}, prices: {prompt: 1, completion: 2}}
  - {name: beta, endpoint: "https://h/v1", api: messages, headers: {X-Team: a}, limits: {retries: 2}}
  - {name: judge, endpoint: "https://j/v1", batch: {requests: 9}, measured: false}
templates:
  plain: [{role: user, content: "{{ prompt }}"}]
  json: [{role: user, content: "{{ prompt | tojson }}"}]
samplers:
  greedy: {temperature: 0, max_tokens: 512}
  warm: {top_p: 0.9, max_tokens: 64}
evaluations:
  - {models: [alpha], templates: [plain, json], samplers: [greedy]}
  - {models: [beta], samplers: [warm]}
tasks:
  arithmetic:
    params: {max_depth: 0}
    manifold:
      - {grid: {length: [4, 8]}, tiers: [easy]}
      - {points: [{length: 24}], tiers: {hard: 0}}
      - {grid: {length: {range: [4, 8, 12], window: {body: 2}}}}
    rubric: Is it short?
  words:
    task: sort
    params: {length: 4}
    assertions: [{type: contains, value: a}, {type: assert-set, children: [{type: regex, pattern: a}]}]
judges:
  - {model: judge, sampler: greedy}
  - {model: alpha, name: second, sampler: {max_tokens: 64}}
views:
  long: {where: {task: arithmetic, param_length: {min: 8}, tier: [easy, hard]}}
"""
"""A valid config with something in every section."""
