"""The simulator's files and batches, as OpenAI's API has them."""

import json

import pytest

from evalcube.deploy.simulator.truth import HEADER, Truth, encode
from tests.deploy.simulator.conftest import chat_body
from tests.simulator.app import Application, Request


def form(data, purpose="batch"):
    return (
        b'--xyz\r\ncontent-disposition: form-data; name="purpose"\r\n\r\n' + purpose.encode() + b"\r\n"
        b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n'
        b"Content-Type: application/jsonl\r\n\r\n" + data + b"\r\n--xyz--\r\n"
    )


def line(name, body=None, url="/v1/chat/completions", **more):
    body = json.loads(chat_body()) if body is None else body
    return (
        json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body, **more}).encode() + b"\n"
    )


class Asking:
    """Talks to an application without a network."""

    def __init__(self, **settings):
        self.application = Application(**settings)

    def send(self, method, path, body=b"", **keys):
        response, _ = self.application.handle(Request(method, path, body, keys=keys))
        return response.status, response.body

    def json(self, method, path, document=None):
        status, body = self.send(method, path, json.dumps(document).encode() if document else b"")
        return status, json.loads(body)

    def create(self, data, **more):
        name = json.loads(self.send("POST", "/v1/files", form(data))[1])["id"]
        order = {"input_file_id": name, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        return self.json("POST", "/v1/batches", {**order, **more})

    def lines(self, name):
        status, body = self.send("GET", f"/v1/files/{name}/content")
        assert status == 200
        return {row["custom_id"]: row for row in map(json.loads, body.splitlines())}


@pytest.fixture
def asking():
    found = Asking()
    found.json("POST", "/control/batches", {"seconds": 0})
    return found


def test_batches__answer_as_single_requests_do(asking):
    truth = encode(Truth("7"))
    status, batch = asking.create(line("a", headers={HEADER: truth}) + line("b"), metadata={"k": "v"})

    assert (status, batch["status"], batch["metadata"]) == (200, "completed", {"k": "v"})
    output = asking.lines(batch["output_file_id"])
    body = json.dumps(json.loads(chat_body()), sort_keys=True, separators=(",", ":")).encode()
    for name, known in (("a", truth.encode()), ("b", b"")):
        single, _ = asking.application.handle(Request("POST", "/v1/chat/completions", body, known))
        assert output[name]["response"]["body"] == json.loads(single.body)
    assert asking.application.stats()["batches"]["requests"] == 2


def test_batches__requests_that_fail_are_in_a_file_of_errors(asking):
    asking.json("POST", "/control/faults", [{"kind": "status", "status": 429}])
    _, batch = asking.create(line("a"))

    assert batch["output_file_id"] is None
    assert asking.lines(batch["error_file_id"])["a"]["response"]["status_code"] == 429


def test_batches__end_when_their_time_has_come_as_they_are_told_to(asking):
    asking.json("POST", "/control/batches", {"seconds": 60, "outcome": "expired", "share": 0.5})
    _, batch = asking.create(b"".join(line(name) for name in "abcd"))
    assert batch["status"] == "in_progress"
    asking.json("POST", "/control/batches", {"seconds": 0})

    _, batch = asking.json("GET", f"/v1/batches/{batch['id']}")

    assert batch["status"] == "expired"
    assert asking.lines(batch["output_file_id"]).keys() == {"a", "b"}
    errors = asking.lines(batch["error_file_id"])
    assert {row["error"]["code"] for row in errors.values()} == {"batch_expired"}


def test_batches__are_listed_newest_first_page_by_page(asking):
    names = [asking.create(line("a"))[1]["id"] for _ in range(5)]
    found, after = [], ""
    for _ in range(3):
        _, page = asking.json("GET", f"/v1/batches?limit=2{after}")
        found += [entry["id"] for entry in page["data"]]
        after = f"&after={found[-1]}"
    assert (found, page["has_more"]) == (names[::-1], False)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/files", b"nothing", 400),
        ("POST", "/v1/files", form(b"{}", "fine-tune"), 400),
        ("GET", "/v1/files/none/content", b"", 404),
        ("POST", "/v1/batches", b"{", 400),
        ("POST", "/v1/batches", b'{"input_file_id": "x"}', 400),
        ("GET", "/v1/batches/none", b"", 404),
        ("DELETE", "/v1/batches/none", b"", 404),
        ("POST", "/control/batches", b'{"outcome": "odd"}', 400),
        ("POST", "/control/batches", b'{"seconds": "1"}', 400),
        ("POST", "/control/batches", b"[]", 400),
        ("POST", "/control/batches", b'{"faults": {"odd": [1]}}', 400),
    ],
)
def test_batches__what_makes_no_sense_is_refused(asking, method, path, body, status):
    assert asking.send(method, path, body)[0] == status


@pytest.mark.parametrize(
    "data", [b"", line("a") + line("a"), line("a", url="/v1/completions"), b"[]\n", b"{}\n"]
)
def test_batches__files_that_are_no_batch_are_refused(asking, data):
    assert asking.create(data)[0] == 400


def test_batches__need_the_key():
    asking = Asking(key="right")
    assert asking.send("POST", "/v1/files", form(line("a")))[0] == 401
    right = {"keys": {b"authorization": b"Bearer right"}}
    response, _ = asking.application.handle(Request("POST", "/v1/files", form(line("a")), **right))
    assert response.status == 200


def test_batches__steps_fail_as_they_are_told_to(asking):
    asking.json("POST", "/control/batches", {"faults": {"upload": [503]}})
    assert asking.send("POST", "/v1/files", form(b"x"))[0] == 503
    assert asking.send("POST", "/v1/files", form(b"x"))[0] == 200
