"""What endpoints say of parameters that they do not take, in their own words, and which one is found in them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.reply.body import refused_parameter
from tests.cases import with_cases

SENT = {
    "max_tokens": 8192,
    "temperature": 0,
    "top_p": 1,
    "top_k": 5,
    "seed": 7,
    "stop": "x",
    "user": "me",
    "logprobs": True,
    "presence_penalty": 1,
    "reasoning_effort": "low",
    "thinking": {"type": "enabled"},
    "chat_template_kwargs": {},
}


def request(**params):
    return json.dumps(
        {"messages": [{"role": "user", "content": "max_tokens?"}], "model": "m", **params}
    ).encode()


def refused(reply, sent=None, status=400):
    body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return refused_parameter(status, body, request(**(SENT if sent is None else sent)))


def openai(message, param=None, code=None):
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def anthropic(message):
    return {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": message},
        "request_id": "r",
    }


def vllm(message):
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


def litellm(message):
    text = f"litellm.BadRequestError: {message}. Received Model Group=m\nAvailable Model Group Fallbacks=None"
    return {"error": {"message": text, "type": None, "param": None, "code": "400"}}


INSTEAD = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
ONLY_ONE = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
NO_TEMPERATURE = "Unsupported parameter: 'temperature' is not supported with this model."
# What is said, as collected from issues of users of these endpoints, and what is found
SAID = {
    "OpenAI: another name": (
        openai(INSTEAD, "max_tokens", "unsupported_parameter"),
        "max_tokens, max_completion_tokens wanted",
    ),
    "OpenAI: another value": (
        openai(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is "
            "supported.",
            "temperature",
            "unsupported_value",
        ),
        "temperature",
    ),
    "OpenAI: unknown": (openai("Unrecognized request argument supplied: top_k"), "top_k"),
    "OpenAI: unknown, and a word of prose": (
        openai("Unrecognized request argument supplied: thinking"),
        "thinking",
    ),
    "Azure: no param": (openai(INSTEAD), "max_tokens, max_completion_tokens wanted"),
    "Anthropic: two at once": (anthropic(ONLY_ONE), "temperature"),
    "Anthropic: deprecated": (anthropic("`temperature` is deprecated for this model."), "temperature"),
    "Anthropic: too many": (
        anthropic(
            "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4"
        ),
        "max_tokens",
    ),
    "Anthropic: unknown": (anthropic("seed: Extra inputs are not permitted"), "seed"),
    "Anthropic: deep": (
        anthropic("thinking.budget_tokens: Input should be greater than or equal to 1024"),
        "thinking",
    ),
    "vLLM: unknown": (
        vllm(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'reasoning_effort'), 'msg': 'Extra inputs are not "
            "permitted', 'input': {'max_tokens': 5}}]"
        ),
        "reasoning_effort",
    ),
    "vLLM: out of range": (vllm("top_p must be in (0, 1], got 2.0."), "top_p"),
    "vLLM: later form": ({"error": vllm("temperature must be non-negative, got -1.0.")}, "temperature"),
    "vLLM: no room for any prompt": (
        vllm(
            "This model's maximum context length is 8192 tokens. However, you requested 8204 tokens (12 in the "
            "messages, 8192 in the completion). Please reduce the length of the messages or completion."
        ),
        "max_tokens",
    ),
    "vLLM on Gaudi": (
        vllm("Gaudi doesn't support logprobs. Please remove 'logprobs'/'top_logprobs' from your request"),
        "logprobs",
    ),
    "llama.cpp": (
        {
            "error": {
                "code": 400,
                "message": "logprobs is not supported with tools + stream",
                "type": "invalid_request_error",
            }
        },
        "logprobs",
    ),
    "llama.cpp: unsupported": (
        {"error": {"code": 400, "message": "Unsupported param: stop", "type": "invalid_request_error"}},
        "stop",
    ),
    "LiteLLM, of OpenAI": (
        litellm(f"OpenAIException - {json.dumps(openai(NO_TEMPERATURE, 'temperature'))}"),
        "temperature",
    ),
    "LiteLLM, of Anthropic": (
        litellm(f"AnthropicException - b'{json.dumps(anthropic(ONLY_ONE))}'"),
        "temperature",
    ),
    "LiteLLM: its own": (
        litellm(
            "UnsupportedParamsError: gpt-5 models don't support temperature=0.7. Only temperature=1 is supported"
        ),
        "temperature",
    ),
    "LiteLLM: a list": (
        litellm(
            "UnsupportedParamsError: ollama_chat does not support parameters: ['logprobs'], for model=llama3.1"
        ),
        "logprobs",
    ),
    "LiteLLM, of Bedrock": (
        litellm(
            'BedrockException - {"message":"The model returned the following errors: seed: Extra inputs are not"}'
        ),
        "seed",
    ),
    "OpenRouter: in the metadata": (
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": json.dumps(openai(INSTEAD))},
            }
        },
        "max_tokens, max_completion_tokens wanted",
    ),
    "xAI: in its own spelling": (
        {
            "code": "Client specified an invalid argument",
            "error": "Model m does not support parameter presencePenalty.",
        },
        "presence_penalty",
    ),
    "Mistral: a list of places": (
        {
            "object": "error",
            "message": {
                "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]
            },
            "type": "invalid_request_error",
        },
        "seed",
    ),
    "plain text": (b"unsupported field `chat_template_kwargs`", "chat_template_kwargs"),
    # About one prompt, or about nothing of ours.
    "nothing named": (openai("Invalid request"), ""),
    "a word of prose": (openai("the last message must be one of the user, and stop there"), ""),
    "one prompt is too long for the rest": (
        vllm(
            "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 9000 "
            "tokens and your request has 900 input tokens (8192 > 9000 - 900)."
        ),
        "",
    ),
    "a message's field, beside our name": (
        vllm(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 0, 'name'), 'msg': 'Extra', 'input': 'top_p'}]"
        ),
        "",
    ),
    "our field of a message": (openai("Invalid content", "messages[0].content"), ""),
    "nested beyond reason": (b'{"error":' * 100_000 + b"1", ""),
    "no text": (b"\xff\xfe", ""),
}


@with_cases("case", SAID)
def test_refused_parameter__as_endpoints_say_it(case):
    reply, found = SAID[case]

    assert refused(reply) == found


@with_cases(
    ("message", "sent", "found"),
    [
        ("Missing required parameter: 'max_tokens'.", {}, "max_tokens wanted"),
        ("max_tokens: Field required", {"temperature": 0}, "max_tokens wanted"),
        ("max_tokens must be at least 1, got -186.", {}, ""),
        (INSTEAD, {"max_tokens": 1, "max_completion_tokens": 1}, "max_tokens"),
        ("Unsupported parameter: 'temperature'", {"max_tokens": 5}, ""),
    ],
)
def test_refused_parameter__of_what_was_sent_or_is_wanted(message, sent, found):
    assert refused(openai(message), sent) == found


def test_refused_parameter__an_unknown_limit_has_another_name():
    said = vllm(
        "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra', 'input': 800}]"
    )

    assert refused(said, {"max_completion_tokens": 800}) == "max_completion_tokens, max_tokens wanted"


def test_refused_parameter__other_statuses_are_about_something_else():
    assert refused(openai(INSTEAD, "max_tokens"), status=413) == ""
    assert refused(openai(INSTEAD, "max_tokens"), status=422) != ""


@given(
    st.binary(max_size=300) | st.text(max_size=200).map(lambda text: json.dumps(openai(text, text)).encode())
)
def test_refused_parameter__holds_no_word_of_the_endpoint(reply):
    found = refused(reply)

    assert set(found.replace(" wanted", "").split(", ")) <= {"", *SENT, "max_completion_tokens"}
