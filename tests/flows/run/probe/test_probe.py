"""Endpoints with one vice each, and honest ones: what a probe says of them."""

import json
import os
from types import SimpleNamespace

import pytest

import evalcube as ec
from evalcube.flows.config.load import parse_config
from evalcube.flows.config.suites import load_suite
from evalcube.flows.run.probe.asking import Heard, host_of, user
from evalcube.flows.run.probe.checks import context, effort, max_tokens, schema
from evalcube.stages.process.reading import Reading
from tests.cases import with_cases
from tests.flows.support import evalcube, sweep_config, write_config
from tests.simulator.habits import VICES, Habits, serving


def verdicts(result):
    return {finding.name: finding.verdict for finding in result.findings}


def test_probe__finds_nothing_at_an_honest_host_and_sees_all_that_it_can():
    host = Habits()
    with serving(host) as url:
        result = ec.probe(f"{url}#m")

    assert result.vices == []
    assert result.exit_code == 0
    assert set(verdicts(result).values()) == {"ok"}
    assert len(host.requests) == result.requests <= 40
    # No two are one: what a cache between would answer was asked.
    assert sum(finding.requests for finding in result.findings) == len(host.requests)


@pytest.mark.parametrize(
    ("api", "lacking"),
    [
        ("completions", {"system", "effort", "schema", "tools"}),
        ("messages", {"seed"}),
        ("responses", {"stop", "seed"}),
    ],
)
def test_probe__sees_at_each_api_all_that_the_api_has(tmp_path, api, lacking):
    with serving(Habits()) as url:
        models = [{"name": "m", "endpoint": url, "api": api}]
        config = write_config(tmp_path, {**sweep_config(tmp_path, url), "models": models})
        result = ec.probe(str(config))

    assert result.vices == []
    assert {name for name, verdict in verdicts(result).items() if verdict != "ok"} == lacking


@pytest.mark.parametrize(("vice", "name"), VICES.items())
def test_probe__names_a_vice_and_no_other(vice, name):
    with serving(Habits(vice)) as url:
        result = ec.probe(f"{url}#m")

    assert [one for one, verdict in verdicts(result).items() if verdict == "vice"] == [name]
    assert result.exit_code == 1


def test_probe__writes_the_config_of_a_host_that_refuses_parameters():
    refuses = {"temperature": "", "max_tokens": "max_completion_tokens", "stop": "", "reasoning_effort": ""}
    with serving(Habits(refuses=refuses)) as url:
        result = ec.probe(f"{url}#m")

    found = {finding.name: finding.seen for finding in result.findings}
    assert found["parameters"] == "refuses temperature, wants max_completion_tokens"
    assert found["stop"] == "refuses stop"
    assert result.vices == []
    lines = "\n".join([*result.config, "tasks: {boolean: {manifold: [{points: [{length: 4}]}]}}"])
    sweep = parse_config(lines)
    assert sweep.samplers["default"].keys() == {"max_completion_tokens"}
    assert sweep.models[0].endpoint == url
    assert sweep.models[0].stream


def test_probe__bounds_its_requests_and_shows_no_key(monkeypatch, tmp_path):
    monkeypatch.setenv("A_KEY", "sk-very-secret")
    host = Habits(refuses={"messages": ""})
    with serving(host) as url, pytest.raises(ec.SweepError, match="does not answer the simplest request"):
        ec.probe(f"{url}#m", ["A_KEY"])

    assert len(host.requests) == 1

    with serving(Habits()) as url:
        code, out, errors = evalcube("probe", f"{url}#m", "--key-env", "A_KEY", "--json", cwd=tmp_path)
    assert code == 0
    assert "sk-very-secret" not in out + errors
    assert json.loads(out)["requests"] <= 40


def test_probe__stays_within_its_requests_where_many_fail():
    host = Habits(flaky=True)
    with serving(host) as url:
        result = ec.probe(f"{url}#m")
        (model,) = load_suite("quick", [f"{url}#m"]).models
        with host_of(model, 5) as few:
            heard = few.ask(*[user("x", max_tokens=1)] * 8)

    assert result.vices == []
    assert result.requests + few.sent == len(host.requests)
    assert result.requests <= 40
    assert few.sent == 5
    assert [one.cause for one in heard[5:]] == ["not asked"] * 3


