"""One model on several servers: who gets a request, and what happens when one of them goes and comes back."""

import asyncio
import json
import threading
from contextlib import ExitStack

import pytest

from evalcube.stages.infer.endpoint import Endpoint, EngineInfo
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.replicas import Replicas, choose
from evalcube.stages.infer.reply import Reply, RetryClass
from tests.cases import with_cases
from tests.stages.infer.conftest import kinds, make_jobs, wait_until
from tests.stages.infer.echo import GOOD, Echo, http
from tests.waiting import PATIENCE


@with_cases(
    ("loads", "preferred", "chosen"),
    [
        ([0, 0, 0], 1, 1),
        ([1, 0, 0], 0, 0),  # it has seen the text, and is hardly busier
        ([2, 0, 1], 0, 1),
        ([2, None, 1], 1, 2),
        ([None, None], 0, None),
        ([5], 12, 0),
    ],
)
def test_choose__who_knows_the_text_or_has_the_fewest(loads, preferred, chosen):
    assert choose(loads, preferred) == chosen


def test_choose__spreads_evenly_whatever_the_texts():
    loads = [0, 0, 0]
    for _ in range(30):
        loads[choose(loads, 5)] += 1

    assert max(loads) - min(loads) <= 2


def prober(state):
    async def probe(place):
        state["probes"] += 1
        await asyncio.sleep(0)
        return state["there"][place]

    return probe


def replicas_of(state, tasks, count=2, **settings):
    urls = tuple(f"http://h{place}/v1" for place in range(count))
    endpoint = Endpoint("m", urls[0], replicas=urls, **settings)
    return Replicas(endpoint, prober(state), lambda work: tasks.append(asyncio.ensure_future(work)))


CUT = Reply(RetryClass.RETRY, "reset")


def test_replicas__one_probe_answers_for_all_requests_that_failed_with_their_server():
    async def run():
        state, tasks = {"probes": 0, "there": [False, True]}, []
        replicas, over = replicas_of(state, tasks), asyncio.Event()
        places = [await replicas.take(b"%d" % number, over) for number in range(20)]
        lost = await asyncio.gather(*(replicas.is_lost(0, CUT) for place in places if place == 0))
        assert all(lost)
        assert state["probes"] == 1
        assert await replicas.take(b"", over) == 1
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_replicas__a_failure_at_a_server_that_is_there_is_the_requests_own():
    async def run():
        state, tasks = {"probes": 0, "there": [True, True]}, []
        replicas = replicas_of(state, tasks)
        assert not await replicas.is_lost(0, CUT)
        assert not await replicas.is_lost(0, Reply(RetryClass.FAILED, "http 422"))
        assert not await replicas.is_lost(0, Reply(RetryClass.RETRY, "http 503", retry_after=3.0))
        assert state["probes"] == 1
        assert replicas.away == 0

    asyncio.run(run())


