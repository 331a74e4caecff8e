"""Single values of a config: what is taken as it is, and which rule refuses another one, at its place."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from evalcube.flows.config import values
from tests.cases import with_cases

KEY = "sk-1234567890abcdef"
URL = "http(s)://host"


def refused(check, *arguments):
    """The context of the error that a check raises."""
    with pytest.raises(PydanticCustomError) as caught:
        check(*arguments)
    return caught.value.context


@with_cases(
    ("check", "value"),
    [
        (values.name, "a" * 128),
        (values.name, "two words\u00a0é"),
        (values.revision, ""),
        (values.revision, "a" * 1024),
        (values.path, "s3://bucket/a@b"),
        (values.path, "a" * 1024),
        (values.endpoint, "serve:"),
        (values.endpoint, "local:"),
        (values.endpoint, "local:smollm2"),
        (values.endpoint, "local:/m/x.gguf"),
        (values.endpoint, "https://[::1]:1/v1"),
        (values.endpoint, "sim:http://localhost:5/v1"),
        (values.variable, "HF_HOME"),
        (values.variable, "HF_TOKEN"),
        (values.variable, "_" + "a" * 127),
        (values.key_file, "/run/secrets/sk-1234567890abcdef/key"),
        (values.key_file, "a" * 1024),
        (values.sampler_param, "max_tokens"),
        (values.facet, True),
        (values.facet, -2.5),
        (values.facet, sys.float_info.max),
        (values.skip, 0),
        (values.skip, 100_000),
        (values.skip, "degree"),
        (values.skip, {"degree": 1}),
        (values.json_value, {"a": [1, None, True, "x", {"b": 0.5}]}),
    ],
)
def test_values__are_taken_as_they_are(check, value):
    assert check(value) == value


@with_cases(
    ("check", "value", "rule"),
    [
        (values.name, "a" * 129, "at most 128 characters, has 129"),
        (values.name, " \t", "blank"),
        (values.name, "a ", "space"),
        (values.name, " a", "space"),
        *((values.name, f"a{sign}b", "control characters") for sign in "\x00\x1f\x7f\x9f\u2028\u2029"),
        (values.name, "a\udc00b", "surrogate"),
        (values.revision, 1.1, "must be a text"),
        (values.revision, "a" * 1025, "at most 1024"),
        (values.path, "s3://key:word@bucket/a", "user or password"),
        (values.path, "a" * 1025, "at most 1024"),
        (values.endpoint, 5, "a list of texts"),
        (values.endpoint, [], "from 1 to 256"),
        (values.endpoint, ["http://h/v1"] * 257, "from 1 to 256 addresses, has 257"),
        (values.endpoint, "sim:https://127.0.0.1:5/v1", "a simulated endpoint is"),
        (values.endpoint, "sim:http://10.0.0.1:5/v1", "a simulated endpoint is"),
        (values.endpoint, "local:x.bin", "a local endpoint is"),
        *((values.endpoint, url, URL) for url in ("ftp://h/v1", "http://", "http://h:0/v1", "http://h:x/v1", "http://[1/v1")),
        *((values.endpoint, f"http://h/v1{end}", "before ? and #") for end in ("?", "#", "?a=1", "#a")),
        (values.endpoint, "http://me@h/v1", "user or password"),
        (values.endpoint, "http://h/a b", "no spaces"),
        (values.endpoint, "http://h/" + "a" * 1016, "at most 1024 characters"),
        (values.endpoint, "http://h/v1/chat/completions", "without /chat/completions"),
        (values.endpoint, "http://h/v1/chat/", "without /chat"),
        (values.variable, 5, "name of an environment variable"),
        (values.variable, "A-B", "name of an environment variable"),
        (values.variable, "1A", "name of an environment variable"),
        (values.variable, "a" * 129, "name of an environment variable"),
        (values.variable, KEY, "looks like a key"),
        *((values.key_file, path, "path of a file that") for path in (5, "", "a\nb", "a" * 1025)),
        (values.key_file, KEY, "looks like a key"),
        *((values.sampler_param, name, "cannot be a sampler's") for name in ("model", "n", "stream", "repeat")),
        (values.sampler_param, " a", "space"),
        (values.sampler_param, "max_token", "unknown parameter"),
        (values.sampler_param, "api_key", "carries a secret"),
        *((values.facet, value, "finite number") for value in (None, [1], float("nan"), float("inf"), 10**400)),
        (values.facet, "\ud800", "surrogate"),
        *((values.skip, number, "number of values") for number in (-1, 100_001, 1.0, True, None, "all", {"degree": 0})),
        *((values.skip, pair, "number of values") for pair in ({"degree": 1, "a": 2}, {"a": 1}, {"degree": True})),
        (values.axis, [], "must not be empty"),
        *((values.json_value, value, "finite") for value in (float("nan"), [float("inf")])),
        *((values.json_value, value, "JSON can hold") for value in (object(), {1: 2}, {"a": {1, 2}})),
        (values.json_value, {"\ud800": 1}, "surrogate"),
        *((values.headers, value, "mapping of header names") for value in ("X: y", ["X"])),
        *((values.headers, {name: "v"}, "letters, digits and dashes") for name in ("A B", "", "a" * 129)),
        *((values.headers, {name: "v"}, "carries a secret") for name in ("Authorization", "X-Api-Key", KEY)),
        *((values.headers, {name: "v"}, "evalcube sets") for name in ("Host", "content-LENGTH", "X-Evalcube-A")),
        *((values.headers, {"X": text}, "plain ASCII") for text in (5, "a\nb", "é", "a" * 4097)),
        (values.headers, {"X": KEY}, "looks like a key"),
    ],
)  # fmt: skip
def test_values__are_refused_by_a_rule(check, value, rule):
    assert rule in refused(check, value)["rule"]


@with_cases(
    ("check", "value", "secret"),
    [
        (values.path, "s3://k:w@b", True),
        (values.path, "", False),
        (values.endpoint, "ftp://h", False),
        (values.endpoint, "ftp://me:word@h", True),
        (values.endpoint, "http://me:word@h/v1", True),
        (values.endpoint, "http://h/v1?key=x", True),
        (values.variable, "a b", True),
        (values.key_file, "", True),
        (values.key_command, "pass show x", True),
        (values.key_command, ["echo", "a\nb"], True),
        (values.headers, {"X": "é"}, True),
        (values.headers, {"A B": "x"}, True),
        (values.sampler_param, "api_key", True),
        (values.sampler_param, "model", False),
    ],
)
def test_values__that_may_be_secret_are_never_shown(check, value, secret):
    assert refused(check, value)["secret"] == secret


def test_endpoint__of_several_addresses_are_all_servers_or_all_simulators():
    several = ["http://h/v1/", "https://i/v1"]
    local = ["sim:http://127.0.0.1:5/v1", "sim:http://localhost:6/v1"]

    assert values.endpoint(several) == ("http://h/v1", "https://i/v1")
    assert values.endpoint(local) == tuple(local)
    assert values.endpoint(["http://h/v1"]) == ("http://h/v1",)
    for wrong in (
        ["http://h/v1", local[0]],
        [local[0], "http://h/v1"],
        ["http://h/v1", "local:"],
        [several[0], "sim"],
    ):
        context = refused(values.endpoint, wrong)
        assert "all simulators or none" in context["rule"]
        assert context["where"] == [1]
    assert refused(values.endpoint, ["http://h/v1", "http://i/v1", "http://h/v1"])["where"] == [2]
    assert refused(values.endpoint, ["http://h/v1", "ftp://h"])["where"] == [1]
    assert refused(values.endpoint, [5])["where"] == [0]
    assert len(values.endpoint([f"http://h:{port}/v1" for port in range(1, 257)])) == 256


def test_endpoint__of_nothing_is_missing_and_of_a_host_without_a_scheme_is_guessed():
    with pytest.raises(PydanticCustomError) as caught:
        values.endpoint(values.MISSING)

    assert caught.value.type == "missing"
    assert values.endpoint("sim") == values.endpoint("sim:") == "sim:"
    assert "'http://localhost:80/v1'" in refused(values.endpoint, "localhost:80/v1")["remedy"]
    assert refused(values.endpoint, "localhost/v1")["remedy"] == ""
    assert refused(values.endpoint, "http://h/v1/chat/completions/")["remedy"] == "Write http://h/v1"


@pytest.mark.parametrize(
    ("given", "words"),
    [("a 'b c'", ("a", "b c")), (["a", "b c"], ("a", "b c")), (["a"] * 256, ("a",) * 256), ([], ())],
)
def test_words__of_a_text_are_those_of_a_shell(given, words):
    assert values.words(given, "", "") == words


@with_cases(
    ("given", "rule", "where"),
    [
        ("a 'b", "quote that does not end", []),
        (5, "at most 256 words", []),
        (["a"] * 257, "at most 256 words", []),
        (["a", 5], "must be a text", [1]),
        (["a", "b\0"], "must be a text", [1]),
        (["a" * 4097], "must be a text", [0]),
        (["a", KEY], "looks like a key", [1]),
        (["https://h/" + KEY], "looks like a key", [0]),
        (["\ud800"], "surrogate", [0]),
    ],
)
def test_words__are_refused_at_their_place(given, rule, where):
    context = refused(values.words, given, "", "")

    assert rule in context["rule"]
    assert (context["where"], context["secret"]) == (where, True)


def test_commands__need_a_program():
    long = "a" * 4096

    assert values.command([long, "--x", f"/{KEY}/y"], "", "") == (long, "--x", f"/{KEY}/y")
    for empty in ([], [" ", "a"], ""):
        assert "a program and its arguments" in refused(values.command, empty, "", "")["rule"]


def test_key_command__is_a_list_and_holds_no_key_in_a_path_either():
    assert values.key_command(["pass", "show", "openai"]) == ("pass", "show", "openai")
    assert "list of a program" in refused(values.key_command, "pass show openai")["rule"]
    assert refused(values.key_command, ["cat", f"/tmp/{KEY}"])["where"] == [1]
    assert refused(values.key_command, ["cat", "a", "b\tc"])["where"] == [2]


def test_headers__are_told_by_name_where_the_name_is_wrong_and_else_by_place():
    assert values.headers({"X-Team": "r" * 4096}) == {"X-Team": "r" * 4096}
    assert refused(values.headers, {"X": "y", "X-Token": "v"})["where"] == ["\0key", "X-Token"]
    assert refused(values.headers, {"X": "é"})["where"] == ["X"]


def nested(levels, inner=0):
    for level in range(levels):
        inner = [inner] if level % 2 else {"a": inner}
    return inner


def test_json_value__may_be_nested_twenty_levels_deep_and_is_copied():
    deep = nested(19)

    assert values.json_value(deep) == deep
    assert values.json_value((1, 2)) == [1, 2]
    assert "deeper than 20" in refused(values.json_value, nested(20))["rule"]
    given = [[1]]
    values.json_value(given)[0].append(2)
    assert given == [[1]]


@with_cases(("given", "axis"), [(3, [3]), ([1, 2], [1, 2]), ((1,), [1]), (range(2), [0, 1]), ("ab", ["ab"])])
def test_axis__of_a_single_value_has_one(given, axis):
    assert values.axis(given) == axis


@with_cases(
    ("value", "bounds"),
    [
        ({"min": 1, "max": 2}, (1, 2)),
        ({"max": 2}, (None, 2)),
        ([None, 3], (None, 3)),
        ((3, None), (3, None)),
        ([1, 2], None),
        ([None, 1, 2], None),
        (5, None),
    ],
)
def test_bounds__of_a_range_and_of_nothing_else(value, bounds):
    assert values.bounds(value) == bounds


@with_cases(
    ("value", "criterion"),
    [
        ({"min": 1, "max": 1}, {"min": 1, "max": 1}),
        ((None, 3), [None, 3]),
        ("a", "a"),
        (2.5, 2.5),
        ([1, "a", True], [1, "a", True]),
    ],
)
def test_criterion__is_a_value_values_or_a_range(value, criterion):
    assert values.criterion(value) == criterion


@with_cases(
    ("value", "rule", "where"),
    [
        ({"min": 2, "max": 1}, "at least min (2), is 1", []),
        ({"min": 1, "most": 2}, "a range must be", []),
        ({}, "a range must be", []),
        ([None, None], "a range must be", []),
        ({"min": "a"}, "a range must be", []),
        ({"min": True}, "a range must be", []),
        ({"min": 1, "max": 10**400}, "a range must be", []),
        ([], "must not be empty", []),
        ([1, [2]], "must be a text", [1]),
        ([1, 2, None], "must be a text", [2]),
        ([1, {"min": 1}], "must be a text", [1]),
        ([float("nan")], "must be a text", []),
    ],
)
def test_criterion__refuses_others(value, rule, where):
    context = refused(values.criterion, value)

    assert rule in context["rule"]
    assert context["where"] == where


def test_template__is_compiled_and_its_mistakes_are_at_their_place():
    messages = ({"role": "user", "content": "{{ prompt }}"},)

    assert values.template(messages) == [{"role": "user", "content": "{{ prompt }}"}]
    assert refused(values.template, [*messages, {"role": "user", "content": "{{ prompt"}])["where"] == [
        1,
        "content",
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text("abc"), lambda part: st.lists(part, max_size=3)
    )
)
def test_json_value__keeps_what_json_can_hold(value):
    assert values.json_value(value) == value
