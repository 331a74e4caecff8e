"""The engine against a real simulator: what is stored, what fails and why, and what is left behind."""

import gc
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalcube.stages.infer import wire
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.engine import Engine, InferenceError
from evalcube.stages.infer.jobs import Slowdown
from evalcube.stages.infer.reply import classify
from evalcube.stages.infer.sharing import Shared
from evalcube.stages.reply.forms import Record
from evalcube.storage.cache.cache import DirectoryCache
from tests.stages.infer.conftest import kinds
from tests.stages.infer.echo import GOOD, Echo, http
from tests.waiting import PATIENCE


def text(record):
    return json.loads(Record.decode(record).body)["choices"][0]["message"]["content"]


def test_run__stores_replies_and_gives_results_in_the_order_of_jobs(engine_for, store, jobs):
    batch = [job for pair in zip(jobs(20, tokens=8), jobs(20, tokens=64), strict=True) for job in pair]

    results = engine_for().run("m", batch)

    assert kinds(results) == ["stored"] * 40
    for job, result in zip(batch, results, strict=True):
        usage = json.loads(Record.decode(store.records[job.digest]).body)["usage"]
        assert result.completion_tokens == usage["completion_tokens"] > 0
        assert result.prompt_tokens == usage["prompt_tokens"] > 0
        assert result.attempts == 1
    assert len({result.completion_tokens for result in results}) > 1


def test_run__records_are_durable_in_a_directory(engine_for, tmp_path, jobs, remote):
    batch = jobs(30)
    engine = engine_for(DirectoryCache(tmp_path))

    assert kinds(engine.run("m", batch)) == ["stored"] * 30

    reader = DirectoryCache(tmp_path)
    for job in batch:
        record = Record.decode(reader.get(job.digest))
        assert (record.status, 0 < record.latency < 5) == (200, True)
    assert remote.stats()["requests"] == 30


def test_stats__tell_what_the_server_takes_from_what_a_busy_loop_adds(engine_for, store, jobs, monkeypatch):
    held = []

    def slowly(_):
        begun = time.monotonic()
        threading.Event().wait(0.02)
        held.append(time.monotonic() - begun)
        return http(GOOD)

    def busy(*reply):
        threading.Event().wait(0.01)  # on the loop's thread: eight requests wait for it in turns
        return classify(*reply)

    monkeypatch.setattr(wire, "classify", busy)
    with Echo(slowly) as echo:
        engine = engine_for(base_url=echo.base_url, connections=8)
        engine.run("m", jobs(100))

    seconds = sum(Record.decode(record).latency for record in store.records.values())
    assert seconds > 2 * sum(held)
    assert abs(seconds - engine.stats.late["m"] - sum(held)) < 0.4 * seconds


def test_run__of_no_jobs_gives_no_results(engine_for):
    assert engine_for().run("m", []) == []


def test_run__counts_in_stats(engine_for, jobs):
    engine = engine_for()

    results = engine.run("m", jobs(10))

    stats = engine.stats.snapshot()
    assert (stats["sent"], stats["replies"], stats["in_flight"]) == (10, 10, 0)
    assert stats["completion_tokens"] == sum(result.completion_tokens for result in results)
    assert stats["usage"] == {"m": (stats["prompt_tokens"], stats["completion_tokens"], 0)}
    assert stats["retries"] == stats["failures"] == {}


def test_run__counts_usage_that_no_endpoint_reports(engine_for, remote, jobs):
    remote.faults({"kind": "missing_usage"})
    engine = engine_for()

    engine.run("m", jobs(10))

    stats = engine.stats.snapshot()
    assert (stats["prompt_tokens"], stats["completion_tokens"]) == (0, 0)
    assert stats["usage"]["m"][0] > 10
    assert 10 < stats["usage"]["m"][1] < 10 * 64  # by the bytes of the texts, not as many as requests allow


def test_run__asks_equal_requests_in_flight_once(engine_for, remote, jobs):
    engine = engine_for()
    batch = jobs(6, latency=0.3) * 2

    with ThreadPoolExecutor(3) as pool:
        blocks = list(pool.map(lambda _: engine.run("m", batch), range(3)))

    assert blocks == [blocks[0]] * 3
    assert kinds(blocks[0]) == ["stored"] * 12
    assert remote.stats()["requests"] == 6


