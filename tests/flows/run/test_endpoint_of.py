"""What of a config's model reaches its endpoint."""

from dataclasses import fields

from evalcube.flows.config.load import from_mapping
from evalcube.flows.run.servers import endpoint_of
from evalcube.stages.infer.endpoint import Endpoint

SET = {
    "key_file": "key.txt",
    "ca_file": "own.pem",
    "api": "completions",
    "stream": True,
    "headers": {"x-team": "blue"},
    "limits": {"connections": 3, "timeout": 7, "retries": 1, "patience": 9, "requests_per_minute": 5},
}
POINTS = [{"points": [{"length": 4, "max_depth": 0}], "tiers": ["easy"]}]


def test_endpoint_of__has_every_setting_that_it_has_a_field_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = {"name": "m", "model": "sent", "endpoint": "http://127.0.0.1:1/v1", **SET}
    sweep = from_mapping({"models": [model], "tasks": {"arithmetic": {"manifold": POINTS}}})

    found = endpoint_of(sweep.models[0], "http://127.0.0.1:2/v1")

    plain = Endpoint("m", "http://127.0.0.1:2/v1")
    changed = {one.name for one in fields(Endpoint) if getattr(found, one.name) != getattr(plain, one.name)}
    assert changed == {*SET, *SET["limits"], "model"} - {"limits"}
    assert (found.key_file, found.ca_file) == (str(tmp_path / "key.txt"), str(tmp_path / "own.pem"))
    assert (found.headers, found.model, found.connections) == ({"x-team": "blue"}, "sent", 3)
