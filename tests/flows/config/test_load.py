"""Config files, texts and mappings -> a config with its defaults, or all problems together."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.flows.config.load import as_config, from_mapping, load_config, parse_config
from evalcube.flows.config.models import Model, SimulatedModel, Sweep
from evalcube.flows.config.suites import initial_config
from evalcube.flows.config.text import LONGEST_TEXT, YamlText
from evalcube.flows.errors import ConfigError, SweepError
from evalcube.stages import named_code
from tests.cases import with_cases
from tests.flows.config.sources import FULL, problems, text

Path = tuple[str | int, ...]
MODELS = '- {name: a, endpoint: "sim:"}\n  - {name: a, endpoint: "sim:"}'
POINTS = "arithmetic: {manifold: [{points: [{length: 1}, {length: 4}, {length: 2}]}]}"
RULES = {
    "models": MODELS,
    "templates": "t: [{role: user, content: hi}]",
    "evaluations": "- {models: [c]}",
    "tasks": f"aritmetic: {{params: {{}}}}\n  {POINTS}",
}


def test_parse_config__tells_all_wrong_fields_sorted_by_line() -> None:
    source = text(
        **RULES
        | {
            "models": MODELS.replace("name: a, ", "name: a, limits: {connections: 0}, ", 1).replace(
                "m:", "n:"
            ),
            "samplers": "g: {n: 2}",
            "tasks": f"aritmetic: {{}}\n  {POINTS}",
            "trials": "0",
        }
    )

    told = problems(source)

    assert [line.split(": ")[:2] for line in told] == [
        ["c.yaml:2", "models[0].endpoint"],
        ["c.yaml:2", "models[0].limits.connections"],
        ["c.yaml:3", "models[1].endpoint"],
        ["c.yaml:5", "samplers.g.n"],
        ["c.yaml:7", "tasks.aritmetic.manifold"],
        ["c.yaml:14", "trials"],
    ]


def test_parse_config__tells_all_broken_rules_sorted_by_line() -> None:
    told = problems(text(**RULES))

    assert [line.split(": ")[:2] for line in told] == [
        ["c.yaml:3", "models[1].name"],
        ["c.yaml:7", "tasks.aritmetic"],
        ["c.yaml:8", "tasks.arithmetic.manifold[0].points[0].length"],
        ["c.yaml:8", "tasks.arithmetic.manifold[0].points[2].length"],
        ["c.yaml:10", "templates.t"],
        ["c.yaml:12", "evaluations[0].models[0]"],
    ]


@pytest.mark.long
def test_parse_config__bounds_aliases_that_multiply() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]

    assert "more than 1,000,000 values" in problems("\n".join(rows))[0]


def test_parse_config__ignores_keys_that_begin_with_x() -> None:
    anchored = "x-common: &common {task: arithmetic, params: {length: 3}}\n" + text(
        tasks="first: {<<: *common}\n  second: {<<: *common, params: {length: 4}}"
    )

    assert list(parse_config(anchored).tasks) == ["first", "second"]
    assert "x-params: unknown field" in problems(text(tasks="arithmetic: {x-params: {}}"))[0]


def test_load_config__finds_its_own_files_beside_it(tmp_path, monkeypatch) -> None:
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    rows = '{"prompt": "q", "answer": "a"}\n'
    for file in ("configs/here.jsonl", "configs/both.jsonl", "both.jsonl", "there.jsonl"):
        (tmp_path / file).write_text(rows)
    for name, found in (("here", "configs/here"), ("both", "configs/both"), ("there", "there")):
        grid = f"{{grid: {{file: [{name}.jsonl]}}}}"
        (tmp_path / "configs/c.yaml").write_text(text(tasks=f"own: {{task: dataset, manifold: [{grid}]}}"))
        (entry,) = load_config("configs/c.yaml").tasks["own"].manifold
        assert entry.grid == {"file": [f"{found}.jsonl"]}


def test_yaml_text__names_no_secret_beside_an_anchor_that_is_used_again() -> None:
    assert YamlText("a: &x sk-hunter2\nb: &x [1]\nc: *x").value == {"a": "sk-hunter2", "b": [1], "c": [1]}


def test_yaml_text__keeps_no_more_lines_than_a_long_config_has() -> None:
    parsed = YamlText(f"a: &a [\n{'x, ' * 1_000}]\nb: [{'*a, ' * 200}]\n")

    # Each x is in line 2; what aliases make of it beyond the bound has the line of its list.
    assert [parsed.line(("b", row, 0)) for row in (0, 199)] == [2, 1]


def test_parse_config__refuses_a_text_that_is_too_long() -> None:
    assert problems("#" * (LONGEST_TEXT + 1)) == [
        "c.yaml:1: longer than 10,000,000 characters. Split it into several configs"
    ]


def test_parse_config__finds_lines_through_aliases_and_merges() -> None:
    source = """\
