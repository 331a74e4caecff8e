"""Packaged suites: their points, the models that the command line gives them, and copies to edit."""

from __future__ import annotations

import json
from statistics import mean

import pytest

from evalcube.flows.config.load import parse_config
from evalcube.flows.config.recipes import recipe_names
from evalcube.flows.config.suites import (
    load_suite,
    load_sweep,
    model_section,
    suite_names,
    suite_text,
)
from evalcube.flows.errors import ConfigError, SweepError
from evalcube.stages.generate import TASKS, Cell, expand
from tests.flows.support import evalcube, refused

pytestmark = pytest.mark.long

MODELS = '\nmodels: [{name: a, endpoint: "sim:"}]\n'

TIERS = ("easy", "medium", "hard")


def difficulties(suite: str) -> dict[str, list[list[float]]]:
    """Task -> difficulties of its points, by tier."""
    config = load_suite(suite, ["sim:"])
    found = {}
    for name, entries in map(config.manifold, config.tasks):
        points = expand(TASKS[name], entries)
        found[name] = [
            [TASKS[name].difficulty(point.params) for point in points if tier in point.tiers]
            for tier in TIERS
        ]
    return found


# The suites themselves


def test_suites__are_valid_and_have_cubes_of_their_own() -> None:
    generated = [name for name in suite_names() if name not in recipe_names()]

    assert generated == ["gym30", "m12", "m15", "quick"]
    for name in generated:
        config = load_suite(name, ["sim:"])
        assert (config.name, config.cube) == (name, f"results/{name}.zarr")
        assert "\nmodels:" not in suite_text(name)


@pytest.mark.parametrize("suite", ["m12", "m15", "quick"])
def test_suites__difficulty_rises_from_tier_to_tier_in_each_task(suite: str) -> None:
    for task, (easy, medium, hard) in difficulties(suite).items():
        assert min(easy) < min(medium) < min(hard), task
        assert mean(easy) < mean(medium) < mean(hard), task
        assert max(easy) < max(medium) < max(hard), task


def test_m12__has_twelve_tasks_and_about_450_points() -> None:
    config = load_suite("m12", ["sim:"])
    points = [len(expand(TASKS[name], entries)) for name, entries in map(config.manifold, config.tasks)]

    assert len(config.tasks) == 12
    assert 430 <= sum(points) <= 470
    assert min(points) >= 30  # no task counts for much less than another
    assert all(len(tier) >= 12 for tiers in difficulties("m12").values() for tier in tiers)


def test_m15__asks_what_m12_does_and_three_more() -> None:
    m12, m15 = (load_suite(suite, ["sim:"]) for suite in ("m12", "m15"))
    shared = {name: m15.manifold(name) for name in m12.tasks}

    assert shared == {name: m12.manifold(name) for name in m12.tasks}
    assert m15.tasks.keys() - m12.tasks.keys() == {"constraints", "haystack", "tools"}
    assert (m15.samplers, m15.templates, m15.seed) == (m12.samplers, m12.templates, m12.seed)
    assert all(len(tier) >= 12 for tiers in difficulties("m15").values() for tier in tiers)


def test_m15__hands_on_tasks_that_it_has_of_m12() -> None:
    tasks = {"mine": {"suite": "m15", "task": "sort"}}

    section = parse_config(
        suite_text("m12").partition("\ntasks:")[0] + f"{MODELS}tasks: {json.dumps(tasks)}\n"
    )

    assert section.manifold("mine") == load_suite("m12", ["sim:"]).manifold("sort")


def test_quick__has_each_task_and_short_prompts() -> None:
    config = load_suite("quick", ["sim:"])
    cells = [
        Cell(TASKS[name], point.params, config.seed)
        for name, entries in map(config.manifold, config.tasks)
        for point in expand(TASKS[name], entries)
    ]
    prompts = [len(cell.trial(i).prompt) for cell in cells for i in range(config.trials)]

    assert config.tasks.keys() == TASKS.keys() - {"dataset", "haystack", "constraints", "tools"}
    assert len(prompts) <= 400  # requests of a model
    assert mean(prompts) < 400  # characters
    assert max(prompts) < 1500
    assert config.samplers["greedy"]["max_tokens"] <= 128


