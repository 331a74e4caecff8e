"""Any text or mapping -> a config or a `ConfigError`; secrets never in a message."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube import EvalcubeError
from evalcube.flows.config.load import from_mapping, parse_config
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.secrecy import HIDDEN, looks_secret, mask, secret_word, show
from evalcube.flows.config.suites import initial_config
from evalcube.flows.errors import ConfigError, Problem, TemplateError
from tests.cases import with_cases

SECRETS = (
    "sk-proj-Abc123Def456",
    "sk_live_4eC39HqLyjW",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "hf_AbCdEfGhIjKl",
    "AIzaSyD-9tSrke72PouQMnMX",
    "AKIAIOSFODNN7EXAMPLE",
    "Bearer abcdef",
    "https://me:pw@host/v1",
    "0d9f8e7c6b5a49382716a5b4c3d2e1f0",
    "eyJhbGciOiJIUzI1NiJ9",
)

GOOD = {
    "models": [{"name": "a", "endpoint": "sim:"}],
    "samplers": {"g": {}},
    "tasks": {"arithmetic": {"manifold": [{"points": [{"length": 4}]}]}},
}


def outcome(text: str) -> str:
    try:
        return repr(parse_config(text))
    except ConfigError as error:
        return str(error)


LINES = st.lists(st.sampled_from(initial_config().splitlines()), max_size=30).map("\n".join)
YAML_ISH = st.text("ab:-[]{}&*!|>#'\"%?<~,1.\n \t", max_size=60)


@given(st.text(max_size=80) | YAML_ISH | LINES)
def test_parse_config__any_text_gives_a_config_or_config_error(text: str) -> None:
    assert outcome(text)


@given(st.data())
def test_parse_config__any_damage_to_a_good_text_gives_a_config_or_config_error(data: st.DataObject) -> None:
    text = initial_config()
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 200))
    new = data.draw(YAML_ISH)

    assert outcome(text[:at] + new + text[at + cut :])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.none(), children, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = list(Sweep.model_fields)
NESTED = [
    "name",
    "endpoint",
    "model",
    "key_env",
    "key_file",
    "key_command",
    "limits",
    "prices",
    "facets",
    "simulate",
    "headers",
]


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES), st.dictionaries(st.sampled_from(NESTED), VALUES))
def test_from_mapping__any_values_give_a_config_or_config_error(
    sections: dict[str, object], model: dict[str, object]
) -> None:
    for mapping in (sections, {**GOOD, **sections}, {**GOOD, "models": [{**GOOD["models"][0], **model}]}):
        try:
            config = from_mapping(mapping)
        except ConfigError:
            continue
        assert from_mapping(config.model_dump()) == config


def test_from_mapping__deep_values_are_refused() -> None:
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]

    with pytest.raises(ConfigError, match="deeper than 50 levels"):
        from_mapping({"models": deep})


def test_from_mapping__huge_numbers_are_refused_or_kept() -> None:
    with pytest.raises(ConfigError, match="9,223,372,036,854,775,807, got"):
        from_mapping({**GOOD, "seed": 10**5000})


PLACES = (
    {"models": [{"name": "a", "endpoint": "{}"}]},
    {"models": [{"name": "a", "endpoint": "sim:", "key_env": "{}"}]},
    {"models": [{"name": "a", "endpoint": "sim:", "headers": {"X-A": "{}"}}]},
    {"models": [{"name": "a", "endpoint": "sim:", "headers": {"{}": "x"}}]},
    {"models": [{"name": "a", "endpoint": "sim:", "headers": "{}"}]},
    {"models": [{"name": "a", "endpoint": "sim:", "api_key": "{}"}]},
    {"models": [{"name": "a", "endpoint": "sim:", "{}": 1}]},
    {"models": [{"name": "a", "endpoint": "sim:", "limits": "{}"}]},
    {"models": [{"name": "a", "endpoint": "sim:", "limits": {"timeout": "{}"}}]},
    {"models": [{"name": "a", "endpoint": "sim:", "facets": {"{}": [1]}}]},
    {"models": "{}"},
    {"models": ["{}"]},
    {"samplers": {"g": {"api_key": "{}"}}},
    {"samplers": {"g": {"{}": float("nan")}}},
    {"samplers": {"g": {"max_tokens": "{}"}}},
    {"templates": {"t": [{"role": "{}", "content": "{{ prompt }}"}]}},
    {"templates": {"t": [{"role": "user", "content": "{{ prompt }}", "{}": ""}]}},
    {"evaluations": [{"models": ["{}"]}]},
    {"tasks": {"{}": {}}},
    {"tasks": {"arithmetic": {"manifold": [{"grid": {"{}": 1}}]}}},
    {"tasks": {"arithmetic": {"manifold": [{"grid": {"length": "{}"}}]}}},
    {"seed": "{}"},
    {"cache": "s3://{}@bucket/x"},
    {"{}": 1},
)


def filled(value: object, secret: str) -> object:
    if isinstance(value, dict):
        return {filled(key, secret): filled(item, secret) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, secret) for item in value]
    return value.replace("{}", secret) if isinstance(value, str) else value


@with_cases("place", PLACES)
def test_problems__never_show_a_secret(place: dict[str, object]) -> None:
    for secret in SECRETS:
        with pytest.raises(ConfigError) as caught:
            from_mapping({**GOOD, **filled(place, secret)})

        assert secret not in str(caught.value)
        assert secret not in repr(caught.value.problems)


@with_cases("text", ["a: *{}", "a: !{} x", "'{}': 1\n'{}': 2", "a: {} b: c", "a: [{}\nb: }}"])
def test_yaml_problems__never_show_a_secret(text: str) -> None:
    for secret in SECRETS:
        with pytest.raises(ConfigError) as caught:
            parse_config(text.replace("{}", secret))

        assert secret not in str(caught.value)


@with_cases("secret", SECRETS)
def test_looks_secret__knows_common_forms(secret: str) -> None:
    assert looks_secret(secret)
    assert mask(secret) == show(secret) == HIDDEN


@with_cases(
    "text",
    [
        "OPENAI_API_KEY",
        "smollm2-135m-instruct",
        "meta-llama/Llama-3.3-70B-Instruct",
        "qwen2.5-7b-instruct-q4_k_m",
        "https://host.example.com/v1",
        "claude-sonnet-4-5-20250929",
        "must have at most 128 characters",
        "prob_dewhitespace",
    ],
)
def test_looks_secret__leaves_ordinary_names(text: str) -> None:
    assert not looks_secret(text)


@with_cases("name", ["Authorization", "x-api-key", "Cookie", "Set-Cookie", "X-Auth-Token", "api_key"])
def test_secret_word__knows_names_of_secrets(name: str) -> None:
    assert secret_word(name)


@with_cases("name", ["X-Team", "max_tokens", "logit_bias", "top_k", "Accept", "min_tokens"])
def test_secret_word__leaves_ordinary_names(name: str) -> None:
    assert secret_word(name) is None


@pytest.mark.parametrize(
    "error",
    [
        EvalcubeError("rule", "remedy"),
        TemplateError("rule", "remedy", where=(0, "content"), line=3),
        ConfigError([Problem("f", 1, "a", "1", "rule", "remedy"), Problem("f", None, "", "", "rule", "")]),
    ],
)
def test_errors__survive_pickling(error: EvalcubeError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
