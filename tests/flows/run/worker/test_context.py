"""What a worker proves before it takes part: that it reaches endpoints and has their keys."""

import errno
import os
import socket
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from evalcube.flows.run.worker import context
from evalcube.flows.run.worker.context import Proof, cut_off, missing_key, place, unmade, why_unreachable
from evalcube.stages.infer.endpoint import Endpoint, InferenceError
from tests.ports import free_port


@contextmanager
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def away():
    return f"http://127.0.0.1:{free_port()}/v1"


def test_why_unreachable__is_empty_once_one_of_the_servers_can_be_connected_to():
    with listening() as there:
        for replicas in ((there,), (there, away()), (away(), there)):
            assert why_unreachable(Endpoint("m", replicas[0], replicas=replicas)) == ""

        closed = away()
        problem = why_unreachable(Endpoint("m", closed))

    reason = os.strerror(errno.ECONNREFUSED)
    assert problem == f"m: {place(Endpoint('m', closed))} cannot be reached ({reason})"


def test_why_unreachable__of_one_behind_a_proxy_tells_of_the_proxy(monkeypatch):
    proxy = away()
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)

    problem = why_unreachable(Endpoint("m", "http://api.example.com/v1"))
    with listening() as there:
        monkeypatch.setenv("http_proxy", there)
        behind = why_unreachable(Endpoint("m", "http://api.example.com/v1"))

    assert problem.startswith(f"m: the proxy {place(Endpoint('m', proxy))} cannot be reached")
    assert behind == ""


def test_why_unreachable__without_a_valid_certificate_says_so_before_anything_is_asked(tmp_path):
    with listening() as there:
        secure = there.replace("http:", "https:")
        missing = str(tmp_path / "missing.pem")

        assert "models[m].ca_file" in why_unreachable(Endpoint("m", secure, ca_file=missing))


def test_why_unreachable__shakes_hands_over_tls_alone(monkeypatch):
    def shake(*_, **__):
        raise context.ssl.SSLCertVerificationError(1, "odd certificate")

    monkeypatch.setattr(context.ssl.SSLContext, "wrap_socket", shake)
    with listening() as there:
        assert why_unreachable(Endpoint("m", there)) == ""
        assert "cannot be reached" in why_unreachable(Endpoint("m", there.replace("http:", "https:")))


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("https://api.example.com/v1", "api.example.com:443"),
        ("http://api.example.com/v1", "api.example.com:80"),
        ("https://user:word@api.example.com:8443/v1", "api.example.com:8443"),
        ("https://api.example.com:x/v1", "m"),
    ],
)
def test_place__is_host_and_port(url, where):
    assert place(Endpoint("m", url)) == where


def test_cut_off__names_each_address_once_that_cannot_be_reached(monkeypatch):
    tried = []

    def probe(endpoint):
        tried.append(endpoint.name)
        return "" if "there" in endpoint.base_url else "refused"

    monkeypatch.setattr(context, "why_unreachable", probe)
    endpoints = [
        Endpoint("a", "http://there/v1"),
        Endpoint("b", "http://gone/v1"),
        Endpoint("c", "http://gone/v1"),
        Endpoint("d", "http://gone:81/v1"),
    ]

    assert cut_off(endpoints) == {"gone:80": "refused", "gone:81": "refused"}
    assert sorted(tried) in (["a", "b", "d"], ["a", "c", "d"])
    assert Proof(reached=tuple(endpoints[:1])).cut_off() == {}


def test_cut_off__of_an_address_that_never_answers_says_that_it_does_not(monkeypatch):
    monkeypatch.setattr(context, "CONNECT_SECONDS", -1.0)
    stuck = context.threading.Event()
    monkeypatch.setattr(context, "why_unreachable", lambda _: stuck.wait() and "")

    problems = cut_off([Endpoint("a", "http://gone/v1")])
    stuck.set()

    assert problems == {"gone:80": "no answer within -1 s"}


class Seen:
    """A token that a worker finds or not."""

    def __init__(self, problem=""):
        self.problem, self.asked_by = problem, []

    def answer(self, who):
        self.asked_by.append(who)
        return self.problem


def test_proof__lacks_a_place_first_and_then_a_key(tmp_path):
    keyed = (
        Endpoint("a", "https://h/v1"),
        Endpoint("b", "https://h/v1", key_file=str(tmp_path / "no key")),
    )
    cube, cache = Seen(), Seen("does not see the cache")

    assert Proof((cube, cache), keyed).lacking("w") == "does not see the cache"
    assert (cube.asked_by, cache.asked_by) == (["w"], ["w"])
    assert "models[b].key_file" in Proof((cube,), keyed).lacking("w")
    assert Proof((cube,), keyed[:1]).lacking("w") == missing_key(()) == ""


def planned(*files, tasks=()):
    """A plan as far as `unmade` looks at it: a cell for each of some files, and tasks without cells."""
    cells = [
        SimpleNamespace(
            cell=SimpleNamespace(plain_params={} if file is None else {"file": file}, trial=trial)
        )
        for file, trial in files
    ]
    own = [SimpleNamespace(task=None, cells=cells)]
    return SimpleNamespace(tasks=[*own, *(SimpleNamespace(task=task, cells=[]) for task in tasks)])


def test_unmade__makes_one_question_of_each_file():
    made = []

    def broken(_):
        raise OSError("input/output error")

    def odd(_):
        raise InferenceError("no such row")

    assert unmade(planned(("a", made.append), ("a", made.append), ("b", made.append), (None, broken))) == ""
    assert made == [0, 0]
    assert unmade(planned(("a", made.append), ("b", broken))) == "cannot read b: input/output error"
    assert unmade(planned(("a", odd))) == "no such row"


def test_unmade__names_a_package_that_is_missing(monkeypatch):
    class Rendered:
        def check_package(self):
            raise InferenceError("no package")

    monkeypatch.setattr(context, "RenderedTask", Rendered)

    assert unmade(planned(tasks=[Rendered()])) == "no package"
    assert unmade(planned(tasks=[object()])) == ""
