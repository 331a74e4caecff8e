"""What replies show of an endpoint, and what they leave open, check by check."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.run.probe import checks
from evalcube.flows.run.probe.asking import Heard, UnheardError
from evalcube.stages.process.reading import Reading
from tests.cases import with_cases

NAN = float("nan")
PLAIN = Reading("ready", "", "stop", 100, 20, 1.0)


def heard(limit=16, **fields):
    """A reply; fields of a reading go into its reading."""
    own = {
        name: fields.pop(name)
        for name in ("data", "cause", "refused", "served", "in_text", "by_itself")
        if name in fields
    }
    return Heard(limit, **{"data": b"{}", **own}, reading=PLAIN._replace(**fields))


def host(*replies, **fields):
    """A host that says something to one question after another, and keeps what it was asked."""
    left, asked = iter(replies), []

    def hear(*questions):
        asked.extend(questions)
        said = [next(left) for _ in questions]
        made.heard.extend(said)
        return said

    model = SimpleNamespace(name="m", addresses=["http://h/v1"], api="chat", request_model="org/m")
    known = {
        "heard": [],
        "left_out": set(),
        "limit_name": "max_tokens",
        "thinks": False,
        "base": "",
        "room": 256,
        "engines": [],
    }
    made = SimpleNamespace(hear=hear, ask=hear, asked=asked, model=model, sent=0, **{**known, **fields})
    return made


def test_parameters__are_left_out_or_renamed_one_after_the_other():
    found = host(
        heard(refused=("temperature", "")), heard(refused=("max_tokens", "max_completion_tokens")), heard()
    )

    assert checks.parameters(found) == ("ok", "refuses temperature, wants max_completion_tokens", "")
    assert (found.left_out, found.limit_name, len(found.asked)) == (
        {"temperature"},
        "max_completion_tokens",
        3,
    )
    again = host(*[heard(refused=("temperature", ""))] * 2)
    assert checks.parameters(again)[1] == "refuses temperature"  # once is enough
    assert checks.parameters(host(heard()))[1] == "takes max_tokens and temperature"


@with_cases(
    ("fields", "thinks"),
    [
        ({}, False),
        ({"reasoning": "so"}, True),
        ({"reasoning_tokens": 1}, True),
        ({"reasoning_tokens": 0}, False),
        ({"completion_tokens": 5 + 32}, False),
        ({"completion_tokens": 5 + 33}, True),
    ],
)
def test_parameters__see_whether_it_reasons_by_what_is_shown_and_counted(fields, thinks):
    found = host(heard(**fields))

    checks.parameters(found)

    assert found.thinks == thinks


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [("http 404: no", "Correct its"), ("http 429: slow", "Try again"), ("timeout", "Try again")],
)
def test_parameters__of_a_host_that_does_not_answer_says_what_to_do(cause, remedy):
    with pytest.raises(SweepError) as caught:
        checks.parameters(host(heard(data=None, cause=cause)))

    assert cause in caught.value.message
    assert caught.value.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("answers", "left_out", "found"),
    [
        ("aaaa", (), ("ok", "equal requests have equal replies", "3 of 3 repeats")),
        ("aaab", (), ("unknown", "repeats differ", "1 of 3")),
        ("abbb", (), ("unknown", "repeats differ", "3 of 3")),
        ("abab", ("temperature",), ("unknown", "takes no temperature", "2 of 3 repeats differ")),
    ],
)
def test_repeats__are_compared_with_the_first(answers, left_out, found):
    asked = host(*(heard(answer=answer) for answer in answers), left_out=set(left_out))

    assert checks.repeats(asked) == found
    assert asked.base == "a"


@with_cases(
    ("fields", "long"),
    [
        ({"completion_tokens": 18}, False),
        ({"completion_tokens": 19}, True),
        ({"completion_tokens": 19, "finish": "length"}, False),
        ({"reasoning_tokens": 19}, True),
        ({"reasoning_tokens": 18}, False),
        ({"reasoning_tokens": 19, "reasoning": "so"}, False),
        ({"answer": "a" * (8 * 16 + 32)}, False),
        ({"answer": "a" * (8 * 16 + 33)}, True),
        ({"answer": "a" * (8 * 16 + 33), "finish": "length"}, True),
    ],
)
def test_max_tokens__are_ignored_by_a_reply_that_is_longer(fields, long):
    reply = heard(**{"completion_tokens": 16, **fields})

    verdict = checks.max_tokens(host(heard(finish="length", completion_tokens=16), reply))

    assert (verdict[:2] == ("vice", "ignores max_tokens")) == long


@with_cases(
    ("ends", "verdict"),
    [
        ([("length", 16), ("length", 32)], "ok"),
        ([("stop", 9), ("length", 32)], "ok"),
        ([("stop", 9), ("stop", 9)], "unknown"),
        ([("stop", 16), ("stop", 31)], "unknown"),
        ([("stop", 16), ("stop", 32)], "vice"),
    ],
)
def test_max_tokens__by_how_replies_end(ends, verdict):
    replies = [
        heard(limit, finish=finish, completion_tokens=used, by_itself=True)
        for limit, (finish, used) in zip((16, 32), ends, strict=True)
    ]

    assert checks.max_tokens(host(*replies))[0] == verdict
    if verdict == "vice":
        replies[1] = replace(replies[1], by_itself=False)
        assert checks.max_tokens(host(*replies))[0] == "unknown"


@with_cases(
    ("base", "answer", "finish", "found"),
    [
        ("zzz", "", "stop", ("unknown", "no text to stop")),
        ("the sea", "th", "stop", ("ok", "ends before the stop sequence")),
        ("the sea", "the \n", "stop", ("ok", "ends before the stop sequence")),  # some keep it
        ("the sea", "the s", "stop", ("vice", "ignores stop")),
        ("the sea", "th", "length", ("unknown", "the reply was cut before its answer")),
    ],
)
def test_stop__is_seen_in_a_text_that_has_the_letter(base, answer, finish, found):
    asked = host(heard(answer=answer, finish=finish), base=base)

    assert checks.stop(asked)[:2] == found
    assert all(question.params["stop"] == ["e"] for question in asked.asked)


@pytest.mark.parametrize(
    ("texts", "verdict"), [("aab", "ok"), ("aaa", "unknown"), ("abb", "vice"), ("aba", "vice")]
)
def test_seed__has_one_text_for_one_and_another_for_another(texts, verdict):
    asked = host(*(heard(answer=text) for text in texts))

    assert checks.seed(asked)[0] == verdict
    assert [question.params["seed"] for question in asked.asked] == [7, 7, 8]
    assert {question.params["max_tokens"] for question in asked.asked} == {48}


@with_cases(
    ("fields", "verdict"),
    [
        ([{"answer": "It is blue"}, {"answer": "Banana."}], "ok"),
        ([{"prompt_tokens": 100}, {"prompt_tokens": 104}], "ok"),
        ([{"prompt_tokens": 100}, {"prompt_tokens": 103}], "ok"),
        ([{"prompt_tokens": 100}, {"prompt_tokens": 102}], "vice"),
        ([{"prompt_tokens": -1}, {"prompt_tokens": 100}], "unknown"),
    ],
)
def test_system__arrives_if_it_is_followed_or_counted(fields, verdict):
    assert checks.system(host(*(heard(**each) for each in fields)))[0] == verdict


def spent(*numbers, finish="stop"):
    return [heard(reasoning_tokens=number, finish=finish) for number in numbers]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(100, 200, "ok"), (100, 110, "vice"), (100, 111, "ok"), (100, 90, "vice")],
)
def test_effort__that_is_higher_has_a_tenth_more_tokens(low, high, verdict):
    found = checks.effort(host(*spent(low, high, low, high, low, high)))

    assert found[0] == verdict
    assert found[2] == f"{low} tokens with low, {high} with high"


def test_effort__without_reasoning_or_with_replies_that_overlap_is_unknown():
    assert checks.effort(host(*[heard()] * 2))[1] == "no reasoning, with low or high effort"
    assert checks.effort(host(*spent(100, 300, 250, 240, 100, 300)))[0] == "unknown"
    assert checks.effort(host(*spent(*[9] * 6, finish="length")))[1] == "all replies were cut"


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"reasoning_tokens": 7}, 7),
        ({"reasoning_tokens": 0}, 20),
        ({"reasoning_tokens": -1, "completion_tokens": -1}, 5),
        ({"reasoning_tokens": -1, "completion_tokens": -1, "answer": ""}, 0),
    ],
)
def test_spent__is_what_is_counted_or_else_the_text(fields, tokens):
    assert checks._spent(heard(**fields)) == tokens


@with_cases(
    ("answer", "finish", "found"),
    [
        (' {"number": 1, "name": "a"}\n', "stop", ("ok", "holds to a JSON schema")),
        ('{"name": "a"}', "stop", ("vice", "takes a JSON schema, and does not hold to it")),
        ("[1]", "stop", ("vice", "takes a JSON schema, and does not hold to it")),
        ('{"na', "length", ("unknown", "the reply was cut")),
        ("", "refused", ("unknown", "refuses to answer so")),
    ],
)
def test_schema__is_held_to_by_a_reply_with_its_keys(answer, finish, found):
    assert checks.schema(host(heard(answer=answer, finish=finish)))[:2] == found


def test_schema__of_an_api_without_one_is_not_asked_for():
    other = host()
    other.model.api = "completions"

    assert checks.schema(other)[0] == "unknown"
    assert other.asked == []


@with_cases(
    ("calls", "found"),
    [
        ([("weather", '{"city": "Paris"}'), ("odd", "")], ("ok", "calls tools")),
        ([("weather", '{"city": 5}')], ("unknown", "calls a tool otherwise than offered")),
        ([("weather", "[]")], ("unknown", "calls a tool otherwise than offered")),
        ([("forecast", '{"city": "Paris"}')], ("unknown", "calls a tool otherwise than offered")),
        ([], ("unknown", "a tool was offered, but not called")),
    ],
)
def test_tools__are_called_as_offered(calls, found):
    assert checks.tools(host(heard(tool_calls=tuple(calls))))[:2] == found


ALL, LAST = "HERON-71 MAPLE-84 CINDER-97", "CINDER-97"


@pytest.mark.parametrize(
    ("short", "long", "again", "verdict"),
    [
        ((ALL, -1), (ALL, -1), None, "ok"),
        ((ALL, -1), (LAST, -1), LAST, "vice"),
        ((ALL, -1), (LAST, -1), ALL, "unknown"),
        (("", -1), (LAST, -1), None, "unknown"),
        ((ALL, -1), ("", -1), None, "unknown"),
        (("", 1000), (LAST, 6993), None, "vice"),
        (("", 1000), (LAST, 6994), None, "unknown"),
    ],
)
def test_context__is_known_by_codes_or_by_tokens(short, long, again, verdict):
    replies = [heard(answer=text, prompt_tokens=tokens) for text, tokens in (short, long)]
    replies += [] if again is None else [heard(answer=again, prompt_tokens=-1)]
    # The shortest prompt of all had one token: 1 + 10 * (1000 - 1) are expected of ten times the text.
    asked = host(*replies, heard=[heard(prompt_tokens=1), heard(prompt_tokens=-1)])

    found = checks.context(asked)

    assert found[0] == verdict
    assert ("beginning" in found[1]) == (verdict == "vice" and again is not None)


def test_context__that_does_not_fit_is_said():
    assert checks.context(host(heard(), heard(finish="context")))[0] == "ok"
    text = checks._ledger(4000)
    assert 3500 < len(text) < 4300
    lines = text.splitlines()
    places = [lines.index(f"A code is {code}.") for code in checks._CODES]
    assert places == [0, pytest.approx(places[2] / 2, abs=1), len(lines) - 3]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (
            {"latency": 3.0, "first_token": 1.0, "completion_tokens": 21},
            ("ok", "streams", "1.00 s to the first token, 10 tokens/s"),
        ),
        ({"latency": 1.0, "first_token": 1.0}, ("ok", "streams", "1.00 s to the first token")),
        (
            {"latency": 3.0, "first_token": 1.0, "completion_tokens": 1},
            ("ok", "streams", "1.00 s to the first token"),
        ),
        ({"latency": 3.0, "first_token": NAN}, ("unknown", "does not stream", "3.00 s to the end")),
    ],
)
def test_speed__is_that_of_the_faster_of_two(fields, found):
    slow = heard(latency=9.0, first_token=0.5)

    assert checks.speed(host(heard(**fields), slow)) == checks.speed(host(slow, heard(**fields))) == found


@with_cases(
    ("fields", "odd"),
    [
        ({}, False),
        ({"completion_tokens": -1}, False),
        ({"completion_tokens": 5 + 32}, False),
        ({"completion_tokens": 5 + 33}, True),
        ({"completion_tokens": 5 + 33, "reasoning_tokens": 1}, False),
        ({"completion_tokens": 0}, False),
        ({"answer": "a" * 144, "completion_tokens": 5}, False),
        ({"answer": "a" * 145, "completion_tokens": 5}, True),
        ({"finish": "length", "completion_tokens": 14}, False),
        ({"finish": "length", "completion_tokens": 13}, True),
        ({"finish": "length", "completion_tokens": 18}, False),
        ({"finish": "length", "completion_tokens": 19}, True),
        ({"finish": "length", "completion_tokens": 4, "reasoning_tokens": 12, "reasoning": "r"}, False),
        ({"finish": "length", "completion_tokens": -1}, False),
    ],
)
def test_usage__counts_tokens_that_the_texts_can_have(fields, odd):
    assert bool(checks._odd(heard(**fields))) == odd
    two = host(heard=[heard(**fields), heard(**fields), heard()])
    assert (checks.usage(two)[0] == "vice") == odd
    assert checks.usage(host(heard=[heard(**fields), heard()]))[0] != "vice"  # one may be a slip


def test_usage__says_which_tokens_are_counted():
    counted = host(heard=[heard(reasoning_tokens=0), heard(cached_tokens=3)])
    lacking = host(heard=[heard(), heard(prompt_tokens=-1), heard(completion_tokens=-1, finish="refused")])

    assert checks.usage(counted)[:2] == ("ok", "counts tokens: prompt, completion, reasoning, cached")
    assert checks.usage(host(heard=[heard()]))[1] == "counts tokens: prompt, completion"
    assert checks.usage(lacking) == ("unknown", "does not count all tokens", "1 of 2 replies")


@with_cases(
    ("replies", "thinks", "found"),
    [
        ([heard(reasoning="r")], True, ("ok", "in a field of its own", "")),
        ([heard(reasoning="r", in_text=True), heard()], True, ("ok", "within the text", "")),
        (
            [heard(reasoning="r", in_text=True), heard(reasoning="r")],
            True,
            ("ok", "in a field of its own", ""),
        ),
        (
            [heard(reasoning_tokens=1200), heard()],
            True,
            ("ok", "counted, not shown", "up to 1,200 tokens counted"),
        ),
        ([heard(reasoning_tokens=0)], False, ("ok", "none", "up to 0 tokens counted")),
        ([heard()], True, ("unknown", "neither shown nor counted apart, and more tokens than text", "")),
        ([heard()], False, ("ok", "none", "")),
    ],
)
def test_reasoning__is_where_it_is_shown_or_counted(replies, thinks, found):
    seen = checks.reasoning(host(heard=replies, thinks=thinks))

    assert seen[:2] == found[:2]
    assert found[0] == "unknown" or found[1] == "none" or seen[2] == found[2]


@with_cases(
    ("served", "engines", "found"),
    [
        (["", ""], [], ("unknown", "does not say", "")),
        (["org/m"], [], ("unknown", "does not say", "")),
        (["org"], ["vllm 1"], ("ok", "vllm 1", "")),
        (["other"], ["vllm 1"], ("ok", "vllm 1, as other", "")),
        (["b", "a", "b"], ["vllm 1"], ("vice", "answers as 2", "a, b")),
        (list("fedcba"), [], ("vice", "answers as 6", "a, b, c, d")),
    ],
)
def test_upstream__is_one_and_says_who(served, engines, found):
    assert checks.upstream(host(heard=[heard(served=name) for name in served], engines=engines)) == found


def test_upstream__names_systems_that_no_engine_does():
    systems = [heard(fingerprint="fp-1")]

    assert checks.upstream(host(heard=systems)) == ("ok", "fp-1", "")
    assert checks.upstream(host(heard=systems, engines=["x fp-1"])) == ("ok", "x fp-1", "")
    assert checks.upstream(host(heard=[*systems, heard(fingerprint="fp-2")]))[0] == "vice"


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        (heard(data=None, cause="http 400: stop", refused=("stop", "")), "refuses stop"),
        (heard(data=None, cause="http 422: ?"), "refuses it"),
        (heard(data=None, cause="http 500"), "no reply"),
    ],
)
def test_findings__of_a_check_without_a_reply_are_unknown(monkeypatch, reply, seen):
    def refused(asked):
        asked.sent += 2
        raise UnheardError(reply)

    def well(asked):
        asked.sent += 1
        return "ok", "fine", "1"

    monkeypatch.setattr(checks, "CHECKS", (refused, well))
    first, second = checks.findings(host())

    assert (first.name, first.verdict, first.seen, first.detail, first.requests) == (
        "refused", "unknown", seen, reply.cause, 2
    )  # fmt: skip
    assert (second.name, second.verdict, second.seen, second.detail, second.requests) == (
        "well",
        "ok",
        "fine",
        "1",
        1,
    )
