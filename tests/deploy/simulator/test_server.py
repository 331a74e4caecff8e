import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from evalcube.deploy.servers.managed import module_path
from evalcube.deploy.simulator.profile import Profile
from evalcube.deploy.simulator.reply import request_digest
from evalcube.deploy.simulator.truth import HEADER, Truth, encode
from tests.simulator.__main__ import main
from tests.simulator.managed import Simulator
from tests.simulator.server import MAX_BODY, MAX_HEAD
from tests.waiting import PATIENCE, wait_until

CHAT = "/v1/chat/completions"


def raw_post(body: bytes, *, version: str = "1.1", extra: str = "") -> bytes:
    head = f"POST {CHAT} HTTP/{version}\r\nhost: a\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


def content(answer: bytes) -> str:
    return json.loads(answer)["choices"][0]["message"]["content"]


def test_chat__is_an_openai_completion(client, chat_body):
    sure = chat_body(profile=Profile(ability=40))
    status, headers, body = client.chat(sure, Truth("41", difficulty=4.0))

    assert (status, headers["content-type"]) == (200, "application/json")
    reply = json.loads(body)
    assert reply["model"] == Profile(ability=40).model_name("m")
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert content(body).endswith("\nAnswer: 41")
    assert reply["usage"]["total_tokens"] > reply["usage"]["completion_tokens"] > 0


def test_chat__gives_equal_requests_equal_replies(client, connect_to, chat_body):
    truth = Truth("41", difficulty=32.0)
    first = client.chat(truth=truth)

    with Simulator() as another:
        assert connect_to(another).chat(truth=truth) == first
    assert client.chat(truth=truth) == first
    assert client.chat(truth=Truth("41", difficulty=32.0, repeat=1)) != first
    assert client.chat(chat_body("What is 20 + 22?"), truth) != first


def test_chat__honours_either_name_of_the_limit(client, chat_body):
    for name in ("max_tokens", "max_completion_tokens"):
        reply = json.loads(client.chat(chat_body(**{name: 5}), Truth("41"))[2])
        assert reply["choices"][0]["finish_reason"] == "length"
        assert reply["usage"]["completion_tokens"] == 5


def test_chat__takes_a_garbage_truth_for_none(client):
    status, _, body = client.chat(headers={HEADER: "%%%"})

    assert status == 200
    assert content(body).endswith("I do not know the answer to this.")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"model": "gpt-5"}, 404),
        ({"model": "sim/a?ability=99"}, 404),
        ({"model": 7}, 400),
        ({"messages": []}, 400),
        ({"messages": ["hi"]}, 400),
        ({"messages": None}, 400),
        ({"max_tokens": 0}, 400),
        ({"max_tokens": "9"}, 400),
        ({"n": 2}, 400),
    ],
    ids=str,
)
def test_chat__refuses_a_wrong_field(client, chat_body, change, status):
    got, _, body = client.chat(json.dumps({**json.loads(chat_body()), **change}).encode())

    assert got == status
    assert next(iter(change)) in json.loads(body)["error"]["message"] or status == 404
    assert client.stats()["requests"] == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000], ids=len)
def test_chat__refuses_a_body_that_is_no_request(client, body):
    status, _, answer = client.chat(body)

    assert status == 400
    assert json.loads(answer)["error"]["type"] == "invalid_request_error"


def test_routes(client):
    assert client.send("GET", "/health")[0] == 200
    assert client.send("GET", "/v1/models?x=1")[0] == 200
    assert client.send("GET", "/nowhere")[0] == 404
    status, headers, _ = client.send("GET", CHAT)
    assert (status, headers["allow"]) == (405, "POST")


def test_models__has_names_that_can_be_asked(client):
    listed = json.loads(client.send("GET", "/v1/models")[2])["data"][0]["id"]
    body = json.dumps({"model": listed, "messages": [{"role": "user", "content": "hi"}]}).encode()

    assert client.chat(body)[0] == 200


def test_head__has_the_length_and_no_body(client):
    status, headers, body = client.send("HEAD", "/v1/models")

    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == len(client.send("GET", "/v1/models")[2])


def test_connection__answers_pipelined_requests_in_order(client, chat_body):
    slow = Profile(tokens=20, latency=0.15)
    bodies = [chat_body(f"number {i}", slow if i == 1 else None) for i in range(5)]
    expected = [json.loads(client.chat(body)[2])["id"] for body in bodies]

    answer = client.raw(b"".join(raw_post(body) for body in bodies), answers=5)

    assert answer.count(b"HTTP/1.1 200 OK") == 5
    places = [answer.index(name.encode()) for name in expected]
    assert places == sorted(places)


