"""Whom the explorer's server answers, and what it lets a browser do."""

import http.client
import json
import logging
import signal
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.http_exceptions import BadStatusLine

from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.server import _is_ours
from tests.cases import with_cases
from tests.flows.explore.browsing import served
from tests.flows.support import command, evalcube, refused
from tests.waiting import PATIENCE

TOKEN = "t0ken"


def request(base, path, method="GET", **headers):
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=PATIENCE)
    connection.request(
        method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body


@pytest.fixture(scope="module")
def guarded(explored_cube):
    with served(Explored([explored_cube]), TOKEN) as base:
        yield base


@pytest.mark.parametrize("path", ["/", "/core.js", "/views/ranking.js", "/plotly.min.js", "/api/overview"])
def test_replies__come_with_a_policy_that_allows_no_inline_script(address, path):
    reply, body = request(address, path)

    assert reply.status == 200
    assert body
    policy = dict(part.split(" ", 1) for part in reply.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/../flows/errors.py", "/%2e%2e/server.py", "/views/../../server.py", "/etc/passwd", "/server.py"],
)
def test_files__are_those_of_the_page_and_no_others(address, path):
    reply, body = request(address, path)

    assert reply.status == 404
    assert b"import" not in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_guard__refuses_other_names_of_this_machine(address, host):
    assert request(address, "/api/overview", Host=host)[0].status in (400, 403)


def test_guard__answers_any_port_of_this_machine_as_behind_a_tunnel(address):
    assert request(address, "/api/overview", Host="localhost:9999")[0].status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_guard__refuses_pages_of_others(address, origin):
    reply, body = request(address, "/api/overview", Origin=origin)

    assert reply.status == 403
    assert b"alpha" not in body


@pytest.mark.parametrize(
    "headers",
    [{"Host": "[::1"}, {"Origin": "http://[bad"}, {"Host": "[bad]"}, {"Host": "localhost:x"}],
)
def test_guard__refuses_malformed_addresses(address, headers):
    reply, body = request(address, "/api/overview", **headers)

    assert reply.status in (400, 403)
    assert b"Traceback" not in body


@pytest.mark.parametrize(
    ("path", "site", "mode", "status"),
    [
        ("/api/overview", "cross-site", "no-cors", 403),
        ("/api/overview", "same-site", "cors", 403),
        ("/api/overview", "cross-site", "navigate", 403),
        ("/core.js", "cross-site", "no-cors", 403),
        ("/", "cross-site", "navigate", 200),
        ("/api/overview", "same-origin", "cors", 200),
        ("/", "none", "navigate", 200),
    ],
)
def test_guard__goes_by_what_a_browser_says_of_who_asks(address, path, site, mode, status):
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}

    assert request(address, path, **headers)[0].status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_server__only_reads(address, method):
    assert request(address, "/api/overview", method)[0].status == 405


def test_answers__of_wrong_questions_are_messages(address):
    reply, body = request(address, "/api/ranking?mode=C_X")

    assert reply.status == 400
    assert "mode" in json.loads(body)["error"]["message"]


def test_token__is_asked_for_and_kept_in_a_cookie(guarded):
    assert request(guarded, "/api/overview")[0].status == 401
    assert request(guarded, "/?token=wrong")[0].status == 401
    assert request(guarded, "/api/overview", Authorization="Bearer wrong")[0].status == 401

    reply, _ = request(guarded, f"/?token={TOKEN}")

    assert (reply.status, reply.headers["Location"]) == (303, "/")
    cookie = reply.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert request(guarded, "/api/overview", Cookie=cookie.split(";")[0])[0].status == 200
    assert cookie.split("=")[0].endswith(
        f"_{urlsplit(guarded).port}"
    )  # other ports have cookies of their own
    assert request(guarded, "/api/overview", Authorization=f"Bearer {TOKEN}")[0].status == 200


def test_explore__prints_its_address_and_ends_when_it_is_told(explored_cube, tmp_path):
    process = command("explore", explored_cube, cwd=tmp_path)
    try:
        base = process.stdout.readline().strip()
        assert request(base, "/api/overview")[0].status == 200

        taken = evalcube("explore", explored_cube, "--port", urlsplit(base).port, cwd=tmp_path)
        refused(taken, "--port", "cannot listen")
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


def test_explore__says_what_is_wrong_before_it_serves(explored_cube, tmp_path, monkeypatch):
    refused(evalcube("explore", "none.zarr", cwd=tmp_path), "none.zarr")
    monkeypatch.setattr("evalcube.flows.explore.server.find_spec", lambda name: None)  # noqa: ARG005 - its interface

    refused(evalcube("explore", explored_cube, cwd=tmp_path), "evalcube[explore]")
    refused(evalcube("bundle", explored_cube, "-o", "site", cwd=tmp_path), "evalcube[explore]")


@with_cases(
    ("error", "logged"),
    [
        (None, True),
        (KeyError("a defect"), True),
        (BadStatusLine("nonsense"), False),
        (web.RequestPayloadError("cut"), False),
        (UnicodeError("no text"), False),
    ],
)
def test_log__has_what_may_be_a_defect_and_no_malformed_request(error, logged):
    of = None if error is None else (type(error), error, None)

    assert _is_ours(logging.LogRecord("server", logging.ERROR, "", 0, "failed", (), of)) is logged