models:
  - &base
    name: a
    endpoint: "sim:"
    limits: &limits
      connections: 0
  - <<: *base
    name: b
    facets: {x: [1]}
samplers: {g: {}}
tasks:
  arithmetic: {manifold: [{points: [{length: 4}]}]}
"""
    told = problems(source)

    assert [line.split(", got")[0] for line in told] == [
        "c.yaml:6: models[0].limits.connections: must be at least 1",
        "c.yaml:6: models[1].limits.connections: must be at least 1",
        "c.yaml:9: models[1].facets.x: must be a text, a finite number, true or false",
    ]


def test_parse_config__fills_defaults() -> None:
    config = parse_config(text(), "/some/where/my sweep.yaml")

    assert (config.name, config.cube, config.cache) == (
        "my sweep",
        "results/my-sweep.zarr",
        "results/cache",
    )
    assert (config.seed, config.trials, config.repeats) == (42, 32, 1)
    changed = [as_config(config, repeats=repeats).repeats for repeats in (None, 1, 10**5)]
    assert changed == [1, 1, 10**5]
    for wrong in (0, 10**5 + 1, 2**32 + 1):
        with pytest.raises(SweepError, match=f"`repeats`: {wrong} is no number of times"):
            as_config(config, repeats=wrong)
    assert config.models[0].model == "a"
    assert config.models[0].simulate == SimulatedModel()
    assert config.templates == {"plain": [{"role": "user", "content": "{{ prompt }}"}]}
    assert config.tasks["arithmetic"].manifold[0].tiers == ("default",)


@with_cases(
    ("written", "most", "start"),
    [
        ("{}", 256, 16),
        ("{connections: auto}", 256, 16),
        ("{connections: 8}", 8, None),
        ("{connections: {start: 300, most: 400}}", 400, 300),
        ("{connections: {most: 8}}", 8, 4),
        ("{connections: {most: 1}}", 1, 1),
    ],
)
def test_limits__connections_are_a_number_or_looked_for(written: str, most: int, start: int | None) -> None:
    config = parse_config(text(models=f'- {{name: a, endpoint: "sim:", limits: {written}}}'))

    limits = config.models[0].limits.endpoint
    assert (limits["connections"], limits["start"]) == (most, start)


def test_parse_config__reads_yaml_1_2() -> None:
    config = parse_config(
        text(samplers="g: {stop: on, a: 010, b: 1e3, c: ~, d: 2001-01-01, e: 0o10, f: yes}")
    )

    assert config.samplers["g"] == {
        "stop": "on",
        "a": 10,
        "b": 1000.0,
        "c": None,
        "d": "2001-01-01",
        "e": 8,
        "f": "yes",
    }


@with_cases(
    ("given", "kept"),
    [
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("https://[::1]:8080", "https://[::1]:8080"),
        ("local:", "local:"),
        ("local", "local:"),
        ("local:smollm2", "local:smollm2"),
        ("local:models/m.gguf", "local:models/m.gguf"),
        ("sim", "sim:"),
    ],
)
def test_endpoint__accepts_each_form(given: str, kept: str) -> None:
    config = parse_config(text(models=f"- {{name: a, endpoint: {given!r}}}"))

    assert config.models[0].endpoint == kept
    assert (kept == "sim:") == (config.models[0].simulate is not None)


def test_combinations__default_is_all_and_rules_are_joined() -> None:
    two = '- {name: a, endpoint: "sim:"}\n  - {name: b, endpoint: "sim:"}'
    source = text(models=two, samplers="g: {}\n  h: {}")
    ruled = source + "evaluations:\n  - {models: [b]}\n  - {samplers: [h]}\n"

    def names(config: Sweep) -> list[tuple[str, str, str]]:
        return [(model.name, template, sampler) for model, template, sampler in config.combinations()]

    every = [(model, "plain", sampler) for model in "ab" for sampler in "gh"]
    assert names(parse_config(source)) == every
    assert names(parse_config(ruled)) == [("b", "plain", "g"), ("b", "plain", "h"), ("a", "plain", "h")]


def test_from_mapping__round_trip() -> None:
    config = parse_config(
        text(
            models="- {name: a, endpoint: http://h/v1, key_env: MY_KEY, headers: {X-Team: t}}\n"
            '  - {name: b, endpoint: "sim:", simulate: {ability: 3}, facets: {x: true}}',
            templates='j: [{role: user, content: "{{ prompt | tojson }}"}]',
            evaluations="- {models: [a]}",
        )
    )

    assert from_mapping(config.model_dump()) == config
    assert from_mapping(config.model_dump(mode="json")) == config


def test_from_mapping__takes_models_of_the_python_api_and_names_no_line() -> None:
    mapping = {
        "models": [Model(name="a", endpoint="sim:")],
        "samplers": {"g": {}},
        "tasks": {"arithmetic": {"manifold": [{"grid": {"length": 4}}]}},
    }

    assert from_mapping(mapping).models[0].name == "a"
    with pytest.raises(ConfigError, match=r"^config: trials: must be at least 1, got 0$"):
        from_mapping({**mapping, "trials": 0})


def test_from_mapping__takes_keys_that_are_no_texts() -> None:
    with pytest.raises(ConfigError, match=r"config: tasks\.1\.manifold: is missing"):
        from_mapping({"models": [], "samplers": {}, "tasks": {1: {}}})


def test_load_config__reads_bundled_configs(tmp_path) -> None:
    path = tmp_path / "evalcube.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + initial_config().encode())

    assert load_config(path).name == "first-sweep"


def test_load_config__unreadable_files(tmp_path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: a\nseed: \xe9\n")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 10_000_001)

    for path, expected in [
        (latin, f"{latin}:2: not UTF-8 text: byte 0xe9 at position 14. Save the file as UTF-8"),
        (large, f"{large}: larger than 10,000,000 bytes. Split it into several configs"),
        (tmp_path, f"{tmp_path}: cannot be read: Is a directory. Give a .yaml file that you can read"),
        ("a\0b", "'a\\x00b': cannot be read: embedded null byte. Give a .yaml file that you can read"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        assert str(caught.value) == expected


def places(value: object, path: Path = ()) -> Iterator[Path]:
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in rows:
        yield (*path, step)
        yield from places(item, (*path, step))


def written() -> dict[str, object]:
    value = YamlText(FULL).value
    assert isinstance(value, dict)
    return value


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


@pytest.mark.long
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


@pytest.mark.parametrize("given", [dict, Sweep.model_validate])
def test_as_config__lets_the_code_run_that_the_users_own_config_names(given, monkeypatch) -> None:
    monkeypatch.setattr(named_code, "_NAMED", set())
    points = {"points": [{"file": "x.jsonl", "grader": "mine:grade"}]}
    raw = {"models": [{"name": "a", "endpoint": "sim:"}], "tasks": {"dataset": {"manifold": [points]}}}

    with suppress(ConfigError):  # there is no such file
        as_config(given(raw))

    assert named_code.may_run("mine:grade")
    assert not named_code.may_run("mine:other")


def test_as_config__is_at_another_place_if_one_is_named() -> None:
    config = parse_config(text())

    moved = as_config(config, cube="there.zarr", cache="replies")

    assert (moved.cube, moved.cache) == ("there.zarr", "replies")
    assert as_config(config) == config
    assert as_config(config.model_dump(), cube="there.zarr").cube == "there.zarr"


def test_load_config__missing_file(tmp_path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "none.yaml")

    init = "no such file. Write a first config with: evalcube init"
    assert str(caught.value) == f"{tmp_path / 'none.yaml'}: {init}"
