"""What is secret or private is found, with its place, and not shown; plain text is left in peace."""

import pytest

from flows.publish.check_secrets import SecretFinder, SecretsError, named_by
from flows.publish.notes import UNPUBLISHED

SECRETS = {
    "api-key": [
        "sk-proj-abcdefghij0123456789",
        "my key: sk-ant-api03-abcdefghijkl",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "hf_abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "glpat-abcdefghij0123456789",
        "xoxb-1234567890-abc",
    ],
    "token": [
        "Authorization: Bearer abcdefghijklmnop0123",
        "authorization: basic dXNlcjpwYXNz",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdef",
    ],
    "private-key": ["-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"],
    "password": [
        "password=hunter2hunter2",
        'api_key: "abcd1234efgh"',
        "OPENAI_API_KEY=abc123def456",
        "db_password: s3cret99x",
    ],
    "user-info": ["https://ann:pa55@example.org/v1", "redis://u:x@example.org"],
    "private-host": [
        "http://localhost:8000/v1",
        "http://127.0.0.1/v1",
        "https://10.1.2.3/v1",
        "http://192.168.0.7:8000",
        "http://172.20.1.1/",
        "https://llm.team.internal/v1",
        "http://gpu7:8000/v1",
        "http://[::1]:80/",
        "served at 10.0.0.5:8000",
        "127.0.0.1:8000",
    ],
    "home-folder": ["/home/ann/models/x.gguf", "see /Users/ann/data", "C:\\Users\\ann\\x", "/root/keys.txt"],
}
HARMLESS = [
    "max_tokens: 2048",
    "token: the",
    "secret: nothing that anybody knows",
    "task-oriented-and-rather-long-words-with-hyphens",
    "a3f5c9d2" * 8,
    "https://api.example.org/v1 and http://example.com/home/page",
    "user@example.org",
    "the answer is 10.5, or 10.0.0.1 as an address",
    "version 127.0.0.1 of nothing",
    "/homepage and /usersx and home/ann",
    "basic arithmetic and a bearer of news",
    UNPUBLISHED,
    "https://example.org:443/x@y",
]


def found(text, **settings):
    finder = SecretFinder(settings.pop("variables", ()), settings.pop("hosts", ()), **settings)
    finder.search("here", text)
    try:
        finder.refuse()
    except SecretsError as error:
        return list(error.findings)
    return []


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in SECRETS.items() for text in texts]
)
def test_search__finds_secrets(kind, text):
    findings = found(f"before {text} after")

    assert kind in {one.kind for one in findings}
    assert {one.place for one in findings} == {"here"}


@pytest.mark.parametrize("text", HARMLESS)
def test_search__leaves_plain_text_in_peace(text):
    assert found(f"before {text} after") == []


@pytest.mark.parametrize("text", SECRETS["api-key"])
def test_findings__do_not_show_secrets(text):
    (one,) = [each for each in found(text) if each.kind == "api-key"]

    assert len(one.excerpt) <= 5
    assert text not in str(one)


def test_search__finds_values_of_variables_and_hosts_of_endpoints(monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "correct horse battery")
    config = {
        "models": [{"endpoint": "https://llm.example.org/v1", "key_env": "TEAM_KEY"}],
        "cache": "redis://r.example.org:1/0?password_env=PW",
    }

    variables, hosts = named_by(config, None)
    kinds = {
        one.kind
        for one in found("correct horse battery at LLM.example.org", variables=variables, hosts=hosts)
    }
    assert (variables, hosts) == ({"TEAM_KEY", "PW"}, {"llm.example.org", "r.example.org"})
    assert kinds == {"value-of-TEAM_KEY", "endpoint"}


def test_search__counts_what_occurs_again_and_allows_by_id_and_kind():
    finder = SecretFinder((), ())
    finder.search_json("", {"a": ["/home/ann/x"], "b": {"c": "/home/ann/x and /home/bob/y"}})

    with pytest.raises(SecretsError) as caught:
        finder.refuse()
    first, second = caught.value.findings
    assert (first.place, first.times, second.place) == ("a[0]", 2, "b.c")
    assert found("/home/ann/x", allow=[first.id]) == found("/home/ann/x", allow=["home-folder"]) == []
    assert [one.id for one in found("/home/ann/x /home/bob/y", allow=[first.id])] == [second.id]