@pytest.mark.parametrize("connections", [1, 3])
def test_run__never_has_more_in_flight_than_connections(engine_for, remote, jobs, connections):
    engine = engine_for(connections=connections)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: engine.run("m", jobs(8, label=str(i), latency=0.01)), range(4)))

    assert remote.stats()["most_in_flight"] == connections


def test_run__shares_connections_with_other_workers(store, remote, jobs):
    names, endpoint = ("a", "b"), Endpoint("m", remote.base_url, connections=5)
    setting = Shared({"m": (endpoint.quota, 60.0)}, ["m"]).decide(names, names, 0.0)["m"]
    lent = [{"m": Slowdown("m", setting=setting, worker=name)} for name in names]
    engines = [Engine({"m": endpoint}, store, workers=2, lent=each) for each in lent]
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda i: engines[i].run("m", jobs(30, label=str(i), latency=0.02)), range(2)))
    finally:
        for engine in engines:
            engine.close()

    assert remote.stats()["most_in_flight"] == 5


def test_run__sends_headers_of_the_job_and_of_the_endpoint(store, jobs):
    with Echo() as echo:
        engine = Engine(
            {"m": Endpoint("m", echo.base_url, headers={"X-Team": "a", "user-agent": "mine"})}, store
        )
        try:
            engine.run("m", [type(job)(job.digest, job.body, {"x-one": "1"}) for job in jobs(1)])
        finally:
            engine.close()

    head, _, body = echo.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "post /v1/chat/completions http/1.1"
    assert {"x-team: a", "x-one: 1", "content-type: application/json", "user-agent: mine"} <= set(lines)
    assert sum(line.startswith("user-agent") for line in lines) == 1
    assert body == jobs(1)[0].body


@pytest.mark.parametrize(
    "kind", ["status", "reset", "reset_body", "cut_body", "hang", "bad_json", "empty_choices"]
)
def test_run__gets_over_a_fault_that_goes_away(engine_for, remote, store, jobs, kind):
    remote.faults({"kind": kind, "first": 1, "share": 0.5})
    batch = jobs(16)

    # Only what hangs may take longer than its request may.
    results = engine_for(timeout=2.0 if kind == "hang" else 60.0, connections=16).run("m", batch)

    assert kinds(results) == ["stored"] * 16
    assert {result.attempts for result in results} == {1, 2}
    assert set(store.records) == {job.digest for job in batch}


@pytest.mark.parametrize(("retry_after", "seconds"), [("0.4", 0.4), ("date+2", 0.9)])
def test_run__waits_as_long_as_the_endpoint_asks(engine_for, remote, jobs, retry_after, seconds):
    """A date is in whole seconds: it may be up to one second nearer than it was asked for."""
    remote.faults({"kind": "status", "status": 429, "retry_after": retry_after, "first": 1})
    start = time.monotonic()

    (result,) = engine_for().run("m", jobs(1))

    assert (result.kind, result.attempts) == ("stored", 2)
    assert time.monotonic() - start >= seconds


@pytest.mark.parametrize("status", [401, 404, 307])
def test_run__two_refusals_that_are_alike_end_it(engine_for, remote, jobs, status):
    remote.faults({"kind": "status", "status": status} if status != 307 else {"kind": "redirect_loop"})
    engine = engine_for(connections=1)

    results = engine.run("m", jobs(50))

    assert kinds(results) == ["failed"] * 50
    assert [result.attempts for result in results] == [1, 1] + [0] * 48
    assert {result.cause for result in results} == {"redirect" if status == 307 else f"http {status}"}
    assert remote.stats()["requests"] == 2
    assert kinds(engine.run("m", jobs(3, label="later"))) == ["failed"] * 3
    assert remote.stats()["requests"] == 2