def test_replicas__who_fails_again_and_again_is_left_alone_while_another_answers():
    async def run():
        state, tasks = {"probes": 0, "there": [True, True]}, []
        replicas, over = replicas_of(state, tasks), asyncio.Event()
        for _ in range(8):
            assert not await replicas.is_lost(0, Reply(RetryClass.RETRY, "http 500"))
        assert {await replicas.take(b"%d" % number, over) for number in range(9)} == {1}
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_replicas__requests_wait_for_a_server_that_is_started_again_and_learn_that_it_is_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("evalcube.stages.infer.replicas._LOOK_SECONDS", 0.02)
    note = tmp_path / "over"

    async def run():
        state, tasks = {"probes": 0, "there": [False]}, []
        replicas = replicas_of(state, tasks, 1, outage=60.0, given_up=str(note))
        over = asyncio.Event()
        assert await replicas.is_lost(0, CUT)
        waiting = asyncio.ensure_future(replicas.take(b"", over))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        state["there"][0] = True
        assert await waiting == 0
        state["there"][0] = False
        assert await replicas.is_lost(0, CUT)
        waiting = asyncio.ensure_future(replicas.take(b"", over))
        note.write_text("it \x1b[31mdied\n" + "x" * 10_000)
        assert await waiting is None
        reply = replicas.absence()
        assert (reply.retry_class, reply.cause) == (RetryClass.FATAL, "server")
        assert reply.detail.startswith("it [31mdied x")
        assert len(reply.detail) <= 300
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_replicas__nobody_waits_once_the_run_stops(monkeypatch):
    monkeypatch.setattr("evalcube.stages.infer.replicas._LOOK_SECONDS", 0.02)

    async def run():
        state, tasks = {"probes": 0, "there": [False]}, []
        replicas, over = replicas_of(state, tasks, 1, outage=60.0), asyncio.Event()
        await replicas.is_lost(0, CUT)
        waiting = asyncio.ensure_future(replicas.take(b"", over))
        await asyncio.sleep(0)
        over.set()
        assert await waiting is None
        assert replicas.absence().retryable
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_replicas__without_a_server_that_comes_back_a_request_fails_as_at_any_endpoint():
    async def run():
        state, tasks = {"probes": 0, "there": [False, False]}, []
        replicas = replicas_of(state, tasks)
        assert await replicas.is_lost(0, CUT)
        assert await replicas.is_lost(1, CUT)
        assert await replicas.take(b"", asyncio.Event()) is None
        assert replicas.absence() == Reply(RetryClass.RETRY, "connect", "none of the 2 servers answers")
        for task in tasks:
            task.cancel()

    asyncio.run(run())


class Server(Echo):
    """A server that lists its models, and answers questions when its gate is open."""

    def __init__(self, port=0):
        self.gate = threading.Event()
        self.gate.set()
        self.in_flight = self.most = 0
        self._lock = threading.Lock()
        super().__init__(self._reply, port=port)

    def _reply(self, request):
        if request.startswith(b"GET /v1/models"):
            return http(json.dumps({"data": [{"id": "sent", "owned_by": "vllm"}]}).encode())
        if request.startswith(b"GET /version"):
            return http(b'{"version": "1"}')
        if request.startswith(b"GET"):
            return http(b"{}", 404)
        with self._lock:
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
        open_now = self.gate.wait(PATIENCE)
        with self._lock:
            self.in_flight -= 1
        return http(GOOD) if open_now and not self._over.is_set() else None

    @property
    def questions(self):
        return [request.partition(b"\r\n\r\n")[2] for request in self.requests if request.startswith(b"POST")]

    def stop(self):
        self._over.set()
        self.gate.set()
        super().stop()


@pytest.fixture
def engine_at(store):
    with ExitStack() as stack:

        def make(*servers, **settings):
            urls = tuple(server.base_url for server in servers)
            settings = {"connections": 4, "retries": 2, "backoff_base": 0.01, "timeout": 60.0, **settings}
            engine = Engine({"m": Endpoint("m", urls[0], replicas=urls, **settings)}, store)
            stack.callback(engine.close)
            return engine

        yield make


def test_engine__spreads_a_model_over_its_servers(engine_at, store):
    with Server() as first, Server() as second:
        engine = engine_at(first, second, connections=6)
        engine.run("m", make_jobs(2, "warm"))
        for server in (first, second):
            server.gate.clear()
        found = []
        thread = threading.Thread(target=lambda: found.extend(engine.run("m", make_jobs(60))))
        thread.start()
        wait_until(lambda: first.in_flight + second.in_flight == 6)
        for server in (first, second):
            server.gate.set()
        thread.join(PATIENCE)

        assert kinds(found) == ["stored"] * 60
        assert len(first.questions) + len(second.questions) == 62
        assert max(first.most, second.most) <= 4
        assert len(store.records) == 62


