import gzip
import json
import math

import pytest

from evalcube.deploy.errors import SimulatorError
from evalcube.deploy.simulator.profile import Profile
from evalcube.deploy.simulator.reply import completion, draws, request_digest, speak
from evalcube.deploy.simulator.truth import Truth
from tests.cases import with_cases
from tests.simulator.faults import KINDS, Injector, Rule, apply, parse_rules

DIGESTS = [request_digest(b"%d" % i) for i in range(4000)]


def good_body() -> dict:
    return completion("sim/m", bytes(32), speak(Profile(), Truth("7"), draws(DIGESTS[0]), None), 9)


@with_cases(
    ("text", "field"),
    [
        ("nonsense", "rules"),
        ("{}", "rules"),
        ("[1]", "rules"),
        ("[{}]", "rules[0].kind"),
        ('[{"kind": "reset"}, {"kind": "rest"}]', "rules[1].kind"),
        ('[{"kind": "reset", "shore": 1}]', "rules[0].shore"),
        ('[{"kind": "reset", "share": 2}]', "rules[0].share"),
        ('[{"kind": "reset", "share": NaN}]', "rules[0].share"),
        ('[{"kind": "reset", "first": 0}]', "rules[0].first"),
        ('[{"kind": "reset", "times": 1.5}]', "rules[0].times"),
        ('[{"kind": "status", "status": 99}]', "rules[0].status"),
        ('[{"kind": "status", "retry_after": 1}]', "rules[0].retry_after"),
        ('[{"kind": "drip", "seconds": 0}]', "rules[0].seconds"),
        (r'[{"kind": "status", "retry_after": "1\n"}]', "rules[0].retry_after"),
        ('[{"kind": "huge", "megabytes": 9999}]', "rules[0].megabytes"),
        ('[{"kind": ["reset"]}]', "rules[0].kind"),
    ],
)
def test_parse_rules__names_the_wrong_field(text, field):
    with pytest.raises(SimulatorError) as caught:
        parse_rules(text)

    assert caught.value.field == field
    assert field in str(caught.value)


def test_parse_rules__keeps_the_order():
    rules = parse_rules('[{"kind": "reset", "share": 0.5, "model": "a"}, {"kind": "status", "status": 429}]')

    assert rules == (Rule("reset", share=0.5, model="a"), Rule("status", status=429))


def test_pick__strikes_the_share_and_always_the_same():
    rule = Rule("reset", share=0.2)
    struck = [Injector([rule]).pick(digest, 1, "m") is rule for digest in DIGESTS]
    again = [Injector([rule]).pick(digest, 2, "m") is rule for digest in reversed(DIGESTS)]

    assert 700 < sum(struck) < 900
    assert struck == again[::-1]


def test_pick__draws_anew_for_each_rule():
    injector = Injector([Rule("reset", share=0.5), Rule("hang", share=0.5)])
    picked = [injector.pick(digest, 1, "m") for digest in DIGESTS]

    assert 900 < sum(rule is None for rule in picked) < 1100
    assert injector.struck["reset"] + injector.struck["hang"] + picked.count(None) == len(DIGESTS)


def test_pick__strikes_only_first_attempts():
    injector = Injector([Rule("reset", first=2)])

    assert [injector.pick(DIGESTS[0], attempt, "m") is not None for attempt in (1, 2, 3)] == [
        True,
        True,
        False,
    ]


def test_pick__stops_after_times():
    injector = Injector([Rule("reset", times=3)])

    assert sum(injector.pick(digest, 1, "m") is not None for digest in DIGESTS) == 3
    assert injector.struck == {"reset": 3}


def test_pick__strikes_only_the_model():
    injector = Injector([Rule("reset", model="a")])

    assert injector.pick(DIGESTS[0], 1, "b") is None
    assert injector.pick(DIGESTS[0], 1, "a") is not None


@with_cases("kind", KINDS)
def test_apply__does_what_the_kind_says(kind):
    body = good_body()
    content = body["choices"][0]["message"]["content"]
    response = apply(Rule(kind, status=503, megabytes=2, retry_after="3"), good_body())

    assert EXPECTED[kind](response, body, content)


def load(response):
    return json.loads(response.body)


def message(response):
    return load(response)["choices"][0]["message"]


def broken(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


EXPECTED = {
    "status": lambda r, _, __: (r.status, r.headers) == (503, (("retry-after", "3"),)) and "error" in load(r),
    "reset": lambda r, _, __: r.head_share == 0 and r.ending.value == "reset",
    "reset_head": lambda r, _, __: 0 < r.head_share < 1 and r.ending.value == "reset",
    "reset_body": lambda r, _, __: 0 < r.body_share < 1 and r.ending.value == "reset",
    "cut_body": lambda r, _, __: 0 < r.body_share < 1 and r.ending.value == "close",
    "hang": lambda r, _, __: r.head_share == 0 and r.ending.value == "hang",
    "drip": lambda r, b, __: r.drip == 0.05 and load(r) == b,
    "wrong_type": lambda r, _, __: r.content_type.startswith("text/html") and broken(r.body),
    "bad_json": lambda r, _, __: broken(r.body) and r.body.startswith(b"{"),
    "wrong_shape": lambda r, _, __: isinstance(load(r), list),
    "empty_choices": lambda r, _, __: load(r)["choices"] == [],
    "null_content": lambda r, _, __: message(r)["content"] is None,
    "parts_content": lambda r, _, c: "".join(part["text"] for part in message(r)["content"]) == c,
    "missing_usage": lambda r, b, __: load(r) == {k: v for k, v in b.items() if k != "usage"},
    "nan": lambda r, _, __: math.isnan(load(r)["usage"]["completion_tokens"]),
    "huge": lambda r, _, __: len(r.body) > 2 << 20 and not broken(r.body),
    "redirect_loop": lambda r, _, __: r.status == 307 and r.headers[0][0] == "location",
    "gzip_bomb": lambda r, _, __: len(r.body) < 20_000 and len(gzip.decompress(r.body)) > 2 << 20,
    "duplicate": lambda r, b, __: load(r)["choices"] == b["choices"] * 2,
    "tool_calls": lambda r, _, __: load(r)["choices"][0]["finish_reason"] == "tool_calls",
    "wrong_model": lambda r, b, __: load(r)["model"] != b["model"],
    "stream_error": lambda r, _, __: r.status == 503 and "error" in load(r),
    "stream_end": lambda r, _, __: broken(r.body) and r.body.startswith(b"{"),
    "stream_stall": lambda r, _, __: 0 < r.body_share < 1 and r.ending.value == "hang",
    "no_done": lambda r, b, __: load(r) == b,
}


def test_apply__writes_a_date_when_asked():
    response = apply(Rule("status", retry_after="date+5"), good_body())

    assert response.headers[0][1].endswith(" GMT")


def test_apply__sends_the_body_of_the_rule():
    assert apply(Rule("status", body="no capacity"), good_body()).body == b"no capacity"
