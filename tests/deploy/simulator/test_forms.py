"""The simulator's other APIs and its streams, over real HTTP: one model says the same in each of them."""

import json
import time

import pytest

from evalcube.deploy.simulator.profile import Profile
from evalcube.deploy.simulator.truth import HEADER, Truth, encode
from tests.simulator.forms import PATHS, pieces
from tests.simulator.managed import Simulator

VERSION = {"anthropic-version": "2023-06-01"}
TRUTH = Truth("41", difficulty=4.0)


def ask(client, path, *, truth=TRUTH, profile=None, headers=VERSION, **fields):
    question = "What is 20 + 21?"
    turns = [{"role": "user", "content": question}]
    content = {"/v1/completions": {"prompt": question}, "/v1/responses": {"input": turns}}.get(
        path, {"messages": turns}
    )
    model = (profile or Profile(ability=40)).model_name("m")
    body = {"max_tokens": 900, "model": model, **content, **fields}
    compact = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return client.send("POST", path, compact, {HEADER: encode(truth), **headers})


def events(body):
    """Names and data of the events of a stream."""
    found = []
    for block in body.decode().removesuffix("\n\n").split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        data = lines["data"]
        found.append((lines.get("event", ""), data if data == "[DONE]" else json.loads(data)))
    return found


def test_completions__is_one_text(client):
    status, headers, body = ask(client, "/v1/completions", profile=Profile(ability=40, reasoning="field"))
    reply = json.loads(body)

    assert (status, headers["content-type"], reply["object"]) == (200, "application/json", "text_completion")
    assert reply["choices"][0]["text"].startswith("<think>\n")
    assert reply["choices"][0]["text"].endswith("Answer: 41")
    assert reply["usage"]["completion_tokens"] > 0


def test_messages__is_a_list_of_blocks(client):
    status, _, body = ask(
        client, "/v1/messages", profile=Profile(ability=40, reasoning="field"), system="Be brief."
    )
    reply = json.loads(body)

    assert (status, reply["type"], reply["role"], reply["stop_reason"]) == (
        200,
        "message",
        "assistant",
        "end_turn",
    )
    assert [block["type"] for block in reply["content"]] == ["thinking", "text"]
    assert reply["content"][1]["text"] == "Answer: 41"
    assert reply["usage"].keys() == {"input_tokens", "output_tokens"}
    assert "choices" not in reply


@pytest.mark.parametrize(
    ("profile", "limit", "reason"),
    [(Profile(tokens=500), 5, "max_tokens"), (Profile(refusal=1), 900, "refusal")],
)
def test_messages__says_why_it_ended(client, profile, limit, reason):
    assert (
        json.loads(ask(client, "/v1/messages", profile=profile, max_tokens=limit)[2])["stop_reason"] == reason
    )


@pytest.mark.parametrize(
    ("headers", "fields", "status", "kind"),
    [
        ({}, {}, 400, "invalid_request_error"),
        (VERSION, {"seed": 1}, 400, "invalid_request_error"),
        (VERSION, {"max_tokens": None}, 400, "invalid_request_error"),
        (VERSION, {"messages": [{"role": "system", "content": "x"}]}, 400, "invalid_request_error"),
        (VERSION, {"system": 7}, 400, "invalid_request_error"),
        (VERSION, {"model": "claude"}, 404, "not_found_error"),
    ],
)
def test_messages__refuses_what_the_api_has_not(client, headers, fields, status, kind):
    got, _, body = ask(client, "/v1/messages", headers=headers, **fields)

    assert (got, json.loads(body)["type"], json.loads(body)["error"]["type"]) == (status, "error", kind)


def test_completions__refuses_messages(client):
    assert ask(client, "/v1/completions", prompt=None, messages=[])[0] == 400


@pytest.mark.parametrize(
    ("status", "kind"), [(529, "overloaded_error"), (500, "api_error"), (429, "rate_limit_error")]
)
def test_messages__has_errors_of_its_own_form(client, status, kind):
    client.faults({"kind": "status", "status": status})

    got, _, body = ask(client, "/v1/messages")

    assert (got, json.loads(body)["error"]["type"]) == (status, kind)


@pytest.mark.cluster
def test_key__is_another_header_in_messages(connect_to, monkeypatch):
    monkeypatch.setenv("SIM_KEY", "k-12345678")
    bearer, own = {"authorization": "Bearer k-12345678"}, {"x-api-key": "k-12345678"}
    with Simulator(key_env="SIM_KEY") as server:
        client = connect_to(server)
        got = {
            (path, name): ask(client, path, headers={**VERSION, **headers})[0]
            for path in PATHS
            for name, headers in (("bearer", bearer), ("own", own))
        }

    assert got == {
        (path, name): 200 if (name == "own") == (path == "/v1/messages") else 401
        for path in PATHS
        for name in ("bearer", "own")
    }


@pytest.mark.parametrize("path", PATHS)
def test_stream__says_the_same_with_an_end(client, path):
    whole = json.loads(ask(client, path)[2])
    status, headers, body = ask(client, path, stream=True)
    found = events(body)

    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert headers["transfer-encoding"] == "chunked"
    assert len(found) > 5
    texts = {
        "/v1/chat/completions": lambda data: [c["delta"].get("content", "") for c in data["choices"]],
        "/v1/completions": lambda data: [c["text"] for c in data["choices"]],
        "/v1/messages": lambda data: [data.get("delta", {}).get("text", "")],
        "/v1/responses": lambda data: [data.get("delta", "")],
    }[path]
    said = "".join(text for _, data in found if data != "[DONE]" for text in texts(data))
    if path == "/v1/messages":
        assert said == whole["content"][0]["text"]
        assert [name for name, _ in found][:: len(found) - 1] == ["message_start", "message_stop"]
    elif path == "/v1/responses":
        assert said == whole["output"][-1]["content"][0]["text"]
        assert found[-1][1]["response"]["usage"] == whole["usage"]
    else:
        choice = whole["choices"][0]
        assert said == choice.get("text", choice.get("message", {}).get("content"))
        assert found[-1] == ("", "[DONE]")
        assert found[-2][1]["usage"] == whole["usage"]


def test_stream__comes_as_the_model_writes(client):
    profile = Profile(ability=40, tokens=60, growth=0, spread=0, latency=0.1, speed=0.1)
    body = json.dumps(
        {"model": profile.model_name("m"), "messages": [{"role": "user", "content": "x"}], "stream": True}
    ).encode()
    begin = time.perf_counter()
    with client.connect() as peer:
        peer.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        seen = peer.recv(1 << 16)

        assert time.perf_counter() - begin >= 0.1
        assert seen.startswith(b"HTTP/1.1 200 ")
        assert b"[DONE]" not in seen
        assert client.stats()["in_flight"] == 1


@pytest.mark.parametrize("path", PATHS)
def test_stream_error__comes_in_the_midst(client, path):
    client.faults({"kind": "stream_error", "status": 529})

    found = events(ask(client, path, stream=True)[2])

    assert len(found) > 3
    assert "error" in found[-1][1]
    assert not any("error" in data for _, data in found[:-1])


def test_pieces__put_together_are_the_text():
    for size in (0, 1, 4, 5, 300, 10_000):
        text = "x" * size
        assert "".join(pieces(text)) == text
        assert len(list(pieces(text))) <= 64
