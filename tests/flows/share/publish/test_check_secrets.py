"""What is secret or private is found, with its place, and not shown; plain text is left in peace."""

import pytest

from evalcube.flows.share.publish.check_secrets import SecretFinder, SecretsError, named_by
from evalcube.flows.share.publish.contents import UNPUBLISHED
from tests.cases import with_cases
from tests.growth import grows_in_proportion

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
        "https://u:pw@git.corp/x",
        "the host 10.1.2.3.",
        "192.168.0.17/24",
        "(172.31.255.1)",
        "loopback is 127.0.0.1",
        "fd12:3456:789a::1",
        "[fd00::]",
        "fdab:1:2:3:4:5:6:7",
        "on localhost",
        "db.localhost:5432",
        "localhost.localdomain",
    ],
    "e-mail": ["ann@example.org", "mailto:ann.b+c@mail.example.co.uk", "<bob_2@x-y.io>."],
    "home-folder": [
        "/home/ann/models/x.gguf",
        "see /Users/ann/data",
        "C:\\Users\\ann\\x",
        "/root" + "/keys.txt",
    ],
}
HARMLESS = [
    "max_tokens: 2048",
    "token: the",
    "secret: nothing that anybody knows",
    "task-oriented-and-rather-long-words-with-hyphens",
    "a3f5c9d2" * 8,
    "https://api.example.org/v1 and http://example.com/home/page",
    "the answer is 10.5, or 10.0.19041.1 as a build, or 10.1.2.3.4, 10.1.2, 10.256.1.1, 110.1.2.3 and v10.1.2.3",
    "172.15.0.1 and 172.32.0.1 and 192.169.1.1 and 8.8.8.8, section 10.1.2.3",
    "at fd00:10 or fc:ab:12, std::vector, abfd::1 and face::b00c",
    "localhosts and my_localhost_name",
    "@decorated, a@b, 3@4.5, react@18.2.0, x @ y.org",
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


@with_cases(("kind", "text"), [(kind, text) for kind, texts in SECRETS.items() for text in texts])
def test_search__finds_secrets(kind, text):
    findings = found(f"before {text} after")

    assert kind in {one.kind for one in findings}
    assert {one.place for one in findings} == {"here"}


@with_cases("text", HARMLESS)
def test_search__leaves_plain_text_in_peace(text):
    assert found(f"before {text} after") == []


@with_cases("text", SECRETS["api-key"])
def test_findings__do_not_show_secrets(text):
    (one,) = [each for each in found(text) if each.kind == "api-key"]

    assert len(one.excerpt) <= 5
    assert text not in str(one)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:hunter2@git.corp/x", "https://…@git.corp/x"),
        ("https://hunter2@git.corp/x", "https://…@git.corp/x"),
        ("https://u:p@hunter2@git.corp/x", "https://…@git.corp/x"),
        ("http://localhost/?key=sk-proj-hunter2abcdefghij0123456789", "http://localhost/?key=…"),
        ("http://localhost/?token=hunter2hunter2&x", "http://localhost/?…"),
        ("http://localhost/hunter2battery", "http://localhost/…"),
        ("/home/ann/AKIAHUNTER2HUNTER2AA/x", "/home/ann/…/x"),
    ],
)
def test_findings__show_no_secret_within_what_another_rule_finds(text, shown, monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "hunter2battery")

    findings = found(text, variables=["TEAM_KEY"])
    assert shown in {one.excerpt for one in findings}
    assert "hunter2" not in "".join(map(str, findings)).lower()


@pytest.mark.parametrize("text", ["10.0.0.1:80 ", "password=", "eyJ"])
def test_search__takes_time_in_proportion_to_what_a_model_wrote(text):
    assert grows_in_proportion(lambda size: SecretFinder((), ()).search("reply", text * size), 8000)


def test_findings__show_no_secret_in_their_place():
    finder = SecretFinder((), ())
    finder.search_json("", {"https://u:hunter2@x.example/y": "see /home/ann/x"})

    with pytest.raises(SecretsError) as caught:
        finder.refuse()
    assert "hunter2" not in str(caught.value)


def test_search__knows_the_user_of_an_address_from_its_host_and_from_a_mailbox():
    kinds = {one.kind for one in found("https://u:pw@git.corp.example/x")}

    assert kinds == {"user-info"}


def test_search__finds_an_address_once():
    assert len(found("http://10.1.2.3:8000/v1")) == len(found("10.1.2.3:8000")) == 1


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


def test_named_by__knows_several_addresses_and_the_variables_of_servers():
    config = {
        "models": [
            {"endpoint": ["https://a.example/v1", "https://b.example/v1"]},
            {"serve": {"command": ["x", "{port}"], "env_from": {"HF_TOKEN": "TEAM_TOKEN"}}},
        ]
    }

    assert named_by(config, None) == ({"TEAM_TOKEN"}, {"a.example", "b.example"})


def test_search__counts_what_occurs_again_and_allows_by_id_and_kind():
    finder = SecretFinder((), ())
    finder.search_json("", {"a": ["/home/ann/x"], "b": {"c": "/home/ann/x and /home/bob/y"}})

    with pytest.raises(SecretsError) as caught:
        finder.refuse()
    first, second = caught.value.findings
    assert (first.place, first.times, second.place) == ("a[0]", 2, "b.c")
    assert found("/home/ann/x", allow=[first.id]) == found("/home/ann/x", allow=["home-folder"]) == []
    assert [one.id for one in found("/home/ann/x /home/bob/y", allow=[first.id])] == [second.id]