def test_connection__answers_many_pipelined_requests(client, chat_body):
    answer = client.raw(
        b"".join(raw_post(chat_body(f"n{i}"), extra="x: " + "y" * 900 + "\r\n") for i in range(300)),
        answers=300,
    )

    assert answer.count(b"HTTP/1.1 200 OK") == 300


def test_connection__takes_a_bounded_number_of_requests_at_a_time(client, chat_body):
    bodies = [chat_body(f"n{i}", Profile(latency=0.05)) for i in range(600)]
    answer = client.raw(
        b"".join(raw_post(body, extra="x: " + "y" * 4000 + "\r\n") for body in bodies), answers=600
    )

    assert answer.count(b"HTTP/1.1 200 OK") == 600
    assert client.stats()["most_in_flight"] < 300


def test_connection__reads_a_request_byte_by_byte(client, chat_body):
    answer = client.raw(*(bytes([byte]) for byte in raw_post(chat_body())), answers=1)

    assert answer.startswith(b"HTTP/1.1 200 OK")


def test_connection__reads_chunks(client, chat_body):
    body = chat_body()
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:50], body[50:]))
    head = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".encode()

    answer = client.raw(head, chunks, b"0\r\n\r\n", answers=1)

    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == json.loads(client.chat(body)[2])


def test_connection__tells_to_continue(client, chat_body):
    request = raw_post(chat_body(), extra="expect: 100-continue\r\n")
    split = request.index(b"\r\n\r\n") + 4
    with client.connect() as peer:
        peer.sendall(request[:split])
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"

        peer.sendall(request[split:])
        assert peer.recv(100).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(("extra", "stays"), [("", False), ("connection: keep-alive\r\n", True)])
def test_connection__of_http_1_0_stays_open_when_asked(client, chat_body, extra, stays):
    with client.connect() as peer:
        for _ in range(2 if stays else 1):
            peer.sendall(raw_post(chat_body(), version="1.0", extra=extra))
            answer = peer.recv(1 << 16)
        told = b"connection: keep-alive" if stays else b"connection: close"

        assert told in answer
        if stays:
            peer.settimeout(0.3)
            with pytest.raises(TimeoutError):
                peer.recv(1)
        else:
            assert peer.recv(1) == b""


def test_connection__closes_when_asked(client, chat_body):
    answer = client.raw(raw_post(chat_body(), extra="connection: close\r\n") + raw_post(chat_body()))

    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


@pytest.mark.parametrize("chunked", [False, True])
def test_connection__refuses_a_body_over_the_limit(client, chunked):
    if chunked:
        head = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{MAX_BODY + 1:x}\r\n"
    else:
        head = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\ncontent-length: {MAX_BODY + 1}\r\n\r\n"

    answer = client.raw(head.encode(), b" " * (MAX_BODY + 1))

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_connection__takes_a_body_at_the_limit(client, chat_body):
    body = chat_body()

    assert client.chat(body + b" " * (MAX_BODY - len(body)))[0] == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nhost: a\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\ncontent-length: -1\r\n\r\n", b"400"),
    ],
    ids=["nonsense", "upgrade", "length"],
)
def test_connection__refuses_what_is_no_request(client, request_bytes, status):
    answer = client.raw(request_bytes)

    assert answer.rpartition(b"HTTP/1.1 ")[2][:3] == status
    assert b"connection: close" in answer


