"""Each kind of fault as a client meets it on the wire."""

import gzip
import http.client
import json
import time
from email.utils import parsedate_to_datetime

import pytest

from tests.simulator.faults import KINDS, STREAM_KINDS
from tests.waiting import PATIENCE, wait_until


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_status(client, status):
    client.faults({"kind": "status", "status": status, "retry_after": "1", "first": 1})

    got, headers, body = client.chat()
    assert (got, headers["retry-after"]) == (status, "1")
    assert "error" in json.loads(body)

    assert client.chat()[0] == 200
    assert client.stats()["faults"] == {"status": 1}
    assert client.stats()["finished"] == 1


def test_status__with_a_date(client):
    client.faults({"kind": "status", "status": 429, "retry_after": "date+100"})

    wait = parsedate_to_datetime(client.chat()[1]["retry-after"]).timestamp() - time.time()

    assert 90 < wait <= 101


def test_reset__comes_before_the_first_byte(client):
    client.faults({"kind": "reset"})

    with pytest.raises(ConnectionResetError) as caught:
        client.chat()

    assert not isinstance(caught.value, http.client.RemoteDisconnected)
    assert client.stats()["abandoned"] == 1


def test_reset_head__comes_amid_the_headers(client):
    client.faults({"kind": "reset_head"})

    with pytest.raises(ConnectionResetError):
        client.chat()

    assert client.stats()["abandoned"] == 1


def test_reset_body__comes_after_half_of_the_body(client):
    client.faults({"kind": "reset_body"})
    connection = http.client.HTTPConnection(client.host, client.port, timeout=PATIENCE)
    try:
        connection.request("POST", "/v1/chat/completions", chat(client))
        response = connection.getresponse()
        assert response.status == 200
        with pytest.raises(ConnectionResetError):
            response.read()
    finally:
        connection.close()


def chat(client) -> bytes:
    model = json.loads(client.send("GET", "/v1/models")[2])["data"][0]["id"]
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()


def test_cut_body__ends_early(client):
    client.faults({"kind": "cut_body"})

    with pytest.raises(http.client.IncompleteRead) as caught:
        client.chat()

    assert len(caught.value.partial) > 0
    assert abs(len(caught.value.partial) - caught.value.expected) <= 1


def test_hang__never_answers_and_is_counted_until_the_client_leaves(client, chat_body):
    client.faults({"kind": "hang"})
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(
        chat_body()
    )
    with client.connect() as peer:
        peer.sendall(request + chat_body())
        peer.settimeout(0.5)
        wait_until(lambda: client.stats()["in_flight"] == 1)
        with pytest.raises(TimeoutError):
            peer.recv(1)
        assert client.stats()["in_flight"] == 1

    wait_until(lambda: client.stats()["in_flight"] == 0)
    assert client.stats()["abandoned"] == 1


def test_drip__comes_byte_by_byte(client):
    plain = client.chat()[2]
    client.faults({"kind": "drip", "seconds": 0.001})
    start = time.monotonic()

    assert client.chat()[2] == plain
    assert time.monotonic() - start > 0.0009 * len(plain)
    assert client.stats()["in_flight"] == 0


def test_drip__ends_when_the_client_leaves(client, chat_body):
    client.faults({"kind": "drip", "seconds": 0.01})
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(
        chat_body()
    )
    with client.connect() as peer:
        peer.sendall(request + chat_body())
        assert peer.recv(10)

    wait_until(lambda: client.stats()["in_flight"] == 0)
    assert client.stats()["abandoned"] == 1


def test_gzip_bomb__is_small_on_the_wire(client):
    client.faults({"kind": "gzip_bomb", "megabytes": 8})

    status, headers, body = client.chat()

    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert len(body) < 20_000
    assert len(gzip.decompress(body)) > 8 << 20


def test_huge__is_large_on_the_wire(client):
    client.faults({"kind": "huge", "megabytes": 20})

    assert len(client.chat()[2]) > 20 << 20


def test_redirect_loop__leads_to_itself(client):
    client.faults({"kind": "redirect_loop"})

    status, headers, _ = client.chat()

    assert (status, headers["location"]) == (307, "/v1/chat/completions")


def choice(body):
    return json.loads(body)["choices"][0]


SEEN = {
    "wrong_type": lambda headers, body: headers["content-type"].startswith("text/html") and b"<html>" in body,
    "bad_json": lambda _, body: body.startswith(b'{"id"') and not body.endswith(b"}"),
    "wrong_shape": lambda _, body: isinstance(json.loads(body), list),
    "empty_choices": lambda _, body: json.loads(body)["choices"] == [],
    "null_content": lambda _, body: choice(body)["message"]["content"] is None,
    "parts_content": lambda _, body: choice(body)["message"]["content"][0]["type"] == "text",
    "missing_usage": lambda _, body: "usage" not in json.loads(body),
    "nan": lambda _, body: b"NaN" in body,
    "duplicate": lambda _, body: len(json.loads(body)["choices"]) == 2,
    "tool_calls": lambda _, body: choice(body)["message"]["tool_calls"][0]["type"] == "function",
    "wrong_model": lambda _, body: json.loads(body)["model"] == "another-model",
}


@pytest.mark.parametrize("kind", SEEN)
def test_body(client, kind):
    client.faults({"kind": kind})

    status, headers, body = client.chat()

    assert status == 200
    assert int(headers["content-length"]) == len(body)
    assert SEEN[kind](headers, body)
    assert client.stats()["faults"] == {kind: 1}
    assert client.stats()["finished"] == 0


def test_all_kinds__are_seen_here():
    own = {"status", "reset", "reset_head", "reset_body", "cut_body", "hang", "drip", "gzip_bomb", "huge"}
    own.add("redirect_loop")

    assert own | set(SEEN) == set(KINDS) - STREAM_KINDS


def test_faults__strike_the_same_requests_in_any_order(client, chat_body):
    bodies = [chat_body(f"number {i}") for i in range(40)]

    def struck(order):
        client.faults({"kind": "status", "status": 500, "share": 0.3})
        return {body for body in order if client.chat(body)[0] == 500}

    first = struck(bodies)
    assert 2 < len(first) < 25
    assert struck(bodies[::-1]) == first


def test_control__refuses_wrong_rules_and_keeps_the_old(client):
    client.faults({"kind": "status", "status": 503})

    status, _, body = client.send("POST", "/control/faults", b'[{"kind": "rest"}]')

    assert status == 400
    assert "rules[0].kind" in json.loads(body)["error"]["message"]
    assert client.chat()[0] == 503