# Models from the command line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sim:", {"name": "simulated", "endpoint": "sim:"}),
        ("weak=sim:", {"name": "weak", "endpoint": "sim:"}),
        ("sim:http://127.0.0.1:9/v1", {"name": "simulated", "endpoint": "sim:http://127.0.0.1:9/v1"}),
        ("local:", {"name": "smollm2", "endpoint": "local:"}),
        ("local:smollm2", {"name": "smollm2", "endpoint": "local:smollm2"}),
        ("local:/a/b=c/my.gguf", {"name": "my", "endpoint": "local:/a/b=c/my.gguf"}),
        ("https://h/v1#org/m:7b", {"name": "org/m:7b", "endpoint": "https://h/v1", "model": "org/m:7b"}),
        ("big=http://h:1/v1#m", {"name": "big", "endpoint": "http://h:1/v1", "model": "m"}),
        ("org/m:7b=https://h/v1#m", {"name": "org/m:7b", "endpoint": "https://h/v1", "model": "m"}),
    ],
)
def test_model_section__forms_of_a_model(text: str, expected: dict[str, str]) -> None:
    assert model_section([text]) == [expected]


def test_model_section__keys_go_to_all_remote_models_or_to_one() -> None:
    models = ["sim:", "https://h/v1#a", "https://h/v1#b"]

    both = model_section(models, ["KEY"])
    named = model_section(models, ["KEY", "b=OTHER"])

    assert [model.get("key_env") for model in both] == [None, "KEY", "KEY"]
    assert [model.get("key_env") for model in named] == [None, "KEY", "OTHER"]
    assert [m.get("key_env") for m in model_section(models, ["b=OTHER", "KEY"])] == [None, "KEY", "OTHER"]


BAD = {
    "no model's name": (
        ["https://h/v1"],
        [],
        "`models`: a URL must say which model to ask there, got 'https://h/v1'. Write https://h/v1#MODEL",
    ),
    "unknown endpoint": (
        ["gpt-9"],
        [],
        (
            "`models`: models[0].endpoint: must be http(s)://host/v1, local:smollm2, local:/path/model.gguf or sim:, "
            "got 'gpt-9'"
        ),
    ),
    "two of one name": (
        ["sim:", "sim:"],
        [],
        (
            "`models`: models[1].name: model names must be unique: models[0] has this one, too, got 'simulated'. "
            "Give one of them another name"
        ),
    ),
    "none": (
        [],
        [],
        "suite quick: has no models of its own. Give some, as in: evalcube run quick --model sim:",
    ),
    "key for no one": (
        ["sim:"],
        ["MY_KEY"],
        "`key_envs`: no model has an http(s) endpoint, got 'MY_KEY'. Give one with `models`, or leave it out",
    ),
    "two keys for all": (
        ["https://h/v1#abc"],
        ["MY_KEY", "OTHER"],
        "`key_envs`: two variables are for the same models. Write NAME=VARIABLE for each",
    ),
    "key for an unknown model": (
        ["https://h/v1#abc"],
        ["abd=MY_KEY"],
        "`key_envs`: no model 'abd' has an http(s) endpoint. Did you mean 'abc'?",
    ),
}


