"""Configs as text, for tests of how they are read."""

import pytest

from flows.config import parse_config
from flows.errors import ConfigError

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