def test_run__a_refusal_in_the_midst_of_answers_ends_nothing(engine_for, remote, jobs):
    remote.faults({"kind": "status", "status": 403, "share": 0.1})

    results = engine_for(connections=1).run("m", [*jobs(1, label="first"), *jobs(40)])

    assert results[0].kind == "stored"
    assert 1 <= kinds(results).count("failed") <= 15
    assert remote.stats()["requests"] == 41


def test_run__an_endpoint_that_nobody_listens_at_is_given_up(engine_for, jobs):
    engine = engine_for(base_url="http://127.0.0.1:9/v1")

    results = engine.run("m", jobs(5000))

    assert kinds(results) == ["failed"] * 5000
    assert {result.cause for result in results} == {"connect"}
    assert engine.stats.sent <= 4 * 3 * 2


def test_run__the_first_request_of_a_model_goes_alone(engine_for, remote, jobs):
    engine = engine_for(connections=8, timeout=60.0)

    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(engine.run, "m", [*jobs(1, "first", latency=2.0), *jobs(29, latency=0.4)])
        remote.wait_for(requests=1)
        assert remote.stats()["most_in_flight"] == 1
        assert kinds(block.result(PATIENCE)) == ["stored"] * 30
    assert remote.stats()["most_in_flight"] == 8


@pytest.mark.parametrize(
    ("rule", "requests"),
    [
        ({"kind": "status", "status": 401}, 3),
        ({"kind": "status", "status": 404}, 3),
        ({"kind": "wrong_type"}, 9),
    ],
)
def test_run__a_model_that_cannot_be_asked_ends_with_its_first_three(
    engine_for, remote, jobs, rule, requests
):
    remote.faults(rule)
    engine = engine_for(connections=16, retries=5)

    results = engine.run("m", jobs(200))

    assert {result.kind for result in results} == {"failed"}
    assert len({result.detail for result in results}) == 1
    assert remote.stats()["requests"] == requests


def test_run__an_address_where_nobody_listens_is_tried_three_times(engine_for, jobs):
    engine = engine_for(base_url="http://127.0.0.1:9/v1", connections=16, retries=5)

    results = engine.run("m", jobs(200))

    assert {(result.kind, result.cause) for result in results} == {("failed", "connect")}
    assert engine.stats.sent == 3


def test_run__a_pause_ends_when_the_endpoint_is_given_up(engine_for, remote, jobs):
    engine = engine_for(connections=16, retries=1)
    engine.run("m", jobs(1, label="first"))  # which goes alone
    remote.faults(
        {"kind": "status", "status": 503, "retry_after": "500", "times": 1}, {"kind": "status", "status": 401}
    )
    start = time.monotonic()

    results = engine.run("m", jobs(16))

    assert {result.cause for result in results} == {"http 401", "http 503"}
    assert time.monotonic() - start < PATIENCE  # of 500 s


def test_run__a_host_without_address_is_given_up(engine_for, jobs):
    results = engine_for(base_url="http://no-such-host.invalid/v1").run("m", jobs(20))

    assert {(result.kind, result.cause) for result in results} == {("failed", "dns")}


@pytest.mark.parametrize("url", ["http://[::bad/v1", "http://host:port/v1"])
def test_run__an_address_that_cannot_be_read_is_refused(engine_for, jobs, url):
    with pytest.raises(InferenceError, match=r"models\[m\]\.endpoint: .* is no valid URL"):
        engine_for(base_url=url).run("m", jobs(2))


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "http:///v1"])
def test_run__an_address_that_is_none_is_given_up(engine_for, jobs, url):
    results = engine_for(base_url=url).run("m", jobs(20))

    assert kinds(results) == ["failed"] * 20
    assert {result.cause for result in results} == {"address"}


def test_run__another_endpoints_queue_goes_on(remote, store, jobs):
    endpoints = {
        "bad": Endpoint("bad", "http://127.0.0.1:9/v1", retries=0),
        "m": Endpoint("m", remote.base_url),
    }
    engine = Engine(endpoints, store)
    try:
        assert kinds(engine.run("bad", jobs(20, label="bad"))) == ["failed"] * 20
        assert kinds(engine.run("m", jobs(20))) == ["stored"] * 20
    finally:
        engine.close()