@pytest.mark.parametrize(("models", "keys", "expected"), BAD.values(), ids=BAD)
def test_load_suite__wrong_models_are_one_clear_message(
    models: list[str], keys: list[str], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_suite("quick", models, keys)

    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("models", "keys"),
    [
        (["https://me:hunter2@h/v1#m"], []),
        (["https://me:hunter2@h/v1"], []),
        (["https://h/v1#m"], ["sk-hunter2"]),
        (["https://h/v1#m"], ["m=sk-hunter2"]),
        (["sim:"], ["sk-hunter2"]),
    ],
)
def test_load_suite__no_secret_is_told(models: list[str], keys: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_suite("quick", models, keys)

    assert "hunter2" not in str(caught.value)


# Suites, files and copies


def test_load_sweep__a_file_wins_over_a_suite(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_sweep("quick", ["sim:"]).name == "quick"
    (tmp_path / "quick").mkdir()
    assert load_sweep("quick", ["sim:"]).name == "quick"
    (tmp_path / "quick").rmdir()

    (tmp_path / "quick").write_text(suite_text("quick").replace("name: quick", "name: mine") + MODELS)

    assert load_sweep("quick").name == "mine"


def test_load_sweep__models_take_the_place_of_the_files(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(suite_text("quick") + MODELS)

    assert [model.name for model in load_sweep(path).models] == ["a"]
    assert [model.name for model in load_sweep(path, ["b=sim:", "local:"]).models] == ["b", "smollm2"]
    with pytest.raises(SweepError, match=r"`key_envs`.* `models`"):
        load_sweep(path, key_envs=["KEY"])


def test_load_sweep__problems_of_the_file_keep_their_lines(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("samplers: {g: {}}\ntasks: {arithmetic: {task: 99.5, params: {}}}\n")

    with pytest.raises(ConfigError) as caught:
        load_sweep(path, ["gpt-9"])

    sources = [(problem.source, problem.line) for problem in caught.value.problems]
    assert sources == [("`models`", None), (str(path), 2)]


def test_suite_text__unknown_name() -> None:
    with pytest.raises(
        SweepError, match=r"there is no suite 'zzz'. Suites: .*m12, m15, math500, mmlu-pro, musr, quick"
    ):
        suite_text("zzz")
    with pytest.raises(SweepError, match="mean 'quick'"):
        suite_text("quik")


# The command line


def test_cli__plans_a_suite(tmp_path) -> None:
    code, output, errors = evalcube("plan", "m12", "--model", "sim:", "--json", cwd=tmp_path)
    assert code == 0, errors

    document = json.loads(output)
    totals = document["totals"]
    assert totals["all"] == document["cells"] == sum(row["all"] for row in document["points"].values())
    assert min(totals[tier] for tier in TIERS) > 150
    assert document["to_send"] == document["requests"] == totals["all"] * document["trials"]
    assert list(tmp_path.iterdir()) == []  # a plan writes nothing


def test_cli__runs_a_suite(tmp_path, simulator) -> None:
    endpoint = f"a=sim:{simulator.base_url}"
    code, output, errors = evalcube(
        "run", "quick", "--model", endpoint, "--workers", 1, "--quiet", cwd=tmp_path
    )

    assert code == 0, errors
    assert "336 of 336 trials done" in output
    assert (tmp_path / "results" / "quick.zarr").is_dir()


def test_cli__no_price_is_no_cost_of_nothing(tmp_path) -> None:
    code, output, errors = evalcube("plan", "quick", "--model", "sim:", cwd=tmp_path)

    assert code == 0, errors
    assert "cost unknown" in output
    assert "0.00" not in output


def test_cli__lists_the_points_of_a_task(tmp_path) -> None:
    code, output, errors = evalcube("plan", "m12", "--model", "sim:", "--task", "dates", cwd=tmp_path)

    assert code == 0, errors
    assert "dates: 40 points" in output
    assert "easy, medium" in output
    refused(
        evalcube("plan", "m12", "--model", "sim:", "--task", "date", cwd=tmp_path),
        "the sweep has no task 'date'. Did you mean 'dates'?",
    )


def test_cli__copies_a_suite(tmp_path) -> None:
    code, output, errors = evalcube("init", "--from", "quick", cwd=tmp_path)

    assert code == 0, errors
    assert "quick.yaml --model" in output
    assert load_sweep(tmp_path / "quick.yaml", ["a=sim:"]).models[0].name == "a"
    refused(evalcube("init", "--from", "quick", cwd=tmp_path), "'quick.yaml' exists", "--force")


def test_cli__unknown_suite_lists_those_that_there_are(tmp_path) -> None:
    refused(
        evalcube("plan", "m13", "--model", "sim:", cwd=tmp_path),
        "'m13': no such file, and no suite of that name",
        "Did you mean 'm1",
        "m12, m15, math500, mmlu-pro, musr, quick",
    )
    refused(evalcube("run", "no.yaml", cwd=tmp_path), "no.yaml: no such file. Write a first config")
