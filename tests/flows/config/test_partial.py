"""What the rules between fields see of a config in which something is wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.flows.config.load import from_mapping, parse_config
from evalcube.flows.config.models import ModelConfig, SweepConfig
from evalcube.flows.config.partial import each, every, keys, listed, valid_parts
from evalcube.flows.config.section import Hole, section_at
from evalcube.flows.config.text import YamlText
from evalcube.flows.errors import ConfigError
from tests.flows.config.sources import FULL, problems

Path = tuple[str | int, ...]


def written() -> dict[str, object]:
    value = YamlText(FULL).value
    assert isinstance(value, dict)
    return value


def with_wrong(*paths: Path) -> SweepConfig:
    raw = written()
    for path in paths:
        put(raw, path, object())
    return valid_parts(SweepConfig, raw, paths)


def put(value: object, path: Path, new: object) -> None:
    for step in path[:-1]:
        value = value[step]  # type: ignore[index]
    value[path[-1]] = new  # type: ignore[index]


def test_valid_parts__of_a_valid_config_is_the_config() -> None:
    assert with_wrong() == parse_config(FULL)


def test_valid_parts__a_wrong_field_is_missing_and_the_others_are_there() -> None:
    config = with_wrong(("models", 1, "api"), ("trials",))

    assert config.degree == 1
    assert dict(each(config.models, lambda model: model.name)) == {0: "alpha", 1: "beta", 2: "judge"}
    assert dict(each(config.models, lambda model: model.api)) == {0: "chat", 2: "chat"}
    with pytest.raises(Hole):
        _ = config.trials
    with pytest.raises(AttributeError):
        _ = config.trails  # type: ignore[attr-defined]


def test_valid_parts__a_list_with_a_wrong_item_is_never_taken_for_the_whole() -> None:
    config = with_wrong(("models", 1), ("samplers", "warm", "top_p"), ("samplers", "greedy"))

    assert [index for index, _ in each(config.models)] == [0, 2]
    assert keys(config.samplers) == ["greedy", "warm"]
    assert {name: dict(each(sampler)) for name, sampler in each(config.samplers)} == {
        "warm": {"max_tokens": 64}
    }
    for whole in (list, dict, lambda rows: rows[0], lambda rows: "x" in rows, lambda rows: rows == []):
        for rows in (config.models, config.samplers):
            with pytest.raises(Hole):
                whole(rows)  # type: ignore[operator]
    with pytest.raises(Hole):
        every(config.models, lambda model: model.name)
    assert listed(lambda: list(config.samplers)) == []


def test_valid_parts__a_default_made_from_a_wrong_field_is_not_known() -> None:
    judges = with_wrong(("judges", 0, "model"), ("judges", 1, "repeats")).judges

    assert list(each(judges, lambda judge: judge.name)) == [(1, "second")]


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ((), SweepConfig),
        (("models", 0), ModelConfig),
        (("models", 0, "limits"), ModelConfig.model_fields["limits"].annotation),
        (("models", 0, "facets"), None),
        (("models", 0, "nothing"), None),
    ],
)
def test_section_at__follows_the_models_fields(path: Path, section: object) -> None:
    assert section_at(SweepConfig, path) is section


def test_parse_config__every_mistake_is_reported_although_its_section_has_another() -> None:
    source = FULL
    for right, wrong in (
        ("name: beta, ", "name: alpha, limits: 3, "),  # a name twice, in a model with wrong limits
        ("limits: {retries: 2}", "batch: true"),  # batches of an API that has none
        ("{top_p: 0.9, max_tokens: 64}", '{top_p: .nan, max_tokens: 0, "": 1}'),
        ("models: [alpha], templates: [plain, json]", "models: [alpha, 3, nobody], templates: [plian]"),
        ("task: sort", "task: sotr\n    degree: x"),
        ("max_tokens: 64}}", "max_tokens: 0}, repeats: 0}"),
        ("tiers: [easy]}", "tiers: [easy], degree: -1}"),
        ("param_length: {min: 8}", "param_length: {min: x}, sise: 3"),
    ):
        assert right in source
        source = source.replace(right, wrong)

    told = [line.split(": ")[1] for line in problems(source)]

    assert sorted(told) == sorted(
        [
            "models[1].batch",
            "models[1].limits",
            "models[1].name",
            "samplers.warm['']",
            "samplers.warm.max_tokens",
            "samplers.warm.top_p",
            "evaluations[0].models[1]",
            "evaluations[0].models[2]",
            "evaluations[0].templates[0]",
            "evaluations[1].models[0]",
            "tasks.arithmetic.manifold[0].degree",
            "tasks.words.task",
            "tasks.words.degree",
            "judges[1].repeats",
            "judges[1].sampler.max_tokens",
            "views.long.where.param_length",
            "views.long.where.sise",
        ]
    )


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("judges:", "juges:", "juges"),  # not: nobody judges by the rubric
        ("prices:", "pricse:", "models[0].pricse"),  # not: no model has prices
        (
            "task: sort\n    params: {length: 4}",
            "task: dataset\n    zzz: 4",
            "tasks.words.zzz",
        ),  # not: no file
        ("points:", "zzz:", "tasks.arithmetic.manifold[1].zzz"),  # not: neither grid nor points
        ("simulate:", "measured: 1, simulate:", "models[0].measured"),  # not: no model is measured
    ],
)
def test_parse_config__nothing_follows_from_what_is_not_known(right: str, wrong: str, told: str) -> None:
    (line,) = problems(FULL.replace(right, wrong))

    assert line.split(": ")[1] == told


def places(value: object, path: Path = ()) -> Iterator[Path]:
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in rows:
        yield (*path, step)
        yield from places(item, (*path, step))


PLACES = list(places(written()))
NEW = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 200),
    st.floats(),
    st.sampled_from(["", "x", "alpha", "greedy", "sim:", "messages", "{{ prompt }}", "low", "sk-abcd1234"]),
    st.sampled_from([[], {}, [[]], [{}], [None], {"a": {}}, {"min": 1}, ["alpha"], {"max_tokens": 0}]),
    st.sampled_from(PLACES).map(lambda path: ("copy", path)),
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["put", "drop", "rename", "wrap"]), NEW), max_size=5
)


def change(raw: dict[str, object], path: Path, kind: str, new: object) -> None:
    parent: object = raw
    for step in path[:-1]:
        parent = parent[step]  # type: ignore[index]
    if isinstance(new, tuple):
        value: object = raw
        for step in new[1]:
            value = value[step]  # type: ignore[index]
        new = value
    assert isinstance(parent, (dict, list))
    old = parent.pop(path[-1])  # type: ignore[arg-type]
    put_back = {"put": new, "wrap": [old], "rename": old}
    if kind == "drop":
        return
    key = f"{path[-1]}x" if kind == "rename" else path[-1]
    if isinstance(parent, list):
        parent.insert(int(path[-1]), copy.deepcopy(put_back[kind]))
    else:
        parent[str(key)] = copy.deepcopy(put_back[kind])


@settings(max_examples=300, deadline=None)
@given(CHANGES)
def test_from_mapping__any_changes_give_a_config_or_problems_each_once(
    changes: list[tuple[Path, str, object]],
) -> None:
    raw = written()
    for path, kind, new in changes:
        try:
            change(raw, path, kind, new)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, AssertionError):
            continue  # an earlier change took the place away

    try:
        config = from_mapping(raw)
    except ConfigError as error:
        told = error.problems
    else:
        told = None
        assert from_mapping(config.model_dump()) == config
    assert told is None or 0 < len(set(told)) == len(told)
