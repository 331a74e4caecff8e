"""Endpoints with one vice each, and honest ones: what a probe says of them, and how cached answers are asked again."""

import json
import os
from types import SimpleNamespace

import pytest

import evalcube as ec
from evalcube.flows.config.load import parse_config
from evalcube.flows.config.suites import load_suite
from evalcube.flows.errors import SweepError
from evalcube.flows.run.probe.asking import Heard, Host, host_of, user
from evalcube.flows.run.probe.checks import context, effort, max_tokens, schema
from evalcube.flows.run.probe.pairs import compare_hosts, paired
from evalcube.flows.run.probe.probe import ProbeResult
from evalcube.stages.process.reading import Reading
from tests.flows.support import evalcube, sweep_config, write_config
from tests.simulator.habits import VICES, Habits, serving
from tests.simulator.wire import error_response


def verdicts(result, model=0):
    return {finding.name: finding.verdict for finding in result.models[model].findings}


def test_probe__finds_nothing_at_an_honest_host_and_sees_all_that_it_can():
    host = Habits()
    with serving(host) as url:
        result = ec.probe(f"{url}#m")

    assert result.vices == []
    assert result.exit_code == 0
    assert set(verdicts(result).values()) == {"ok"}
    assert len(host.requests) == result.models[0].requests <= 40
    # No two are one: what a cache between would answer was asked.
    assert sum(finding.requests for finding in result.models[0].findings) == len(host.requests)


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

    found = {finding.name: finding.seen for finding in result.models[0].findings}
    assert found["parameters"] == "refuses temperature, wants max_completion_tokens"
    assert found["stop"] == "refuses stop"
    assert result.vices == []
    lines = "\n".join([*result.models[0].config, "tasks: {boolean: {manifold: [{points: [{length: 4}]}]}}"])
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
    assert json.loads(out)["models"][0]["requests"] <= 40


def test_probe__stays_within_its_requests_where_many_fail():
    host = Habits(flaky=True)
    with serving(host) as url:
        result = ec.probe(f"{url}#m")
        (model,) = load_suite("quick", [f"{url}#m"]).models
        with host_of(model, 5) as few:
            heard = few.ask(*[user("x", max_tokens=1)] * 8)

    assert result.vices == []
    assert result.models[0].requests + few.sent == len(host.requests)
    assert result.models[0].requests <= 40
    assert few.sent == 5
    assert [one.cause for one in heard[5:]] == ["not asked"] * 3


@pytest.mark.parametrize("models", [[], [{"model": "m"}], [{"model": "m", "findings": []}] * 2])
def test_probe__refuses_an_earlier_one_that_holds_nothing_to_compare(tmp_path, models):
    (tmp_path / "before.json").write_text(json.dumps({"schema": "evalcube.probe", "models": models}))

    with pytest.raises(SweepError, match=r"`since`.*findings of 0 models.*now is 1"):
        ec.probe("http://127.0.0.1:9/v1#m", since=tmp_path / "before.json")


def test_paired__questions_without_an_answer_now_leave_the_result_open():
    one, gone = (True, None), None

    found = paired("then", "now", [one, one, gone, one], [one, gone, one, one])
    result = ProbeResult((), found)

    assert (found.pairs, found.unanswered) == (2, 1)
    assert (result.vices, found.changes, result.exit_code) == ([], [], 2)


def test_probe__tells_what_an_earlier_one_saw_otherwise(tmp_path):
    before = tmp_path / "before.json"
    with serving(Habits()) as url:
        before.write_text(json.dumps(ec.probe(f"{url}#m").to_dict()))
        same = ec.probe(f"{url}#m", since=before)
    with serving(Habits("seed")) as url:
        other = ec.probe(f"{url}#m", since=before)

    assert same.changes == ()
    assert same.exit_code == 0
    assert other.changes == ("m: seed: equal seeds have equal replies before, ignores seed now",)
    before.write_text("[" * 99_999)
    with pytest.raises(ec.SweepError, match="is no probe's JSON"):
        ec.probe("sim:", since=before)


def test_probe__sets_two_hosts_side_by_side(tmp_path):
    with serving(Habits()) as first, serving(Habits("usage")) as second:
        code, out, errors = evalcube("probe", f"{first}#m", f"{second}#m", cwd=tmp_path)

    assert code == 1, errors
    assert "m-2: counts tokens that the texts do not have" in out
    assert "of 10 right" in out
    assert "A swap to a model of similar strength stays unseen." in out
    assert sum("≠" in line for line in out.splitlines()) == 1


