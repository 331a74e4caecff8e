import pytest

from evalcube.stages.infer.endpoint import EngineInfo, identification
from tests.cases import with_cases


def drive(documents, model="m"):
    """What comes of looking up paths in `documents`, and the paths."""
    steps, asked = identification(model), []
    path = next(steps)
    try:
        while True:
            asked.append(path)
            path = steps.send(documents.get(path))
    except StopIteration as end:
        return end.value, asked


def listing(owner, **more):
    return {"object": "list", "data": [{"id": "other"}, {"id": "m", "owned_by": owner, **more}]}


@pytest.mark.parametrize(
    ("documents", "found"),
    [
        ({"models": listing("vllm"), "/version": {"version": "0.11.2"}}, EngineInfo("vLLM", "0.11.2")),
        (
            {"models": listing("sglang"), "/server_info": {"version": "0.5.4", "quantization": "fp8"}},
            EngineInfo("SGLang", "0.5.4", "fp8"),
        ),
        (
            {"models": listing("sglang"), "/get_server_info": {"version": "0.4", "quantization": None}},
            EngineInfo("SGLang", "0.4"),
        ),
        (
            {"models": listing("llamacpp", meta={"ftype": "Q4_1"}), "/props": {"build_info": "b8681-x"}},
            EngineInfo("llama.cpp", "b8681-x", "Q4_1"),
        ),
        (
            {
                "models": listing("library"),
                "/api/version": {"version": "0.12.6"},
                "/api/tags": {"models": [{"model": "m", "details": {"quantization_level": "Q4_K_M"}}]},
            },
            EngineInfo("Ollama", "0.12.6", "Q4_K_M"),
        ),
        ({"models": listing("library")}, None),
    ],
    ids=["vllm", "sglang", "sglang before", "llama.cpp", "ollama", "another library"],
)
def test_identification__knows_the_engines_that_name_themselves(documents, found):
    assert drive(documents)[0] == found


@with_cases("owner", ["openai", "system", None, {"a": 1}, "vllm\x1b[31m", 7])
def test_identification__asks_a_stranger_for_nothing_but_its_models(owner):
    assert drive({"models": listing(owner)}) == (None, ["models"])


@with_cases(
    "document",
    [None, [], "text", {"data": 5}, {"data": [1, None]}, {"data": []}, {"data": [{"owned_by": []}]}],
)
def test_identification__stands_any_listing(document):
    assert drive({"models": document}) == (None, ["models"])


@with_cases("version", [None, 5, ["1"], {"version": {"a": 1}}, {"version": 9}])
def test_identification__a_version_that_is_no_text_is_unknown(version):
    assert drive({"models": listing("vllm"), "/version": version})[0] == EngineInfo("vLLM")


def test_identification__keeps_hostile_texts_short_and_printable():
    said = "<script>\x1b[2J\n\u202e" + "x" * 10_000

    info, _ = drive({"models": listing("vllm"), "/version": {"version": said}})

    assert len(info.version) <= 64
    assert info.version.isascii()
    assert info.version.isprintable()
