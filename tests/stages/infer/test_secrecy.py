"""The API key goes into one header and nowhere else; certificates are checked."""

import asyncio
import json
import logging
import shutil
import ssl
import subprocess
import traceback

import pytest

from evalcube.stages.infer.endpoint import Endpoint, InferenceError
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.keys import KeyHolder
from evalcube.stages.infer.wire import Sender, connector
from tests.simulator.managed import Simulator
from tests.stages.infer.echo import GOOD, Echo, http
from tests.tiers import need

KEY = "sk-3f9a1c77d2e84b6590aa"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("A_KEY", KEY)


def run(base_url, store, jobs, **settings):
    """Results of a run with the key, and all that the engine says of itself."""
    settings = {"connections": 2, "retries": 1, "backoff_base": 0.01, "timeout": 60.0, **settings}
    engine = Engine({"m": Endpoint("m", base_url, key_env="A_KEY", **settings)}, store)
    try:
        results = engine.run("m", jobs(3))
    finally:
        engine.close()
    return results, f"{results!r} {engine.stats!r} {engine.stats.snapshot()!r} {engine!r}"


def leak(request):
    """An answer that repeats the whole request, and so the key."""
    return json.dumps({"error": {"message": request.decode("latin-1"), "code": KEY, "type": KEY}}).encode()


ANSWERS = {
    "refused": lambda request: http(leak(request), 401),
    "bad request": lambda request: http(leak(request), 400),
    "server error": lambda request: http(leak(request), 500),
    "no JSON": lambda request: http(request, 200),
    "error with status 200": lambda request: http(leak(request), 200),
    "redirect": lambda _: http(b"", 302, f"location: http://127.0.0.1:9/?key={KEY}"),
    "no HTTP": lambda request: request,
    "bad header": lambda _: f"HTTP/1.1 200 OK\r\nx y: {KEY}\r\n\r\n".encode(),
    "long header": lambda _: b"HTTP/1.1 200 OK\r\nx: " + KEY.encode() * 2000 + b"\r\n\r\n",
    "closed": lambda _: None,
    "cut": lambda request: http(leak(request))[:-9],
}


@pytest.mark.parametrize("case", ANSWERS)
def test_key__is_in_no_result_of_a_failure(store, jobs, caplog, capfd, case):
    caplog.set_level(logging.DEBUG)
    with Echo(ANSWERS[case]) as echo:
        results, said = run(echo.base_url, store, jobs, timeout=0.2)

    assert f"authorization: bearer {KEY}".encode() in echo.requests[0].lower()
    assert {result.kind for result in results} == {"failed"}
    assert not store.records
    assert KEY not in said + caplog.text + "".join(capfd.readouterr())


