import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.deploy.simulator.profile import REASONING, Profile
from evalcube.deploy.simulator.reply import (
    CHARS_PER_TOKEN,
    IGNORANCE,
    calls_in,
    completion,
    draws,
    filler_slice,
    prompt_tokens,
    request_digest,
    speak,
    wrong_answer,
)
from evalcube.deploy.simulator.truth import Truth
from tests.cases import with_cases

SURE, LOST = Profile(ability=40, spread=0), Profile(ability=-20, slope=50, spread=0)
DRAW = draws(request_digest(b"a request"))
units = st.floats(0, 1, exclude_max=True)


def spoken(text) -> int:
    return len(text.content) + len(text.reasoning or "")


@given(st.text(min_size=1, max_size=40), st.lists(st.text(max_size=9), max_size=4), units)
def test_wrong_answer__is_never_the_answer(answer, options, draw):
    wrong = wrong_answer(answer, options, draw)

    assert wrong.strip().casefold() != answer.strip().casefold() or not answer.strip()
    assert wrong != answer


CALLS = (
    '[{"arguments": {"who": "Ann", "many": 2, "on": true}, "name": "send"}, {"arguments": {}, "name": "end"}]'
)


def test_wrong_answer__of_calls_is_none_another_tool_a_further_or_a_wrong_argument():
    none, other, further, wrong = (wrong_answer(CALLS, (), draw) for draw in (0.1, 0.3, 0.6, 0.9))

    assert none == "none"
    assert [call["name"] for call in json.loads(other)] == ["sends", "end"]
    assert json.loads(further)[0]["arguments"] == {"who": "Ann", "many": 2, "on": True, "more": 1}
    assert json.loads(wrong)[0]["arguments"] == {"who": "Ann", "many": 3, "on": True}


def test_completion__calls_the_tools_of_a_request_that_offers_some():
    text = speak(SURE, Truth(CALLS), DRAW, None)

    called, told = (completion("m", bytes(32), text, 9, tools=tools) for tools in (True, False))

    message, finish = called["choices"][0]["message"], called["choices"][0]["finish_reason"]
    calls = [
        (one["function"]["name"], json.loads(one["function"]["arguments"])) for one in message["tool_calls"]
    ]
    assert calls == [("send", {"who": "Ann", "many": 2, "on": True}), ("end", {})]
    assert (finish, "Answer" in message["content"]) == ("tool_calls", False)
    assert told["choices"][0]["message"] == {"role": "assistant", "content": text.content}


@with_cases("said", ["[{", "[{}]", '[{"name": "f"}]', '[{"name": 1, "arguments": {}}]', "[{" * 9000])
def test_completion__what_is_no_call_stays_text(said):
    text = speak(SURE, Truth(said), DRAW, None)

    assert "tool_calls" not in completion("m", bytes(32), text, 9, tools=True)["choices"][0]["message"]


@given(st.integers(-(10**20), 10**20), units)
def test_wrong_answer__of_a_whole_number_is_a_close_one(number, draw):
    assert 1 <= abs(int(wrong_answer(str(number), (), draw)) - number) <= 3


@given(st.lists(st.text("abcde", min_size=1), min_size=2, max_size=5, unique=True), units)
def test_wrong_answer__is_another_option(options, draw):
    assert wrong_answer(options[0], options, draw) in options[1:]


@given(st.lists(st.integers(0, 999), min_size=1, max_size=6), units)
def test_wrong_answer__of_a_list_keeps_its_form(numbers, draw):
    wrong = wrong_answer(str(numbers), (), draw)

    assert wrong.count(",") == len(numbers) - 1
    assert wrong != str(numbers)


@with_cases("style", REASONING)
@with_cases("tokens", [1, 30, 500, 40_000])
def test_speak__has_a_length_of_its_tokens(style, tokens):
    text = speak(Profile(tokens=tokens, spread=0, reasoning=style), Truth("41"), DRAW, None)

    assert text.tokens >= tokens
    assert tokens in (text.tokens, 1)
    assert 0 <= text.tokens * CHARS_PER_TOKEN - spoken(text) < CHARS_PER_TOKEN
    assert text.finish_reason == "stop"
    assert 0 <= text.reasoning_tokens < text.tokens


@with_cases("style", REASONING)
@with_cases("limit", [1, 2, 7, 50, 99])
def test_speak__is_cut_at_the_limit(style, limit):
    profile = Profile(tokens=100, spread=0, reasoning=style)
    text = speak(profile, Truth("41"), DRAW, limit)
    whole = speak(profile, Truth("41"), DRAW, 100)

    assert (text.tokens, text.finish_reason) == (limit, "length")
    assert spoken(text) == limit * CHARS_PER_TOKEN
    assert whole.finish_reason == "stop"
    assert whole.content.startswith(text.content)
    assert not text.content.endswith("Answer: 41")