def test_probe__shows_what_it_found_where_nothing_can_be_compared(monkeypatch, tmp_path):
    with serving(Habits()) as first:
        probed = ec.probe(f"{first}#m").models[0].requests
        tired = Habits()
        answer = tired.handle
        refusal = error_response(400, "no more", "tired"), None
        monkeypatch.setattr(
            tired, "handle", lambda one: refusal if len(tired.requests) >= probed else answer(one)
        )
        with serving(tired) as second:
            code, out, errors = evalcube("probe", f"a={first}#m", f"b={second}#m", cwd=tmp_path)

    assert code == 2, errors
    assert "ends at max_tokens, and says so" in out
    assert "Not compared: b answered nothing that a did." in out


def test_compare_hosts__writes_its_questions_as_each_api_has_them(monkeypatch):
    sent = []
    monkeypatch.setattr(
        Host, "ask", lambda _, *asked: sent.append(asked[0].body) or [Heard(0, cause="x")] * len(asked)
    )
    text = {"chat": "messages", "completions": "prompt", "responses": "input", "messages": "messages"}
    for api in text:
        (model,) = load_suite("quick", ["http://127.0.0.1:9/v1#m"]).models
        with host_of(model.model_copy(update={"api": api})) as host, pytest.raises(ec.SweepError):
            compare_hosts(host, host)

    bodies = [json.loads(body) for body in sent[::2]]
    others = {"messages", "prompt", "input"}
    assert [others & body.keys() for body in bodies] == [{name} for name in text.values()]
    assert {body["model"] for body in bodies} == {"m"}


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


@pytest.mark.parametrize(
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


def reading(tokens, prompt=9):
    return Reading("x", "", "stop", prompt, tokens, 0.1)


def test_paired__tells_a_change_at_its_level_only():
    right, wrong = (True, reading(9)), (False, reading(9))
    # By 2 / 2^9 = 0.0039 and 2 / 2^8 = 0.0078, of the exact test.
    changed = paired("a", "b", [right] * 9 + [wrong] * 9, [wrong] * 18)
    kept = paired("a", "b", [right] * 8 + [wrong, None], [wrong] * 9 + [right])

    assert changed.outcomes.p == pytest.approx(2 / 2**9)
    assert changed.changes == ["the share right changed (p = 0.0039)"]
    assert kept.outcomes.p == pytest.approx(2 / 2**8)
    assert kept.changes == []
    assert kept.pairs == 9
    assert changed.told < 100


def test_paired__tells_other_lengths_and_other_prompts():
    before = [(True, reading(10))] * 12
    longer = paired("a", "b", before, [(True, reading(11))] * 12)
    other = paired("a", "b", before, [(True, reading(10, prompt=8))] * 12)

    assert longer.changes == ["replies are longer (p = 0.00049)"]
    assert other.changes == ["equal prompts have other tokens: another tokeniser or template"]
    with pytest.raises(ec.SweepError, match="answered nothing"):
        paired("a", "b", [None], [None])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, _served):
    """A config and its cube, measured once."""
    folder = tmp_path_factory.mktemp("recorded")
    config = sweep_config(folder, _served.base_url, trials=16)
    config["models"][0]["simulate"]["ability"] = 8.0
    path = write_config(folder, config)
    code, _, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=folder)
    assert code == 0, errors
    return folder, config


@pytest.mark.usefixtures("simulator")
def test_probe__finds_answers_of_a_cube_unchanged_and_asks_past_its_cache(recorded):
    folder, _ = recorded
    code, out, errors = evalcube(
        "probe", folder / "sweep.yaml", "--against", folder / "cube.zarr", "--json", cwd=folder
    )

    found = json.loads(out)
    assert code == 0, errors
    assert found["models"][0]["requests"] == found["paired"]["pairs"] == 40
    assert found["paired"]["systems"] == ["", ""]  # so that the replies were at hand
    assert found["paired"]["outcomes"] == found["paired"]["tokens"] == {"fewer": 0, "more": 0, "p": 1.0}


@pytest.mark.usefixtures("simulator")
def test_probe__tells_that_a_model_is_no_longer_what_it_was(recorded):
    folder, config = recorded
    config = {**config, "models": [{**config["models"][0], "simulate": {"ability": -4.0, "tokens": 20}}]}
    weaker = write_config(folder, config, "weaker.yaml")
    result = ec.probe(str(weaker), against=folder / "cube.zarr", limit=30)

    assert result.paired.pairs == 30
    assert result.paired.outcomes.p <= 0.005
    assert result.exit_code == 1
    assert result.paired.changes[0].startswith("the share right changed")
    with pytest.raises(ec.SweepError, match="is called 'other'"):
        ec.probe("other=sim:", against=folder / "cube.zarr")


@pytest.mark.model
@pytest.mark.skipif(os.environ.get("EVALCUBE_SKIP_MODEL") == "1", reason="EVALCUBE_SKIP_MODEL=1")
def test_probe__finds_nothing_at_the_local_model():
    result = ec.probe("local:smollm2")

    assert result.vices == []
    assert verdicts(result)["schema"] == "ok"
    assert verdicts(result)["seed"] == "ok"
