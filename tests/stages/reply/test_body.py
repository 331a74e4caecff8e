"""Error bodies as real servers write them, and what is no error of the context at all."""

import json
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.reply.body import parse_body, read_error, token_count
from tests.cases import with_cases

DEEP = 100_000

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.sampled_from(["error", "code", "type", "message", "detail"]), inner)
    ),
    max_leaves=12,
)


@with_cases(
    "body",
    [
        b"",
        b"<html>",
        b"{",
        b"[" * DEEP,
        b'{"a":' * DEEP,
        b"\xff\xfe\xfd",
        b"\xff" * 9,
        b"1" * 5000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b"\x00\x00\x00",
    ],
)
def test_parse_body__is_none_where_there_is_no_json(body):
    assert parse_body(body) is None


DENSE = {
    "lists": b"[]",
    "deep lists": b"[" * 200 + b"]" * 200,
    "objects": b'{"a":1}',
    "deep objects": b'{"a":' * 200 + b"1" + b"}" * 200,
    "numbers": b"1",
}


@pytest.mark.parametrize("kind", DENSE)
def test_parse_body__is_none_where_there_is_almost_nothing_but_brackets(kind):
    def many(size):
        return b"[" + b",".join([DENSE[kind]] * (size // len(DENSE[kind]))) + b"]"

    assert parse_body(many(4_000_000)) is None
    assert parse_body(many(10_000)) is not None


@pytest.mark.parametrize("text", ["[{,:" * 200_000, '["\\",{},' * 100_000, '\\"[,' * 200_000])
def test_parse_body__a_text_may_be_all_brackets(text):
    assert parse_body(json.dumps({"content": text}).encode()) == {"content": text}


def test_parse_body__takes_the_log_probabilities_of_a_long_answer():
    token = {"token": " a", "logprob": -0.0123456, "bytes": [32, 97]}
    content = [{**token, "top_logprobs": [token] * 20}] * 2000
    document = {"choices": [{"message": {"content": "a" * 4000}, "logprobs": {"content": content}}]}

    assert parse_body(json.dumps(document, separators=(",", ":")).encode()) == document


@with_cases("code", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_parse_body__knows_the_encodings_of_json(code):
    assert parse_body('{"a": "ü"}'.encode(code)) == {"a": "ü"}


def test_parse_body__replaces_bytes_that_are_no_utf8():
    assert parse_body(b'{"a": "x\xffy"}') == {"a": "x\N{REPLACEMENT CHARACTER}y"}


PIECES = """{ } [ ] , : " \\ \t 0 -0 1 9 99999999999999999999 .5 e 1e5 1e999 NaN -Infinity true null "a" "é" "\\ud800"
    "\\ud83d\\ude00" "\\x" {"a":1,"a":2}""".split()


@pytest.mark.parametrize("between", ["", ",", ":"])
def test_parse_body__reads_what_python_reads(between):
    def pythons(text):
        with suppress(ValueError):
            return json.loads(text)

    for pieces in product(PIECES, repeat=2):
        text = f"[{between.join(pieces)}]".encode()
        assert repr(parse_body(text)) == repr(pythons(text))


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_parse_body__never_raises(body):
    error = read_error(parse_body(body))

    assert isinstance(error.is_context, bool)
    assert isinstance(error.is_filter, bool)


@given(json_values)
def test_read_error__never_raises_and_is_bounded(document):
    error = read_error(document)

    assert all(
        isinstance(text, str) and len(text) <= 4096 for text in (error.code, error.kind, error.message)
    )


def test_read_error__leaves_out_what_is_nested_too_deep_to_write():
    value = []
    for _ in range(100_000):
        value = [value]

    assert read_error({"error": {"code": value, "type": value, "message": value}}).message == ""


@with_cases(
    ("document", "fields"),
    [
        ({"error": {"code": 401, "message": "no", "type": "Auth"}}, ("401", "auth", "no")),
        ({"error": "loading"}, ("", "", "loading")),
        ({"error": None, "message": "m"}, ("", "", "m")),
        ({"detail": "bad key"}, ("", "", "bad key")),
        ({"detail": [{"loc": ["body"]}]}, ("", "", "")),
        (
            {"object": "error", "message": "m", "type": "BadRequestError", "code": 400},
            ("400", "badrequesterror", "m"),
        ),
        ([{"error": {"code": 400, "message": "m"}}], ("400", "", "m")),
        ([], ("", "", "")),
        ("text", ("", "", "")),
        (None, ("", "", "")),
        ({"error": {"code": None, "type": None, "message": None}}, ("", "", "")),
    ],
)
def test_read_error__forms(document, fields):
    error = read_error(document)

    assert (error.code, error.kind, error.message) == fields


CONTEXT = {
    "llama-server": {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 700,
        "n_ctx": 512,
    },
    "llama-server with numbers": {
        "code": 400,
        "message": "request (700 tokens) exceeds the available context size (512 tokens), try increasing it",
        "type": "exceed_context_size_error",
    },
    "llama-cpp-python": {
        "message": "This model's maximum context length is 512 tokens. However, you requested 800 tokens (700 in the "
        "messages, 100 in the completion). Please reduce the length of the messages or completion.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    },
    "vllm": {
        "message": "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. "
        "Please reduce the length of the input messages.",
        "type": "BadRequestError",
        "code": 400,
    },
    "vllm, no room left": {
        "message": "This model's maximum context length is 4096 tokens. However, you requested 4097 tokens (4096 in "
        "the messages, 1 in the completion). Please reduce the length of the messages or completion.",
        "type": "BadRequestError",
        "code": 400,
    },
    "vllm decoder": {
        "message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        "type": "BadRequestError",
        "code": 400,
    },
    "sglang": {"message": "The input (5000 tokens) is longer than the model's context length (4096 tokens)."},
    "openai": {
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    },
    "anthropic": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum",
    },
    "gemini": {
        "code": 400,
        "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "status": "INVALID_ARGUMENT",
    },
    "mistral": {
        "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context "
        "length",
        "type": "invalid_request_error",
    },
    "code alone": {"code": "CONTEXT_LENGTH_EXCEEDED"},
}


@with_cases("server", CONTEXT)
def test_is_context__servers(server):
    assert read_error({"error": CONTEXT[server]}).is_context
    assert not read_error({"error": CONTEXT[server]}).is_filter


NOT_CONTEXT = {
    "the prompt fits, max_tokens does not (vllm)": {
        "message": "'max_tokens' or 'max_completion_tokens' is too large: 10000. This model's maximum context length "
        "is 4096 tokens and your request has 20 input tokens (10000 > 4096 - 20).",
        "code": 400,
    },
    "the prompt fits, max_tokens does not (older vllm)": {
        "message": "This model's maximum context length is 4096 tokens. However, you requested 10020 tokens (20 in the "
        "messages, 10000 in the completion). Please reduce the length of the messages or completion.",
        "type": "BadRequestError",
        "code": 400,
    },
    "the prompt fits, with a code": {
        "message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (200 in the "
        "messages, 8800 in the completion).",
        "code": "context_length_exceeded",
    },
    "max_tokens of the model": {
        "message": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"
    },
    "max_tokens above the context": {"message": "max_tokens (9000) exceeds the model's context length"},
    "unknown parameter": {"message": "Unrecognized request argument supplied: context window"},
    "wrong type": {"message": "'context size' must be an integer"},
    "a word": {"message": "Invalid tool 'reduce the length of the list'"},
    "the prompt was not given": {
        "message": "The prompt is missing. See the documentation on the context length."
    },
    "temperature": {"message": "temperature is too large: must be at most 2"},
    "content filter": {"code": "content_filter", "message": "The response was filtered"},
    "nothing": {},
}


@with_cases("error", NOT_CONTEXT)
def test_is_context__is_not_what_merely_mentions_it(error):
    assert not read_error({"error": NOT_CONTEXT[error]}).is_context


@with_cases(
    ("error", "filtered"),
    [
        ({"code": "content_filter", "type": None}, True),
        ({"code": "content_policy_violation"}, True),
        ({"code": "ResponsibleAIPolicyViolation"}, True),
        ({"type": "content_filter", "code": 400}, True),
        ({"code": "invalid_content_type"}, False),
        ({"type": "content_too_large"}, False),
        ({"message": "content_filter"}, False),
    ],
)
def test_is_filter(error, filtered):
    assert read_error({"error": error}).is_filter is filtered


@with_cases(
    ("value", "count"),
    [
        (0, 0),
        (12, 12),
        (12.0, 12),
        (2**31 - 1, 2**31 - 1),
        (2**31, None),
        (10**400, None),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        ("12", None),
        (None, None),
        ([1], None),
    ],
)
def test_token_count(value, count):
    assert token_count(value) == count
