"""What a config may say about the end of a run, and what is refused."""

import pytest

from evalcube.flows.config.load import parse_config
from tests.flows.config.sources import problems, text


@pytest.mark.parametrize(
    "said",
    [
        "{command: [notify-send, evalcube]}",
        "{webhook: 'https://ci.example.org/hooks/evalcube', key_env: CI_TOKEN, when: [failed, stopped]}",
        "{webhook_env: CHAT_URL, command: ['true'], timeout: 5}",
    ],
)
def test_on_end__is_read(said):
    assert parse_config(text(on_end=said), "c.yaml").on_end.when


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{}", "must name a command or a webhook"),
        ("{command: notify}", "must be a list of a program and its arguments"),
        ("{command: []}", "must be a list of a program and its arguments"),
        ("{command: ['']}", "must begin with a program"),
        ("{command: [curl, -H, 'Authorization: Bearer abc']}", "looks like a secret"),
        ("{webhook: example.org}", "must be http(s)://host/path"),
        ("{webhook: 'https://ada:pass@example.org/'}", "an address with a secret in it"),
        ("{webhook: 'https://example.org/?key=1'}", "an address with a secret in it"),
        ("{webhook: 'https://example.org/', webhook_env: A}", "exclude each other"),
        ("{command: ['true'], key_env: A}", "key_env is for a webhook"),
        ("{webhook_env: sk-1234567890}", "not like the name of an environment variable"),
        ("{command: ['true'], when: [sometimes]}", "on_end.when[0]"),
    ],
)
def test_on_end__what_makes_no_sense_is_refused_and_no_secret_is_shown(said, expected):
    (problem,) = problems(text(on_end=said))

    assert expected in str(problem)
    assert "pass" not in str(problem)
    assert "1234567890" not in str(problem)
