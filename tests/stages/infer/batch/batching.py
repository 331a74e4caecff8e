"""Engines that send in batches, what they keep in memory, and how the simulator's batches go."""

import json
import threading
from contextlib import contextmanager

from evalcube.stages.infer.endpoint import Batching, Endpoint
from evalcube.stages.infer.engine import Engine
from tests.stages.infer.conftest import kinds, make_jobs, wait_until

DOORS = {"openai": ("chat", "/v1"), "anthropic": ("messages", "/v1"), "gemini": ("chat", "/v1beta/openai")}


class Book:
    """Notes in memory, beside a store in memory."""

    def __init__(self, store):
        self.store = store
        self.notes = {}
        self.problem = None

    def tokens(self):
        return list(self.notes)

    def read(self, token):
        return self.notes.get(token)

    def write(self, token, data):
        if self.problem is not None:
            raise self.problem
        self.notes[token] = data

    def remove(self, token):
        self.notes.pop(token, None)

    def records(self, digests):
        return [self.store.records.get(digest) for digest in digests]

    def contents(self):
        return [json.loads(data) for data in self.notes.values()]


def go(remote, **settings):
    """Have the simulator's batches go so."""
    answer = remote._send("POST", "/control/batches", json.dumps({"seconds": 0.05, **settings}).encode())
    assert "error" not in answer, answer


@contextmanager
def batching(remote, store, book=None, *, terms=None, **settings):
    """An engine with a model ``m`` whose requests go in batches."""
    settings = {"retries": 2, "backoff_base": 0.01, "timeout": 60.0, "base_url": remote.base_url, **settings}
    terms = {"poll": 0.02, "patience": 0.05, **(terms or {})}
    endpoint = Endpoint("m", batch=Batching(**terms), **settings)
    engine = Engine({"m": endpoint}, store, batches=book or Book(store))
    try:
        yield engine
    finally:
        engine.close()


def run_behind(engine, jobs):
    """Start a run on a thread: (thread, list that gets its results)."""
    found = []
    thread = threading.Thread(target=lambda: found.extend(engine.run("m", jobs)))
    thread.start()
    return thread, found


def created(remote):
    return remote.stats()["batches"]["batches"]


def in_batch(remote, store, book, jobs, *, api="chat", base_url=None, **settings):
    """Send jobs in a batch, and close the engine while it is at the endpoint."""
    before = created(remote)
    go(remote, **{"seconds": 60, **settings})
    with batching(remote, store, book, api=api, base_url=base_url or remote.base_url) as engine:
        thread, found = run_behind(engine, jobs)
        wait_until(lambda: created(remote) > before and all(note["batch"] for note in book.contents()))
    thread.join()
    assert kinds(found) == ["skipped"] * len(jobs)
    go(remote)


def jobs_for(door, count, label=""):
    return make_jobs(count, label, api=door["api"])
