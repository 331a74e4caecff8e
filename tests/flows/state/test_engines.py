"""What is said of evaluations whose replies come from several systems."""

import json
from types import SimpleNamespace

from evalcube.flows.state.engines import (
    ENGINES,
    Origin,
    joined_engines,
    origins_of,
    read_engines,
    unknown_ends,
    write_engines,
)
from evalcube.stages.infer.endpoint import EngineInfo
from evalcube.stages.reply.body import UNKNOWN_END
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import StorageError
from tests.cases import with_cases
from tests.storage.support.memory_space import MemorySpace

VLLM, LLAMA = EngineInfo("vLLM", "1"), EngineInfo("llama.cpp", "2", "q4")


def test_origins_of__name_several_systems_with_their_shares_of_trials():
    fingerprints = ({"a": 20, "b": 10}, {"a": 10}, {"c": 3})
    receipts = [
        SimpleNamespace(region=Region(model, trial, 0), fingerprints=counts)
        for (model, trial), counts in zip([(0, 0), (0, 1), (1, 0)], fingerprints, strict=True)
    ]

    first, second = origins_of([("m", "1"), ("n", "2")], {}, receipts)

    assert first.warning.startswith("m: ")
    assert "a 75%, b 25%" in first.warning
    assert second.warning == ""


def test_read_engines__reads_back_what_was_written():
    records = MemorySpace("here")
    assert read_engines(records) == {}

    write_engines(records, {"a": [VLLM, LLAMA], "b": [VLLM], "c": []})

    assert read_engines(records) == {"a": (VLLM, LLAMA), "b": (VLLM,)}
    assert [*json.loads(records.get(ENGINES).data)["evaluations"]] == ["a", "b"]


def test_write_engines__that_cannot_is_nobodys_loss():
    def refuse(*_):
        raise StorageError("full", "here", "")

    write_engines(SimpleNamespace(put=refuse), {"a": [VLLM]})


@with_cases(
    ("document", "engines"),
    [
        ([], {}),
        ({"evaluations": []}, {}),
        ({"evaluations": {"a": 5}}, {}),
        (
            {"evaluations": {"a": [5, {"version": "1"}, {"engine": 7}, {"engine": "x"}, {"engine": "x"}]}},
            {"a": 1},
        ),
        ({"evaluations": {"a": [{"engine": f"x{number}"} for number in range(40)]}}, {"a": 16}),
    ],
)
def test_read_engines__takes_what_has_the_form_and_not_too_much(document, engines):
    records = MemorySpace("here")
    records.put(ENGINES, json.dumps(document).encode())

    assert {name: len(infos) for name, infos in read_engines(records).items()} == engines


def test_joined_engines__are_those_of_all_records_once():
    many = [EngineInfo(str(number)) for number in range(12)]

    found = joined_engines(
        [{"a": [VLLM]}, {"a": [LLAMA, VLLM], "b": [LLAMA]}, {"c": many}, {"c": [LLAMA, *many, VLLM]}]
    )

    assert (found["a"], found["b"]) == ((VLLM, LLAMA), (LLAMA,))
    assert found["c"] == (*many, LLAMA, VLLM)
    assert len(joined_engines([{"c": [EngineInfo(str(number)) for number in range(20)]}])["c"]) == 16


@with_cases(
    ("engines", "fingerprints", "mixed", "said"),
    [
        ((), {}, False, ""),
        ((VLLM,), {"a": 3}, False, ""),
        ((VLLM, LLAMA), {}, True, "different engines (vLLM 1, llama.cpp 2 q4)"),
        ((VLLM,), {"a": 3, "b": 1}, True, "a 75%, b 25%"),
        ((), dict.fromkeys("abcde", 1), True, "a 20%, b 20%, c 20%, 2 more"),
    ],
)
def test_origin__warns_of_several_systems(engines, fingerprints, mixed, said):
    origin = Origin("m", engines, fingerprints)

    assert origin.mixed == mixed
    assert said in origin.warning
    assert bool(origin.warning) == mixed


def test_origin__in_words_has_engines_and_what_replies_name():
    assert (
        str(Origin("m", (VLLM, LLAMA), {"a": 1, "b": 2, "c": 1}))
        == "vLLM 1, llama.cpp 2 q4, replies name a, b, c"
    )
    assert str(Origin("m")) == ""


def receipt(model, **fingerprints):
    return SimpleNamespace(region=Region(model, 0, 0), fingerprints=fingerprints)


def test_origins_of__tells_systems_from_words_for_ends():
    odd = {f"{UNKNOWN_END}odd": 4, "a": 1}
    receipts = [SimpleNamespace(region=Region(0, 0, 0), fingerprints=odd), receipt(0, b=3), receipt(7, c=9)]

    (origin,) = origins_of([("m", "1")], {"1": [VLLM]}, receipts)

    assert list(origin.fingerprints.items()) == [("b", 3), ("a", 1)]
    assert origin.engines == (VLLM,)
    assert unknown_ends([*receipts, receipt(0, **odd)]) == {"odd": 8}