def test_engine__asks_again_only_what_was_in_flight_at_a_server_that_went_and_uses_it_when_it_is_back(
    engine_at,
):
    with Server() as first, ExitStack() as stack:
        second = stack.enter_context(Server())
        engine = engine_at(first, second, retries=0)
        assert kinds(engine.run("m", make_jobs(4, "warm"))) == ["stored"] * 4
        second.gate.clear()
        found = []
        thread = threading.Thread(target=lambda: found.extend(engine.run("m", make_jobs(40))))
        thread.start()
        wait_until(lambda: second.in_flight == 4 or len(first.questions) + second.in_flight >= 40)
        in_flight = second.in_flight
        second.stop()
        thread.join(PATIENCE)

        assert kinds(found) == ["stored"] * 40
        asked = first.questions + second.questions
        assert len(asked) <= 44 + in_flight
        assert engine.stats.sent == len(asked)
        assert sum(engine.stats.retries.values()) == len(asked) - 44

        with Server(second.port) as again:
            wait_until(lambda: any(request.startswith(b"GET") for request in again.requests))
            wait_until(
                lambda: kinds(engine.run("m", make_jobs(8, str(len(again.requests))))) and again.questions
            )


class Frail(Server):
    """A server that is gone after each question about poison until two more requests found nobody there."""

    def __init__(self):
        self.gone = 0
        super().__init__()

    def _reply(self, request):
        if b"poison" in request:
            self.gone = 3
        if self.gone:
            self.gone -= 1
            return None
        return super()._reply(request)


def test_engine__a_request_that_ends_every_server_is_given_up_and_the_others_are_answered(engine_at):
    with Frail() as first, Frail() as second:
        engine = engine_at(first, second, connections=1, retries=8)
        results = engine.run("m", [*make_jobs(3), *make_jobs(1, "poison"), *make_jobs(6, "more")])

        asked = sum(b"poison" in body for body in first.questions + second.questions)
    assert results[3].kind == "failed"
    assert asked <= 4


class Strange(Server):
    """A server that answers every question at once in a way that no other server of its pool does."""

    def __init__(self, status, body):
        self.status, self.body = status, body
        super().__init__()

    def _reply(self, request):
        return http(self.body, self.status) if request.startswith(b"POST") else super()._reply(request)


STRANGE = {
    "another model": (404, b'{"error": {"message": "no such model"}}'),
    "a refused key": (401, b"{}"),
    "a web page": (200, b"<!doctype html><p>hello"),
    "no completion": (200, b'{"ok": true}'),
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("status", "body"), STRANGE.values(), ids=STRANGE)
def test_engine__a_server_unlike_the_others_fails_no_request_and_is_left_alone(
    engine_at, status, body, place
):
    with Strange(status, body) as strange, Server() as good:
        engine = engine_at(*((strange, good) if place == 0 else (good, strange)), retries=0)
        results = engine.run("m", make_jobs(60))

        assert kinds(results) == ["stored"] * 60
        # Eight in a row, and what was in flight meanwhile.
        assert 1 <= len(strange.questions) <= 8 + 4
        assert engine.stats.sent == len(strange.questions) + len(good.questions)


def test_engine__servers_that_are_all_strange_fail_as_one_does(engine_at):
    with Strange(404, b"{}") as first, Strange(404, b"{}") as second:
        results = engine_at(first, second).run("m", make_jobs(20))

        assert kinds(results) == ["failed"] * 20
        assert len(first.questions) == len(second.questions) == 2


def test_replicas__nobody_waits_for_those_that_refused_a_request():
    async def run():
        replicas = replicas_of({"probes": 0, "there": [True, True]}, [])
        assert await replicas.take(b"", asyncio.Event(), {0}) == 1
        assert await replicas.take(b"", asyncio.Event(), {0, 1}) is None

    asyncio.run(run())


def test_engine__learns_what_serves_a_model_at_each_of_its_servers(engine_at):
    with Server() as first, Server() as second:
        engine = engine_at(first, second, model="sent")
        engine.run("m", make_jobs(2))

        wait_until(lambda: engine.engines() == {"m": [EngineInfo("vLLM", "1")]})
        for server in (first, second):
            wait_until(lambda server=server: any(b"GET /version" in request for request in server.requests))


def test_engine__asks_nothing_but_questions_of_an_endpoint_that_nobody_wants_to_know(engine_at):
    with Server() as only:
        engine = engine_at(only)
        engine.run("m", make_jobs(3))

        assert all(request.startswith(b"POST") for request in only.requests)
        assert engine.engines() == {}