def test_key__is_in_no_record_and_no_log_of_a_success(store, jobs, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    answer = GOOD.replace(b'"4"', json.dumps(f"Your key is {KEY}.").encode())
    with Echo(lambda _: http(answer)) as echo:
        results, said = run(echo.base_url, store, jobs)

    assert {result.kind for result in results} == {"stored"}
    assert KEY not in said + caplog.text + "".join(capfd.readouterr())
    assert len(store.records) == 3
    assert all(
        KEY.encode() not in record and b"Your key is [key]." in record for record in store.records.values()
    )


def test_key__that_is_a_placeholder_leaves_answers_alone(store, jobs, monkeypatch):
    monkeypatch.setenv("A_KEY", "4")
    with Echo() as echo:
        run(echo.base_url, store, jobs)

    assert len(store.records) == 3
    assert all(record.endswith(GOOD) for record in store.records.values())


def test_key__is_in_no_exception(store, jobs, monkeypatch):
    store.problem = OSError("full")
    with Echo() as echo, pytest.raises(OSError, match="full") as caught:
        run(echo.base_url, store, jobs)

    assert KEY not in "".join(traceback.format_exception(caught.value))

    monkeypatch.setenv("A_KEY", f"{KEY}\n{KEY}")
    with pytest.raises(InferenceError) as refused:
        run("http://127.0.0.1:9/v1", store, jobs)

    assert KEY not in "".join(traceback.format_exception(refused.value))


@pytest.mark.cluster
def test_key__opens_a_server_that_wants_it(store, jobs):
    with Simulator(key_env="A_KEY") as server:
        results, _ = run(server.base_url, store, jobs)

        engine = Engine({"m": Endpoint("m", server.base_url)}, store)
        refused = engine.run("m", jobs(2))
        engine.close()

    assert {result.kind for result in results} == {"stored"}
    assert {(result.kind, result.cause) for result in refused} == {("failed", "http 401")}


def test_key__missing_ends_the_run_before_anything_is_sent(store, jobs, monkeypatch):
    monkeypatch.delenv("A_KEY")
    with Echo() as echo, pytest.raises(InferenceError, match="A_KEY is not set"):
        run(echo.base_url, store, jobs)

    assert not echo.requests


def test_proxy__gets_requests_for_other_hosts(store, jobs, monkeypatch):
    with Echo() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:word@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        results, said = run("http://api.example.invalid/v1", store, jobs)

    assert {result.kind for result in results} == {"stored"}
    assert proxy.requests[0].startswith(b"POST http://api.example.invalid/v1/chat/completions HTTP/1.1\r\n")
    assert b"proxy-authorization: basic" in proxy.requests[0].lower()
    assert "word" not in said


@pytest.mark.parametrize(("status", "cause", "attempts"), [(407, "proxy", 2), (503, "connect", 6)])
def test_proxy__that_does_not_let_through_is_told(store, jobs, monkeypatch, status, cause, attempts):
    with Echo(lambda _: http(b"", status)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:word@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        results, said = run("https://api.example.invalid/v1", store, jobs)

    assert {(result.kind, result.cause) for result in results} == {("failed", cause)}
    assert sum(result.attempts for result in results) <= attempts
    assert "word" not in said


def test_key__is_not_for_the_proxy_on_the_way_to_tls(jobs, monkeypatch):
    async def ask():
        endpoint = Endpoint("m", "https://api.example.invalid/v1", key_env="A_KEY", headers={"own": "header"})
        async with connector(endpoint) as connections:
            sender = Sender(endpoint, connections, KeyHolder(endpoint))
            await sender.send(jobs(1)[0])
            await sender.is_there(0)
            await sender.close()

    with Echo(lambda _: http(b"", 403)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        asyncio.run(ask())

    assert [request.split()[0] for request in proxy.requests] == [b"CONNECT"] * 2
    assert not [request for request in proxy.requests if KEY.encode() in request or b"header" in request]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself, with its key."""
    need("openssl", shutil.which("openssl"), "apt install openssl")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    command = (
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=here -keyout {file}.key -out {file}"
    )
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True
    )
    return file


@pytest.fixture
def tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, f"{certificate}.key")
    return context


def test_tls__a_certificate_of_the_environments_authority_is_accepted(
    store, jobs, monkeypatch, certificate, tls
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Echo(tls=tls) as echo:
        results, _ = run(echo.base_url, store, jobs)

    assert {result.kind for result in results} == {"stored"}


def test_tls__a_certificate_of_an_authority_of_ones_own_is_accepted(store, jobs, certificate, tls):
    with Echo(tls=tls) as echo:
        results, _ = run(echo.base_url, store, jobs, ca_file=str(certificate))

    assert {result.kind for result in results} == {"stored"}


@pytest.mark.parametrize("first", ["own", "none"])
def test_tls__what_one_model_trusts_no_other_at_the_address_does(store, jobs, certificate, tls, first):
    files = {"own": str(certificate), "none": None}
    with Echo(tls=tls) as echo:
        endpoints = {
            name: Endpoint(name, echo.base_url, ca_file=file, retries=0) for name, file in files.items()
        }
        engine = Engine(endpoints, store)
        try:
            order = sorted(files, key=lambda name: name != first)
            results = {name: engine.run(name, jobs(3, name))[0] for name in order}
        finally:
            engine.close()

    assert results["own"].kind == "stored"
    assert (results["none"].kind, results["none"].cause) == ("failed", "tls")


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_tls__a_file_without_authorities_is_told(store, jobs, tls, tmp_path, content):
    file = tmp_path / "own.pem"
    if content is not None:
        file.write_text(content)
    with Echo(tls=tls) as echo, pytest.raises(InferenceError, match=r"models\[m\]\.ca_file: .*own\.pem"):
        run(echo.base_url, store, jobs, ca_file=str(file))

    assert not echo.requests


def test_tls__an_unknown_certificate_ends_it_before_the_key_is_sent(store, jobs, tls):
    with Echo(tls=tls) as echo:
        results, said = run(echo.base_url, store, jobs)

    assert {(result.kind, result.cause) for result in results} == {("failed", "tls")}
    assert "certificate" in results[0].detail
    assert sum(result.attempts for result in results) <= 2
    assert not echo.requests
    assert KEY not in said


def test_tls__a_server_that_does_not_speak_it_is_given_up(store, jobs, remote):
    results, _ = run(remote.base_url.replace("http:", "https:"), store, jobs)

    assert {(result.kind, result.cause) for result in results} == {("failed", "tls")}
    assert remote.stats()["requests"] == 0