@pytest.mark.parametrize("kind", ["gzip_bomb", "huge"])
def test_run__a_reply_without_end_needs_little_memory(engine_for, remote, jobs, kind):
    engine = engine_for(response_bytes=1_000_000, timeout=200.0)
    engine.run("m", jobs(1))
    remote.faults({"kind": kind, "megabytes": 100})
    peak = Peak()

    with peak:
        (result,) = engine.run("m", jobs(1, label="bomb"))

    assert result.cause == "too large"
    assert "1000000 bytes" in result.detail
    assert peak.grown < 60 << 20


def test_run__many_large_replies_at_once_need_little_memory(remote, jobs):
    endpoint = Endpoint("m", remote.base_url, connections=128, timeout=200.0)
    engine = Engine({"m": endpoint}, Discard())
    engine.run("m", jobs(150))
    remote.faults({"kind": "huge", "megabytes": 1})
    peak = Peak()

    with peak:
        results = engine.run("m", jobs(300, label="large", latency=1.5))
    engine.close()

    assert kinds(results) == ["stored"] * 300
    assert remote.stats()["most_in_flight"] == 128
    # One body for each connection at the very most, on a machine that is late with all of them; 300 if they were kept.
    assert peak.grown < 160 << 20


def test_run__a_server_that_restarts_costs_retries_only(store, jobs, wait_until):
    with Echo(delay=0.02) as first:
        port = first.port
        engine = Engine(
            {"m": Endpoint("m", first.base_url, connections=4, retries=6, backoff_base=0.1)}, store
        )
        with ThreadPoolExecutor(1) as pool:
            block = pool.submit(engine.run, "m", jobs(60))
            wait_until(lambda: len(store.records) > 8)
            first.stop()
            wait_until(lambda: engine.stats.retries)
            with Echo(port=port):
                results = block.result(PATIENCE)
        engine.close()

    assert kinds(results) == ["stored"] * 60
    assert sum(engine.stats.retries.values()) > 0
    assert set(engine.stats.retries) <= {"connect", "reset", "cut reply"}


def test_run__blocks_of_several_threads_go_on_at_once(engine_for, remote, jobs):
    engine = engine_for(connections=8)
    engine.run("m", jobs(1, label="first"))  # which goes alone

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(engine.run, "m", jobs(2, label="slow", latency=4.0))
        remote.wait_for(in_flight=2)
        quick = pool.submit(engine.run, "m", jobs(50, label="quick"))
        assert kinds(quick.result(PATIENCE)) == ["stored"] * 50
        assert not slow.done()
        assert kinds(slow.result(PATIENCE)) == ["stored"] * 2


class Discard:
    """A store that keeps nothing."""

    def put_all(self, records):  # the interface of stores
        pass

    def commit(self):
        pass


class Peak:
    """Growth of this process's memory inside a block, in bytes, sampled every few milliseconds."""

    def __enter__(self):
        gc.collect()
        self._base = self._top = self._rss()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _watch(self):
        while not self._over.wait(0.005):
            self._top = max(self._top, self._rss())

    @staticmethod
    def _rss():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def grown(self):
        return self._top - self._base


def test_connections__that_are_looked_for_grow_with_the_answers(engine_for, remote, jobs):
    engine = engine_for(connections=32, start=2)

    results = engine.run("m", jobs(400, latency=0.05))

    assert kinds(results) == ["stored"] * 400
    assert (
        4 < remote.stats()["most_in_flight"] <= 32
    )  # of 2 at first; how far it gets is the machine's matter


@pytest.mark.parametrize(("files", "connections"), [(1024, 256), (400, 100), (20, 5)])
def test_connections__that_are_looked_for_leave_files_to_others(monkeypatch, files, connections):
    monkeypatch.setattr("resource.getrlimit", lambda _: (files, files))
    endpoints = [
        Endpoint("m", "http://127.0.0.1:1/v1", connections=256, start=1),
        Endpoint("n", "http://127.0.0.1:2/v1", connections=600),
    ]
    engine = Engine({one.name: one for one in endpoints}, None)
    try:
        quotas = [engine._quota(one.account).connections for one in endpoints]
    finally:
        engine.close()

    assert quotas == [connections, 600]