def test_probe__refuses_a_config_with_more_than_one_model(tmp_path):
    models = [{"name": name, "endpoint": "sim:"} for name in "ab"]
    config = write_config(tmp_path, {**sweep_config(tmp_path, "sim:"), "models": models})

    with pytest.raises(ec.SweepError, match=r"`model`: one model is probed, and .* has 2"):
        ec.probe(config)


def host_that_says(replies, earlier=(), **more):
    """A host with replies to one question after another."""
    left, heard = iter(replies), [Heard(256, reading=one) for one in earlier]

    def hear(*asked):
        said = [Heard(one.params["max_tokens"], reading=next(left), **more) for one in asked]
        heard.extend(said)
        return said

    return SimpleNamespace(room=256, heard=heard, hear=hear, model=SimpleNamespace(api="chat"))


@pytest.mark.parametrize(("by_itself", "verdict"), [(True, "vice"), (False, "unknown")])
def test_max_tokens__accuses_only_a_host_that_says_it_ended_by_itself(by_itself, verdict):
    replies = [Reading("1 2 3", "", "stop", 9, limit, 0.1) for limit in (16, 32)]

    assert max_tokens(host_that_says(replies, by_itself=by_itself))[0] == verdict


def test_max_tokens__says_what_is_not_counted():
    replies = [Reading("1 2 3", "", "length", -1, -1, 0.1)] * 2

    assert max_tokens(host_that_says(replies))[2].startswith("16 allowed, not counted, length")


@pytest.mark.parametrize(
    ("finish", "verdict"), [("refused", "unknown"), ("length", "unknown"), ("stop", "vice")]
)
def test_schema__what_is_refused_is_no_vice(finish, verdict):
    assert schema(host_that_says([Reading("", "", finish, 9, 0, 0.1)]))[0] == verdict


@pytest.mark.parametrize(
    ("shortest", "short", "long", "said", "verdict"),
    [
        (1010, 2460, 15_600, "HERON-71, MAPLE-84, CINDER-97", "ok"),
        (1010, 2460, 15_600, "CINDER-97", "unknown"),  # all of the prompt was counted
        (1010, 2460, 4_000, "CINDER-97", "vice"),
        (10, 1010, 2_000, "CINDER-97", "vice"),
    ],
)
def test_context__knows_what_a_host_puts_before_each_prompt(shortest, short, long, said, verdict):
    replies = [Reading(said, "", "stop", tokens, 9, 0.1) for tokens in (short, long)]
    host = host_that_says(replies, [Reading("ready", "", "stop", shortest, 1, 0.1)])

    assert context(host)[0] == verdict


@with_cases(
    ("low", "high", "verdict"),
    [
        (500, 512, "ok"),  # 512 is where they were cut
        (508, 508, "vice"),
        ((512, 500), 512, "unknown"),
        (300, (512, 290), "unknown"),
        (300, (512, 310), "ok"),
    ],
)
def test_effort__takes_no_reply_that_was_cut_for_a_whole_one(low, high, verdict):
    def thought(tokens, place):
        count = tokens if isinstance(tokens, int) else tokens[min(place, 1)]
        finish = "length" if count == 512 else "stop"
        return Reading("", "so", finish, 9, count, 0.1, reasoning_tokens=count)

    host = host_that_says([thought(tokens, place) for place in range(3) for tokens in (low, high)])

    assert effort(host)[0] == verdict


@pytest.mark.model
@pytest.mark.skipif(os.environ.get("EVALCUBE_SKIP_MODEL") == "1", reason="EVALCUBE_SKIP_MODEL=1")
def test_probe__finds_nothing_at_the_local_model():
    result = ec.probe("local:smollm2")

    assert result.vices == []
    assert verdicts(result)["schema"] == "ok"
    assert verdicts(result)["seed"] == "ok"
