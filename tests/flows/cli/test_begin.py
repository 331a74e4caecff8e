"""Configs to begin with: of a file of questions, of a suite, of a cube."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcube.flows.config.load import load_config
from evalcube.flows.run.sweep import run
from evalcube.flows.state.trust import STATE_VARIABLE
from tests.flows.support import evalcube, reset, sweep_config

GERMAN = "Nr;Frage;Antwort;Thema\n1;Was ist die Hauptstadt von Österreich?;Wien;Städte\n2;Wer?;Ich;Rätsel\n"
OPTIONS = "question;A;B;C;right one\nWhat?;x;y;;B\nWhich?;p;q;r;C\n"
ARC = {"question": "Q", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "A"}
LETTERED = {"prompt": "Q", "options": {"A": "x", "B": "y"}, "label": 1}


@pytest.mark.parametrize(
    ("name", "content", "params"),
    [
        (
            "klasse.csv",
            GERMAN.encode("utf-16"),
            {"prompt": "Frage", "answer": "Antwort", "id": "Nr", "match": "contains"},
        ),
        (
            "o.csv",
            OPTIONS.encode(),
            {"prompt": "question", "options": ["A", "B", "C"], "answer": "right one"},
        ),
        ("arc.jsonl", json.dumps(ARC).encode(), {"options": "choices.text", "answer": "answerKey"}),
        (
            "map.jsonl",
            json.dumps(LETTERED).encode(),
            {"options": ["options.A", "options.B"], "answer": "label", "answer_is": "number"},
        ),
        (
            "sum.tsv",
            b"text of it\tn\nWhat is 1 + 1?\t2\n",
            {"prompt": "text of it", "answer": "n", "kind": "number"},
        ),
    ],
)
def test_init__guesses_the_columns_of_a_file_so_that_plan_passes(tmp_path, name, content, params):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_bytes(content)

    code, output, _ = evalcube("init", "--questions", f"data/{name}", "sub/mine.yaml", cwd=tmp_path)

    assert code == 0, output
    config = load_config(tmp_path / "sub/mine.yaml")
    (task,) = config.tasks.values()
    assert params.items() <= task.params.items()
    assert evalcube("plan", "sub/mine.yaml", cwd=tmp_path)[0] == 0
    assert f"../data/{name}" in (tmp_path / "sub/mine.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--questions", "book.xlsx"), "is a spreadsheet"),
        (("--questions", "none.csv"), "cannot be opened"),
        (("--questions", "long.csv"), "no value in field"),
        (("--questions", "asked.csv"), "has no column with answers"),
        (("--from", "quik"), "Did you mean 'quick'"),
        (("--from", "results/none.zarr"), "there is no cube"),
        (("--from", "quick", "--plugin", "x"), "exclude each other"),
    ],
)
def test_init__says_what_it_cannot_begin_with(tmp_path, arguments, message):
    (tmp_path / "asked.csv").write_text("question\nWell?\n")
    (tmp_path / "long.csv").write_text("question,answer\nWell?,\nWhat?,x\n")

    code, _, complaint = evalcube("init", *arguments, cwd=tmp_path)

    assert code == 2
    assert message in complaint
    assert not list(tmp_path.glob("*.yaml"))


@pytest.fixture
def config(tmp_path, simulator):
    reset(simulator)
    config = sweep_config(tmp_path, simulator.base_url, trials=4, cells=1)
    run(config)
    return config


def test_init__writes_the_config_of_an_own_cube(config, tmp_path):
    assert evalcube("init", "--from", config["cube"], "again.yaml", cwd=tmp_path)[0] == 0

    again = load_config(tmp_path / "again.yaml")
    assert (again.cube, again.cache) == (config["cube"], config["cache"])
    assert [model.endpoint for model in again.models] == [config["models"][0]["endpoint"]]
    assert "0 requests to send" in evalcube("plan", "again.yaml", cwd=tmp_path)[1]


def test_init__says_whose_addresses_a_strangers_config_has_and_takes_no_keys(config, tmp_path, monkeypatch):
    notes = Path(config["cube"]) / "_evalcube/sweep.json"
    document = json.loads(notes.read_text())
    model = {
        "name": "alpha",
        "endpoint": "https://theirs.example/v1",
        "key_env": "MY_KEY",
        "headers": {"X": "secret"},
    }
    document["config"]["models"] = [model, {"name": "own", "serve": {"command": ["evil"]}}]
    notes.write_text(json.dumps(document))
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "another user"))

    code, _, said = evalcube("init", "--from", config["cube"], "theirs.yaml", cwd=tmp_path)

    text = (tmp_path / "theirs.yaml").read_text()
    assert code == 0
    for told in (said, text):
        assert "alpha at https://theirs.example/v1" in told
        assert not {"MY_KEY", "secret", "evil"} & set(told.replace('"', " ").split())
    assert [model.endpoint for model in load_config(tmp_path / "theirs.yaml").models] == [
        "https://theirs.example/v1",
        "sim:",
    ]


def test_sample__shows_each_question_with_its_answer(tmp_path):
    trials = json.loads(evalcube("sample", "sort", "--n", 2, "--json", cwd=tmp_path)[1])

    code, output, _ = evalcube("sample", "sort", "--n", 2, cwd=tmp_path)

    assert code == 0
    assert output.split("--- trial ") == [
        "",
        *(
            f"{number}\n{row['prompt']}\n\nReference answer: {row['answer']}\n"
            for number, row in enumerate(trials)
        ),
    ]


def test_simulate__takes_a_free_port_unless_told_which(tmp_path, monkeypatch):
    ports = []
    monkeypatch.setattr("evalcube.deploy.simulator.__main__.main", lambda words: ports.append(words) or 3)

    codes = [evalcube("simulate", *words, cwd=tmp_path)[0] for words in ([], ["--port", 5])]

    assert (codes, ports) == ([3, 3], [["--port", "0"], ["--port", "5"]])
