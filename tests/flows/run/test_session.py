"""What a run keeps beside its cube while it goes on."""

from types import SimpleNamespace

from evalcube.flows.events import Noted, Traffic
from evalcube.flows.run.session import Session
from evalcube.flows.state.engines import read_engines, write_engines
from evalcube.stages.infer.endpoint import EngineInfo
from tests.storage.support.memory_space import MemorySpace

VLLM, LLAMA = EngineInfo("vLLM", "1"), EngineInfo("llama.cpp", "2", "q4")


def test_keep_engines__adds_what_serves_each_model_to_what_served_earlier_runs():
    records = MemorySpace("here")
    write_engines(records, {"a": [LLAMA]})
    pairs = {"a": "alpha", "b": "beta", "c": "gamma"}
    evaluations = [SimpleNamespace(eval_id=name, model=model) for name, model in pairs.items()]
    session = Session.__new__(Session)
    session._engines = {}
    session.store = SimpleNamespace(
        plan=SimpleNamespace(evaluations=evaluations), cube=SimpleNamespace(records=records)
    )

    for event in (Noted("beside"), Traffic(engines={"alpha": [list(VLLM)], "beta": [list(VLLM)]})):
        session._keep_engines(event)

    engines = read_engines(records)
    assert {name: set(infos) for name, infos in engines.items()} == {"a": {VLLM, LLAMA}, "b": {VLLM}}
