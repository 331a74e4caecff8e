from typing import get_args

import pytest

from evalcube.deploy.servers.command import PRESETS, context_length, fill_in, preset_command
from evalcube.flows.config.serving import PresetName
from tests.cases import with_cases

SGLANG = "python3 -m sglang.launch_server"


def test_presets__are_those_that_a_config_may_name():
    assert set(get_args(PresetName)) == set(PRESETS)


@with_cases(
    ("name", "model", "command"),
    [
        ("vllm", "Q/q", "vllm serve Q/q --served-model-name {name} --host {host} --port {port} --x 1"),
        (
            "sglang",
            "Q/q",
            f"{SGLANG} --model-path Q/q --served-model-name {{name}} --host {{host}} --port {{port}} --x 1",
        ),
        (
            "llama.cpp",
            "Q/q:Q4",
            "llama-server --hf-repo Q/q:Q4 --alias {name} --host {host} --port {port} --x 1",
        ),
        (
            "llama.cpp",
            "/w/a.gguf",
            "llama-server --model /w/a.gguf --alias {name} --host {host} --port {port} --x 1",
        ),
        ("ollama", "qwen3:8b", "ollama serve --x 1"),
    ],
)
def test_preset_command__is_that_of_the_servers_documentation(name, model, command):
    assert " ".join(preset_command(name, model, ["--x", "1"])) == command


def test_ollama__takes_its_address_from_a_variable():
    words = {"host": "127.0.0.1", "port": 5}

    assert fill_in(PRESETS["ollama"].env["OLLAMA_HOST"], words) == "127.0.0.1:5"


@pytest.mark.parametrize(("answer", "context"), [(2000, 10_240), (32_000, 40_960), (0, 32_768)])
def test_ollama__has_room_for_prompt_and_answer(answer, context):
    words = {"context": context_length(answer)}

    assert fill_in(PRESETS["ollama"].env["OLLAMA_CONTEXT_LENGTH"], words) == str(context)


def test_fill_in__leaves_other_braces_alone():
    assert fill_in('{"port": {port}, "a": {}}', {"port": 5}) == '{"port": 5, "a": {}}'
