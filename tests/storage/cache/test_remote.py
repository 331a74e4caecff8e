"""Puts that wait in memory, and commits that fail: nothing is forgotten."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from cache_stores import SECRET, RedisPlace, opened, redis_server

from evalcube.storage.cache.remote import RemoteCache
from evalcube.storage.errors import StorageError
from tests.waiting import PATIENCE


@pytest.fixture
def redis_place(tmp_path, monkeypatch):
    with redis_server(tmp_path, "--databases", 2) as port:
        monkeypatch.setenv("REDIS_PASSWORD", SECRET)
        yield RedisPlace(port)


def test_put__never_waits_for_the_store(redis_place, workers):
    cache = opened(redis_place)
    redis_place.client.execute_command("CLIENT", "PAUSE", 3_600_000, "WRITE")

    for number in range(20):
        cache.put(*workers.entry("quick", number))
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(cache.commit)
        kept_waiting = not committing.done()
        redis_place.client.execute_command("CLIENT", "UNPAUSE")
        committing.result(PATIENCE)

    assert kept_waiting
    assert opened(redis_place, writable=False).stats().entries == 20


def test_commit__a_failure_forgets_nothing(redis_place, workers, monkeypatch):
    cache = opened(redis_place)
    create = cache._backend.create

    def fail(_):
        raise StorageError("cannot write", "there", "Run again.")

    monkeypatch.setattr(cache._backend, "create", fail)
    cache.put(*workers.entry("later", 0))
    with pytest.raises(StorageError, match="cannot write"):
        cache.commit()
    assert cache.put(*workers.entry("later", 0)) is False
    cache.put(*workers.entry("later", 1))
    monkeypatch.setattr(cache._backend, "create", create)

    cache.commit()

    assert opened(redis_place, writable=False).stats().entries == 2


class Emptied:
    """A backend whose first entry was there, and is gone when it is read."""

    address = "memory:"

    def __init__(self):
        self.calls = 0

    def create(self, items):
        self.calls += 1
        return [self.calls > 1] * len(items)

    def read(self, keys):
        return [None] * len(keys)


def test_put_many__stores_what_was_removed_meanwhile():
    backend = Emptied()

    assert RemoteCache(backend).put_many([("ab" * 32, b"x")]) == [True]

    assert backend.calls == 2
