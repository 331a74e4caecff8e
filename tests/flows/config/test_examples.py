"""Bundled configs are valid, and small enough for what they promise."""

from __future__ import annotations

from pathlib import Path

import pytest

import evalcube as ec
from evalcube.flows.config.load import load_config, parse_config
from evalcube.flows.config.models import Section
from evalcube.flows.config.suites import initial_config
from evalcube.stages.generate import TASKS, Cell, all_tasks, expand
from tests.cases import with_cases

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples__are_valid(path: Path) -> None:
    assert load_config(path).models


def uncommented(text: str, first: str, count: int) -> str:
    """Take the # from `count` lines, beginning with the one that starts with `first`."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(first))
    lines[at : at + count] = [line.replace("# ", "", 1) for line in lines[at : at + count]]
    return "\n".join(lines)


def test_initial_config__is_valid_and_so_are_its_commented_parts() -> None:
    text = initial_config()
    full = text
    for first, count in (
        ("  # - name", 8),
        ("  # brief", 3),
        ("  # warm", 1),
        ("# evaluations", 2),
        ("# views", 2),
    ):
        full = uncommented(full, first, count)

    assert parse_config(text).models[0].simulate is not None
    config = parse_config(full)
    assert [model.key_env for model in config.models] == [None, "EXAMPLE_API_KEY"]
    assert config.templates.keys() == {"plain", "brief"}
    assert config.samplers.keys() == {"greedy", "warm"}
    assert len(config.combinations()) == 1
    assert config.views.keys() == {"long-arithmetic"}


def test_quickstart__is_small_enough_for_a_slow_machine() -> None:
    config = load_config(EXAMPLES / "quickstart.yaml")
    tasks = all_tasks()
    cells = [
        Cell(tasks[name], point.params, config.seed)
        for name, entries in map(config.manifold, config.tasks)
        for point in expand(tasks[name], entries)
    ]
    prompts = [cell.trial(i).prompt for cell in cells for i in range(config.trials)]

    # long texts to read, and texts to write, are no work for so small a model
    assert config.tasks.keys() == TASKS.keys() - {"dataset", "haystack", "constraints", "tools"}
    assert len(prompts) <= 200  # requests to the local model
    assert sum(map(len, prompts)) / len(prompts) < 350  # characters; prefill is slow


@with_cases("section", [getattr(ec.config, name) for name in ec.config.__all__ if name != "Sampler"])
def test_models__every_field_has_a_description(section: type[Section]) -> None:
    for name, field in section.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
