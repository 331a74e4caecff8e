"""Limits that the simulator enforces, and what it tells and counts of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalcube.deploy.errors import SimulatorError
from tests.cases import with_cases
from tests.simulator.quota import Enforcer, Limits, parse_limits


def enforce(arrivals, **limits):
    """Whether each arrival (second, tokens) is accepted, and the enforcer."""
    enforcer = Enforcer(Limits(**limits))
    return [enforcer.arrive(tokens, 1, at) is None for at, tokens in arrivals], enforcer


def test_arrive__refuses_more_requests_than_any_window_may_have():
    accepted, enforcer = enforce(
        [(0.0, 1), (0.5, 1), (0.9, 1), (1.0, 1), (1.4, 1), (1.5, 1)], rpm=120, window=1.0
    )

    assert accepted == [True, True, False, True, False, True]
    assert enforcer.summary()["over"] == {"rpm": 2, "tpm": 0, "connections": 0}
    assert enforcer.summary()["most_requests"] == 4


def test_arrive__refuses_more_tokens():
    accepted, enforcer = enforce([(0.0, 60), (0.1, 50), (0.2, 40), (1.0, 60)], tpm=6000, window=1.0)

    assert accepted == [True, False, True, True]
    assert enforcer.summary()["most_tokens"] == 150
    assert enforcer.summary()["allowed_tokens"] == 100


def test_arrive__refuses_more_at_once():
    enforcer = Enforcer(Limits(connections=2))

    assert [enforcer.arrive(1, in_flight, 0.0) is None for in_flight in (1, 2, 3)] == [True, True, False]
    assert enforcer.summary()["over"]["connections"] == 1


def test_arrive__without_limits_refuses_nothing_and_keeps_nothing():
    accepted, enforcer = enforce([(0.0, 10**9)] * 1000)

    assert all(accepted)
    assert enforcer.headers(0.0) == ()
    assert not enforcer._arrivals


@pytest.mark.parametrize("style", ["openai", "anthropic", "none"])
def test_headers__tell_what_is_left(style):
    _, enforcer = enforce([(0.0, 30), (0.25, 30)], rpm=120, tpm=6000, window=1.0, style=style)
    told = dict(enforcer.headers(0.5))

    if style == "openai":
        assert told == {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "0.500s",
            "x-ratelimit-remaining-tokens": "40",
            "x-ratelimit-reset-tokens": "0.500s",
        }
    elif style == "anthropic":
        assert told["anthropic-ratelimit-requests-remaining"] == "0"
        assert told["anthropic-ratelimit-tokens-reset"].endswith("+00:00")
    else:
        assert told == {}


@with_cases(
    "text",
    [
        "nonsense",
        "[]",
        '{"rpn": 1}',
        '{"rpm": 0}',
        '{"rpm": "1"}',
        '{"window": null}',
        '{"style": "x"}',
        '{"tpm": NaN}',
    ],
)
def test_parse_limits__refuses(text):
    with pytest.raises(SimulatorError):
        parse_limits(text)


def test_control__sets_limits_that_are_enforced(client, chat_body):
    status, _, _ = client.send("POST", "/control/limits", b'{"rpm": 2}')
    assert status == 200
    try:
        got = [client.chat(chat_body(f"number {i}")) for i in range(3)]

        assert [status for status, _, _ in got] == [200, 200, 429]
        assert got[1][1]["x-ratelimit-remaining-requests"] == "0"
        assert 0 < float(got[2][1]["retry-after"]) <= 60
        assert client.stats()["limits"]["over"] == {"rpm": 1, "tpm": 0, "connections": 0}
        assert client.stats()["finished"] == 2
        client.send("POST", "/control/reset")
        assert client.chat()[0] == 200
    finally:
        client.send("POST", "/control/limits", b"{}")


def test_control__refuses_wrong_limits_and_keeps_the_old(client):
    status, _, body = client.send("POST", "/control/limits", b'{"rpm": -1}')

    assert status == 400
    assert "rpm" in json.loads(body)["error"]["message"]
    assert client.chat()[0] == 200


@pytest.mark.cluster
def test_main__takes_limits(connect_to):
    command = [sys.executable, "-m", "tests.simulator", "--limit-rpm", "60", "--limit-window", "1"]
    command += ["--limit-tpm", "6000", "--limit-connections", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as process:
        try:
            address = process.stdout.readline().split()[-1]
            client = connect_to(type("Server", (), {"address": address}))
            assert client.chat()[0] == 200
            assert client.stats()["limits"]["allowed_tokens"] == 100
        finally:
            process.terminate()