@pytest.mark.parametrize("style", REASONING)
def test_speak__ends_before_the_first_stop(style):
    profile = Profile(ability=40, tokens=100, spread=0, reasoning=style)
    whole = speak(profile, Truth("41"), DRAW, None)
    text = speak(profile, Truth("41"), DRAW, None, ["no such", "swer", "41", ""])

    assert text.content == whole.content.partition("swer")[0]
    assert text.reasoning == whole.reasoning
    assert text.finish_reason == "stop"
    assert whole.tokens - 3 <= text.tokens < whole.tokens
    assert text.reasoning_tokens <= text.tokens
    assert speak(profile, Truth("41"), DRAW, None, ["no such"]) == whole


def test_speak__ends_with_the_answer_or_a_wrong_one():
    right, wrong = (
        speak(p, Truth("yes", ("yes", "no"), 1024.0), DRAW, None).content.splitlines() for p in (SURE, LOST)
    )

    assert right[-1] == "Answer: yes"
    assert wrong[-1] == "Answer: no"


def test_speak__puts_its_reasoning_where_the_profile_says():
    none, think, field = (
        speak(Profile(ability=40, reasoning=style), Truth("7"), DRAW, None) for style in REASONING
    )

    assert "<think>" not in none.content
    assert none.reasoning is None
    assert think.content.startswith("<think>\n")
    assert think.content.endswith("\n</think>\n\nAnswer: 7")
    assert field.content == "Answer: 7"
    assert len(field.reasoning) > 40


def test_speak__cut_while_thinking_leaves_the_block_open():
    text = speak(Profile(tokens=100, spread=0, reasoning="think"), Truth("7"), DRAW, 50)

    assert text.content.startswith("<think>")
    assert "</think>" not in text.content
    assert text.reasoning_tokens == 50


def test_speak__does_not_know_without_truth():
    text = speak(SURE, None, DRAW, None)

    assert text.content.endswith(IGNORANCE)
    assert "Answer:" not in text.content


def test_speak__refuses_as_often_as_the_profile_says():
    assert speak(Profile(refusal=1), Truth("7"), DRAW, None).finish_reason == "content_filter"
    refused = [
        speak(Profile(refusal=0.3), Truth("7"), draws(request_digest(b"%d" % i)), None).finish_reason
        for i in range(1000)
    ].count("content_filter")
    assert 240 < refused < 360


@with_cases(("quality", "score"), [(0.0, 1), (0.1, 1), (0.5, 3), (0.9, 5), (1.0, 5)])
def test_speak__a_judge_finds_the_quality_if_it_is_able(quality, score):
    able, unable = (
        json.loads(speak(profile, Truth("", quality=quality), DRAW, None).content.rpartition("\n")[2])
        for profile in (SURE, LOST)
    )

    assert able["score"] == score
    assert unable["score"] in {1, 2, 3, 4, 5} - {score}


def test_speak__a_judge_is_cut_and_refuses_like_others():
    truth = Truth("", quality=1.0)

    assert speak(SURE, truth, DRAW, 3).finish_reason == "length"
    assert speak(Profile(refusal=1), truth, DRAW, None).finish_reason == "content_filter"


@given(units, st.integers(0, 200_000))
def test_filler_slice__has_the_length_and_no_digits(draw, length):
    text = filler_slice(draw, length)

    assert len(text) == length
    assert not any(character.isdigit() for character in text)


def test_completion__is_json_with_matching_usage():
    text = speak(Profile(reasoning="field"), Truth("\ud800é"), DRAW, None)
    body = json.loads(json.dumps(completion("m", bytes(32), text, 11)))

    assert body["usage"]["total_tokens"] == 11 + text.tokens == 11 + body["usage"]["completion_tokens"]
    assert body["choices"][0]["message"]["content"] == text.content
    assert body["choices"][0]["message"]["reasoning_content"] == text.reasoning


def test_prompt_tokens__counts_texts_and_parts():
    parts = [{"type": "text", "text": "x" * 40}, {"type": "image_url"}, "odd"]

    assert prompt_tokens([{"content": "x" * 40}]) == prompt_tokens([{"content": parts}]) == 14
    assert prompt_tokens([{"content": None}]) == 4


@with_cases(
    ("answer", "count"),
    [
        ('[{"name": "a", "arguments": {}}]', 1),
        ('[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {"x": 1}}]', 2),
        ('[{"name": "a"}]', 0),
        ('[{"arguments": {}}]', 0),
        ('[{"name": "a", "arguments": {}}, {"name": 5, "arguments": {}}]', 0),
        ('[{"name": "a", "arguments": []}]', 0),
        ('[{"name": "a"', 0),
        ("[5]", 0),
        ("none", 0),
    ],
)
def test_calls_in__are_those_with_a_name_and_arguments(answer, count):
    assert len(calls_in(answer)) == count
