"""An endpoint's address, key, share and proxy as the environment has them."""

import ssl

import pytest

from evalcube.stages.infer.endpoint import Endpoint, InferenceError

URL = "https://api.example.com/v1"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("base", [URL, URL + "/", URL + "//"])
def test_url(base):
    assert Endpoint("m", base).targets == ("https://api.example.com/v1/chat/completions",)


def test_key__comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("A_KEY", "  sk-123 \n")

    assert Endpoint("m", URL, key_env="A_KEY").key() == "sk-123"
    assert Endpoint("m", URL).key() is None


@pytest.mark.parametrize("value", [None, "", "  "])
def test_key__that_is_not_there(monkeypatch, value):
    monkeypatch.delenv("A_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("A_KEY", value)

    with pytest.raises(InferenceError, match=r"models\[m\]\.key_env: .*A_KEY is not set"):
        Endpoint("m", URL, key_env="A_KEY").key()


@pytest.mark.parametrize("value", ["sk-12\r\nX-Evil: 1", "sk-ü12", "sk-\x7f12"])
def test_key__that_no_header_may_hold_is_refused_unseen(monkeypatch, value):
    monkeypatch.setenv("A_KEY", value)

    with pytest.raises(InferenceError, match="A_KEY") as caught:
        Endpoint("m", URL, key_env="A_KEY").key()

    assert "sk-" not in str(caught.value)


def test_account__is_address_and_key(monkeypatch):
    monkeypatch.setenv("A_KEY", "one")
    monkeypatch.setenv("B_KEY", "one")
    monkeypatch.setenv("C_KEY", "two")
    plain = Endpoint("m", URL).account
    keyed = [
        Endpoint("m", url, key_env=f"{name}_KEY").account
        for name, url in zip("ABC", [URL, URL + "/", URL], strict=True)
    ]

    assert keyed[0] == keyed[1]
    assert len({plain, *keyed}) == 3


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        (URL, {}, None),
        (URL, {"https_proxy": "http://p:1"}, "http://p:1"),
        (URL, {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        (URL, {"https_proxy": "p:1"}, "http://p:1"),
        (URL, {"http_proxy": "http://p:1"}, None),
        (URL, {"all_proxy": "http://p:1"}, "http://p:1"),
        ("http://a/v1", {"http_proxy": "http://p:1", "all_proxy": "http://q:1"}, "http://p:1"),
        (URL, {"https_proxy": "http://p:1", "no_proxy": "example.com"}, None),
        (URL, {"https_proxy": "http://p:1", "no_proxy": "*"}, None),
        (URL, {"https_proxy": "http://p:1", "no_proxy": "example.org"}, "http://p:1"),
        ("https://a:8443/v1", {"https_proxy": "http://p:1", "no_proxy": "a:8443"}, None),
        ("https://a:8444/v1", {"https_proxy": "http://p:1", "no_proxy": "a:8443"}, "http://p:1"),
        ("http://127.0.0.1:8000/v1", {"http_proxy": "http://p:1"}, None),
        ("http://localhost:8000/v1", {"http_proxy": "http://p:1"}, None),
        ("http://[::1]:8000/v1", {"http_proxy": "http://p:1"}, None),
        ("http://10.0.0.1:8000/v1", {"http_proxy": "http://p:1"}, "http://p:1"),
    ],
)
def test_proxy(monkeypatch, url, environment, proxy):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert Endpoint("m", url).proxy() == proxy


def test_proxy__of_another_kind_is_refused_unseen(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://me:secret@p:1")

    with pytest.raises(InferenceError, match=r"https_proxy.*no_proxy") as caught:
        Endpoint("m", URL).proxy()

    assert "secret" not in str(caught.value)


def test_tls__is_on_for_https():
    context = Endpoint("m", URL).tls()

    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert Endpoint("m", "http://a/v1").tls() is True
