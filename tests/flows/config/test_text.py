"""A sweep in a script is the same as in a file: same plan, same errors, and each is written as the other."""

from __future__ import annotations

import pickle

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import evalcube as ec
from evalcube.flows.config.load import parse_config
from evalcube.flows.config.text import YamlText, yaml_text
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.requests import trial_request
from tests.flows.config.sources import FULL, problems, text

FILE = """\
name: two ways
models:
  - {name: small, endpoint: "sim:", simulate: {ability: 3}}
  - {name: far, endpoint: ["https://a/v1", "https://b/v1"], key_env: A_KEY, prices: {prompt: 1, completion: 2}}
samplers: {greedy: {temperature: 0, max_tokens: 256}, free: {min_p: 0.1}}
precision: low
tasks:
  arithmetic:
    manifold:
      - grid: {length: [4, 6], max_depth: {range: [0, 1, 2], window: {body: 2}}}
        tiers: {easy: 0, hard: 1}
  again: {task: boolean, params: {length: 4}}
"""


def script() -> ec.Sweep:
    return ec.Sweep(
        name="two ways",
        models=[
            ec.Model(name="small", endpoint="sim:", simulate=ec.config.SimulatedModel(ability=3)),
            ec.Model(
                name="far",
                endpoint=["https://a/v1", "https://b/v1"],
                key_env="A_KEY",
                prices=ec.config.Prices(prompt=1, completion=2),
            ),
        ],
        samplers={"greedy": ec.Sampler(temperature=0, max_tokens=256), "free": ec.Sampler(min_p=0.1)},
        precision="low",
        tasks={
            "arithmetic": ec.config.TaskConfig(
                manifold=[
                    ec.Manifold(
                        grid={
                            "length": range(4, 8, 2),
                            "max_depth": ec.config.AxisRange(
                                range=[0, 1, 2], window=ec.config.AxisWindow(body=2)
                            ),
                        },
                        tiers={"easy": 0, "hard": 1},
                    )
                ]
            ),
            "again": {"task": "boolean", "params": {"length": 4}},
        },
    )


def keys(sweep: ec.Sweep) -> list[str]:
    """What the replies to a sweep's first trials have as keys in the cache."""
    plan = build_plan(sweep)
    cells = [planned.cell for task in plan.tasks for planned in task.cells]
    return [trial_request(one, cell, cell.trial(0), 0).digest for one in plan.evaluations for cell in cells]


def test_sweep__plans_what_the_file_does() -> None:
    ours, read = script(), parse_config(FILE)

    assert ours == read
    assert build_plan(ours).spec() == build_plan(read).spec()
    assert keys(ours) == keys(read)
    assert [model.priced for model in ours.models] == [False, True]


@pytest.mark.parametrize("source", [FILE, FULL], ids=["short", "every section"])
def test_to_yaml__is_read_back_as_it_was(source: str, tmp_path) -> None:
    sweep = parse_config(source)

    written = sweep.to_yaml(tmp_path / "another name.yaml")

    back = ec.Sweep.from_yaml(tmp_path / "another name.yaml")
    assert (back, back.model_fields_set) == (sweep, sweep.model_fields_set | {"name"})
    assert back.to_yaml() == written


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text() | st.sampled_from(["<<", "on", "1.10", "null", "a: b"]), JSON, min_size=1))
def test_yaml_text__is_read_back_as_it_was(value: dict[str, object]) -> None:
    assert YamlText(yaml_text(value)).value == value


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "Off",
        "y",
        "012",
        "0x1f",
        "1_000",
        "12:30:00",
        "1e3",
        ".inf",
        "~",
        "null",
        "2026-11-29",
        "=",
        "<<",
        "",
    ],
)
def test_yaml_text__is_the_same_text_for_other_readers(text: str) -> None:
    written = yaml_text({"key": text, "plain": "word"})

    assert yaml.safe_load(written) == {"key": text, "plain": "word"}
    assert "plain: word" in written


WRONG = {
    "a field": (lambda: ec.Model(nmae="a", endpoint="sim:"), text(models='- {nmae: a, endpoint: "sim:"}')),
    "a value": (
        lambda: ec.Model(name="a", endpoint="sim:", limits={"retries": -1}),
        text(models='- {name: a, endpoint: "sim:", limits: {retries: -1}}'),
    ),
    "a secret": (
        lambda: ec.Model(name="a", endpoint="sim:", headers={"X-A": "sk-abcdefghijkl1234567890"}),
        text(models='- {name: a, endpoint: "sim:", headers: {X-A: sk-abcdefghijkl1234567890}}'),
    ),
    "a parameter": (lambda: ec.Sampler(stream=True), text(samplers="greedy: {stream: true}")),
}


@pytest.mark.parametrize(("call", "source"), WRONG.values(), ids=WRONG)
def test_sections__are_refused_in_the_words_of_a_file(call, source) -> None:
    with pytest.raises(ec.ConfigError) as caught:
        call()

    (ours,), (read,) = caught.value.problems, problems(source)
    assert read.endswith(str(ours).removeprefix(f"{ours.source}: "))
    assert ours.source in ("Model", "Sampler")
    assert "sk-" not in str(ours)


def test_sections__take_no_places() -> None:
    with pytest.raises(ec.SweepError, match=r"`Model` takes fields by name only. Write Model\(name=...\)"):
        ec.Model("a")  # type: ignore[misc]


def test_sweep__is_held_to_the_rules_between_fields() -> None:
    with pytest.raises(ec.ConfigError, match=r"tasks\.arithmetc: unknown task 'arithmetc'. Did you mean"):
        ec.Sweep(models=[ec.Model(name="a", endpoint="sim:")], tasks={"arithmetc": {"params": {}}})


def test_add__makes_a_sweep_with_one_more_model() -> None:
    sweep = script()

    more = sweep.add(ec.Model(name="large", endpoint="sim:"))

    assert [model.name for model in more.models] == ["small", "far", "large"]
    assert (len(sweep.models), more.cube) == (2, sweep.cube)
    with pytest.raises(ec.ConfigError, match="must be unique"):
        more.add(ec.Model(name="large", endpoint="sim:"))


def test_sweep__is_pickled_under_its_public_name() -> None:
    sweep = script()

    packed = pickle.dumps(sweep)

    assert pickle.loads(packed) == sweep  # noqa: S301 - our own bytes
    assert b"evalcube.flows" not in packed