def test_connection__refuses_an_endless_head(client):
    with client.connect() as peer:
        peer.sendall(b"GET /health HTTP/1.1\r\n")
        # What comes in one read with the head's beginning, at most 256 KiB, is not counted.
        peer.sendall((b"a: " + b"x" * 1000 + b"\r\n") * ((MAX_HEAD + (512 << 10)) // 1000))
        assert peer.recv(100).startswith(b"HTTP/1.1 431 ")


def test_chat__waits_for_latency_and_tokens(client, chat_body):
    body = chat_body(profile=Profile(tokens=100, spread=0, latency=0.1, speed=1000))
    start = time.monotonic()
    assert client.chat(body, Truth("41"))[0] == 200

    assert time.monotonic() - start >= 0.2


def test_stats__count_requests_attempts_and_models(client, chat_body):
    other = chat_body().replace(b"sim/m", b"sim/other")
    for body in (chat_body(), chat_body(), chat_body(), other):
        client.chat(body)
    client.chat(truth=Truth("41", repeat=1))
    client.chat(b"nonsense")

    stats = client.stats()

    assert {name: stats[name] for name in ("requests", "distinct", "most_attempts", "finished")} == {
        "requests": 5,
        "distinct": 3,
        "most_attempts": 3,
        "finished": 5,
    }
    assert stats["models"] == {"m": 4, "other": 1}
    assert (stats["in_flight"], stats["most_in_flight"], stats["abandoned"]) == (0, 1, 0)
    client.send("POST", "/control/reset")
    assert client.stats()["requests"] == client.stats()["distinct"] == 0


def test_stats__count_a_client_that_leaves(client, chat_body):
    with client.connect() as peer:
        peer.sendall(raw_post(chat_body(profile=Profile(latency=60))))
        wait_until(lambda: client.stats()["in_flight"] == 1)

    wait_until(lambda: client.stats()["in_flight"] == 0)
    assert (client.stats()["finished"], client.stats()["abandoned"]) == (0, 1)


def test_server__serves_64_connections_at_once(client, chat_body):
    connections, each = 64, 3
    profile = Profile(ability=40, latency=0.5)
    failures: list[str] = []
    start = threading.Barrier(connections)

    def work(number: int) -> None:
        connection = http.client.HTTPConnection(client.host, client.port, timeout=PATIENCE)
        try:
            start.wait()
            for i in range(each):
                answer = f"{number}-{i}"
                body = chat_body(f"say {answer}", profile)
                connection.request("POST", CHAT, body, {HEADER: encode(Truth(answer))})
                response = connection.getresponse()
                if not content(response.read()).endswith(f"Answer: {answer}"):
                    failures.append(answer)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    stats = client.stats()
    assert stats["finished"] == stats["distinct"] == connections * each
    assert 8 < stats["most_in_flight"] <= connections


def test_server__stands_a_client_that_does_not_read(client, chat_body):
    body = raw_post(chat_body(profile=Profile(tokens=20_000, spread=0)))
    with client.connect() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.settimeout(1.0)
        with pytest.raises(TimeoutError):
            peer.sendall(body * 20_000)

        assert client.stats()["requests"] < 5_000
        assert client.send("GET", "/health")[0] == 200


@pytest.mark.cluster
def test_key__is_required_of_the_api_only(connect_to, monkeypatch):
    monkeypatch.setenv("SIMULATED_KEY", "open sesame")
    with Simulator(key_env="SIMULATED_KEY") as server:
        client = connect_to(server)

        assert client.chat()[0] == 401
        assert client.chat(headers={"authorization": "Bearer open"})[0] == 401
        assert client.chat(headers={"authorization": "Bearer open sesame"})[0] == 200
        assert client.send("GET", "/v1/models")[0] == 401
        assert client.send("GET", "/control/stats")[0] == 200


@pytest.mark.cluster
def test_log__has_a_line_for_each_finished_request(connect_to, chat_body, tmp_path):
    path = tmp_path / "requests.log"
    with Simulator(requests_log=path, faults='[{"kind": "status", "status": 429, "first": 1}]') as server:
        client = connect_to(server)
        assert client.chat()[0] == 429
        assert path.read_text() == ""
        assert client.chat()[0] == 200

        # It is written after the reply.
        wait_until(path.read_text)
        assert path.read_text() == f"{request_digest(chat_body()).hex()}\t'm'\n"


def run(*arguments: str, **options) -> subprocess.Popen:
    command = [sys.executable, "-P", "-m", "tests.simulator", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env={**os.environ, **module_path()}, text=True, **pipes, **options)


@pytest.mark.cluster
@pytest.mark.parametrize("how", ["SIGINT", "stdin"])
def test_main__ends_cleanly(how):
    with run("--port", "0", "--follow-parent") as process:
        assert process.stdout.readline().startswith("listening on http://127.0.0.1:")
        if how == "stdin":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGINT)

        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""


@pytest.mark.cluster
def test_main__does_not_follow_its_parent_unasked_and_ends_cleanly():
    with run("--port", "0") as process:
        assert process.stdout.readline().startswith("listening on")
        process.stdin.close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()

        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--faults", "[{}]"], "rules[0].kind"),
        (["--key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (["--log", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--limit-rpm", "-5"], "rpm"),
    ],
)
def test_main__says_what_is_wrong(arguments, words, capsys):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_main__says_that_the_port_is_taken(running, capsys):
    assert main(["--port", running.address.rpartition(":")[2]]) == 2
    assert "--port 0" in capsys.readouterr().err
