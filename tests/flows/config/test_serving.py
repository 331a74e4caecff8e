"""`serve:` and several addresses, as a config may have them."""

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.config.serving import SERVED
from evalcube.flows.errors import ConfigError
from evalcube.flows.plan.build import build_plan
from tests.cases import with_cases

TASKS = {"sort": {"params": {"length": 4}}}


def config(*models, **more):
    return from_mapping({"models": list(models), "tasks": TASKS, **more})


def problems(*models, **more):
    with pytest.raises(ConfigError) as caught:
        config(*models, **more)
    return str(caught.value)


def served(name="m", **serve):
    return {"name": name, "serve": serve}


def test_serve__takes_the_place_of_an_endpoint_and_travels_as_it_was_written():
    model = served(preset="vllm", model="Q/q", args="--tensor-parallel-size 2")

    found = config(model)

    assert found.models[0].endpoint == SERVED
    assert found.models[0].serve.args == ("--tensor-parallel-size", "2")
    written = found.model_dump(mode="json", exclude_unset=True)
    assert "endpoint" not in written["models"][0]
    assert from_mapping(written) == found
    assert from_mapping(found.model_dump()).models == found.models


def test_serve__takes_plain_variables_which_may_tell_the_port():
    found = config(served(command="srv", env={"PORT": "{port}", "MODE": "fast"}))

    assert found.models[0].serve.env == {"PORT": "{port}", "MODE": "fast"}


def test_command__is_split_as_a_shell_does_and_never_seen_by_one():
    found = config(served(command="srv --port {port} --args '{\"a b\": 1}' ; rm"))

    assert found.models[0].serve.command == ("srv", "--port", "{port}", "--args", '{"a b": 1}', ";", "rm")


def test_serve__and_addresses_are_no_part_of_what_is_measured():
    plans = [
        build_plan(config({"name": "m", **where}))
        for where in (
            {"endpoint": "https://one.example/v1"},
            {"endpoint": ["https://one.example/v1", "https://two.example/v1"]},
            {"serve": {"preset": "sglang", "model": "/weights"}},
        )
    ]

    assert len({str(plan.spec()) for plan in plans}) == 1


@with_cases(
    ("model", "said"),
    [
        ({"name": "m"}, "models[0].endpoint: is missing"),
        ({"name": "m", "endpont": "https://h/v1"}, "Did you mean 'endpoint'?"),
        ({"name": "m", "endpoint": 5}, "must be a text, or a list of texts, got 5"),
        ({"name": "m", "endpoint": []}, "must have from 1 to 256 addresses, has 0"),
        ({"name": "m", "endpoint": ["https://h/v1", "ftp://h"]}, "endpoint[1]: must be http(s)://host/v1"),
        ({"name": "m", "endpoint": ["https://h/v1", "https://h/v1/"]}, "endpoint[1]: is in the list already"),
        ({"name": "m", "endpoint": ["https://h/v1", "local:"]}, "endpoint[1]: only servers at addresses"),
        ({"name": "m", "endpoint": ["https://h/v1", "sim:http://127.0.0.1:5/v1"]}, "all simulators or none"),
        (
            {"name": "m", "endpoint": ["https://h/v1", "https://i/v1"], "batch": True},
            "excludes several addresses",
        ),
        ({"name": "m", "endpoint": "serve:"}, "is the address of a model with serve: only"),
        ({**served(preset="vllm"), "endpoint": "https://h/v1"}, "models[0].endpoint: excludes serve"),
        ({**served(preset="vllm"), "batch": True}, "models[0].batch: excludes serve"),
        (served(), "models[0].serve: needs either preset or command"),
        (served(preset="vllm", command="x {port}"), "needs either preset or command"),
        (served(preset="tgi"), "must be one of 'vllm', 'sglang', 'llama.cpp' or 'ollama'"),
        (served(command="srv --port 8000"), "must tell the server its port"),
        (served(command=[]), "must be a list of a program and its arguments"),
        (served(command="srv 'a {port}"), "has a quote that does not end"),
        (served(command=["srv", 5]), "models[0].serve.command[1]: must be a text"),
        (served(command="srv {port}", args="-v"), "models[0].serve.args: excludes command"),
        (served(preset="vllm", env={"HF_TOKEN": "x"}), "carries a secret"),
        (served(preset="vllm", env={"A": 5}), "models[0].serve.env.A: must be a text"),
        (served(preset="vllm", env=["A"]), "models[0].serve.env: must be a mapping"),
        (served(preset="vllm", env_from=["A"]), "models[0].serve.env_from: must be a mapping"),
        (served(preset="vllm", env={"A B": "x"}), "must be the name of an environment variable"),
        (served(preset="vllm", env_from={"A": "not a name"}), "serve.env_from.A: must be the name"),
        (served(preset="vllm", start_limit=0), "must be more than 0"),
        (served(preset="ollama", model="q"), "Ollama serves a model under its own name"),
        (served(preset="vllm", prest=1), "unknown field 'prest'. Did you mean 'preset'?"),
    ],
)
def test_serve__one_clear_problem(model, said):
    text = problems(model)

    assert said in text
    assert len(text.splitlines()) == 1


@with_cases("word", ["sk-1234567890abcdef", "--api-key=sk-1234567890abcdef", "https://me:pw@host/x"])
@with_cases(
    "place",
    [
        lambda word: {"command": ["srv", "{port}", word]},
        lambda word: {"command": "srv {port}", "env": {"A": word}},
        lambda word: {"preset": "vllm", "args": [word]},
    ],
)
def test_serve__shows_no_key_that_stands_among_its_words(word, place):
    text = problems(served(**place(word)))

    assert "looks like a key" in text
    assert "sk-1234" not in text
    assert "pw@" not in text


def test_variables__of_well_known_tokens_are_no_keys():
    found = config({**served(preset="vllm", env_from={"HF_TOKEN": "TEAM_HF_TOKEN"}), "key_env": "HF_TOKEN"})

    assert found.models[0].serve.env_from == {"HF_TOKEN": "TEAM_HF_TOKEN"}
    for key in ("hf_abcdEFGH12345", "AKIA1234567890ABCDEF"):
        assert "must be the name" in problems(served(preset="vllm", env_from={"HF_TOKEN": key}))


def test_serve__weights_below_folders_with_long_names_are_no_key():
    path = "/hub/models--q/snapshots/9c1b2a3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b/q.gguf"

    assert config(served(command=["srv", "--port", "{port}", "-m", path])).models[0].serve.command[-1] == path
