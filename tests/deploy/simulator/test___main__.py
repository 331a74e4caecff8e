"""The server of simulated models that evalcube brings answers as the tests' simulator does."""

import json

import pytest

from evalcube.deploy.servers.managed import Simulator
from evalcube.deploy.simulator.profile import Profile
from evalcube.deploy.simulator.truth import Truth
from tests.deploy.simulator.conftest import Client, chat_body

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def demo():
    with Simulator() as server:
        yield Client(server)


def test_chat__answers_as_the_simulator_of_the_tests(demo, client):
    bodies = [chat_body(), chat_body(max_completion_tokens=None, max_tokens=3), chat_body(stream=False)]

    for truth in (None, Truth("41"), Truth("7", repeat=2), Truth("", quality=0.8)):
        for body in bodies:
            assert json.loads(demo.chat(body, truth)[2]) == json.loads(client.chat(body, truth)[2])


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"{", 400, "chat completion"),
        (b"[]", 400, "chat completion"),
        (chat_body(messages=[]), 400, "messages"),
        (chat_body(max_tokens=0), 400, "max_tokens"),
        (chat_body(model="m?ability=none"), 404, "model"),
    ],
)
def test_chat__refuses_in_the_words_of_the_api(demo, body, status, word):
    found, _, said = demo.chat(body)

    assert found == status
    assert word in json.loads(said)["error"]["message"]


def test_models__are_listed(demo):
    status, _, body = demo.send("GET", "/v1/models")

    assert (status, json.loads(body)["data"][0]["id"]) == (200, Profile().model_name("default"))
    assert demo.send("GET", "/nothing")[0] == 404
