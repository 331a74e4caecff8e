"""The engine and what it meets: a running simulator, stores, jobs."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from evalcube.deploy.simulator.profile import Profile
from evalcube.stages.infer.apis import build_request
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.jobs import Job, Result
from tests.simulator.managed import Simulator
from tests.waiting import PATIENCE, wait_until


class Remote:
    """Steers a simulator through its control routes."""

    def __init__(self, server: Simulator) -> None:
        self.server = server

    @property
    def base_url(self) -> str:
        return self.server.base_url

    def _send(self, method: str, path: str, body: bytes | None = None) -> Any:
        connection = http.client.HTTPConnection(self.server.address.removeprefix("http://"), timeout=PATIENCE)
        try:
            connection.request(method, path, body)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def faults(self, *rules: dict[str, Any]) -> None:
        answer = self._send("POST", "/control/faults", json.dumps(rules).encode())
        assert "error" not in answer, answer

    def limits(self, **limits: Any) -> None:
        answer = self._send("POST", "/control/limits", json.dumps(limits).encode())
        assert "error" not in answer, answer

    def stats(self) -> dict[str, Any]:
        return self._send("GET", "/control/stats")

    def reset(self) -> None:
        self._send("POST", "/control/reset")

    def wait_for(self, **wanted: int) -> None:
        """Wait until the simulator's counts are at least so high."""
        wait_until(lambda: all(self.stats()[name] >= value for name, value in wanted.items()))


class Memory:
    """A store in memory that can be made to fail."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.committed: set[str] = set()
        self.problem: Exception | None = None
        self.commit_problem: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def put_all(self, records):
        if self.problem is not None:
            raise self.problem
        for key, value in records:
            self.records.setdefault(key, value)

    def commit(self):
        there = set(self.records)
        self.gate.wait(PATIENCE)
        if self.commit_problem is not None:
            raise self.commit_problem
        self.committed |= there


def make_jobs(
    count: int, label: str = "", name: str = "m", limit: int = 64, api: str = "chat", **profile: Any
) -> list[Job]:
    model = Profile(**profile).model_name(name)
    requests = (
        build_request(model, [{"role": "user", "content": f"{label} {i}"}], {"max_tokens": limit}, api=api)
        for i in range(count)
    )
    return [Job(request.digest, request.body) for request in requests]


def kinds(results: list[Result]) -> list[str]:
    return [result.kind for result in results]


@pytest.fixture
def jobs() -> Callable[..., list[Job]]:
    return make_jobs


@pytest.fixture(name="wait_until")
def _wait_until() -> Callable[..., object]:
    return wait_until


@pytest.fixture(scope="session")
def running() -> Iterator[Simulator]:
    with Simulator() as server:
        yield server


@pytest.fixture
def remote(running: Simulator) -> Iterator[Remote]:
    remote = Remote(running)
    wait_until(lambda: remote.stats()["in_flight"] == 0)
    remote.faults()
    remote.limits()
    remote.reset()
    yield remote
    remote.faults()
    remote.limits()


@pytest.fixture
def store() -> Memory:
    return Memory()


@pytest.fixture
def engine_for(remote: Remote, store: Memory) -> Iterator[Callable[..., Engine]]:
    """Makes an engine with one model ``m`` at the simulator, impatient unless told otherwise."""
    with ExitStack() as stack:

        def make(into: Any = None, **settings: Any) -> Engine:
            settings = {
                "connections": 4,
                "retries": 2,
                "backoff_base": 0.01,
                "timeout": 60.0,
                "patience": 0.0,
                **settings,
            }
            settings.setdefault("base_url", remote.base_url)
            engine = Engine({"m": Endpoint("m", **settings)}, store if into is None else into)
            stack.callback(engine.close)
            return engine

        yield make
