"""What goes wrong with Redis servers: one message each, without secrets."""

import os

import pytest
from cache_stores import SECRET, RedisPlace, opened, redis_server

from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cache.remote import Stored
from evalcube.storage.errors import DiskFullError, NotWritableError, StorageError
from tests.ports import free_port

KEY, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def redis_place(tmp_path, monkeypatch):
    with redis_server(tmp_path, "--databases", 2) as port:
        monkeypatch.setenv("REDIS_PASSWORD", SECRET)
        yield RedisPlace(port)


def told(error, *, kind=StorageError):
    """The text of an error that a user sees."""
    text = str(error)
    assert type(error) is kind
    assert "\n" not in text
    assert SECRET not in text
    assert "AKIATEST" not in text
    return text


def test_redis__passwords(redis_place, monkeypatch):
    monkeypatch.setattr("evalcube.storage.cache.redis._RETRIES", 0)
    url = f"{redis_place.url}?password_env=TEAM_CACHE"
    for value, where in (("wrong", redis_place.url), (None, redis_place.url), (None, url)):
        monkeypatch.delenv("REDIS_PASSWORD")
        if value:
            monkeypatch.setenv("REDIS_PASSWORD", value)
        with pytest.raises(NotWritableError, match="refuses the password") as caught:
            open_cache(where)
        assert "wrong" not in told(caught.value, kind=NotWritableError)
        assert ("TEAM_CACHE" if where is url else "REDIS_PASSWORD") in caught.value.remedy
        monkeypatch.setenv("REDIS_PASSWORD", SECRET)
    monkeypatch.delenv("REDIS_PASSWORD")
    monkeypatch.setenv("TEAM_CACHE", SECRET)

    assert open_cache(url).put_many([(KEY, b"x")]) == [True]


def test_redis__a_host_that_is_none():
    pytest.importorskip("redis")
    with pytest.raises(StorageError, match="'idna'"):
        open_cache("redis://a..b/0")


def test_redis__no_server(monkeypatch):
    pytest.importorskip("redis")
    monkeypatch.setattr("evalcube.storage.cache.redis._RETRIES", 1)

    with pytest.raises(StorageError) as caught:
        open_cache(f"redis://127.0.0.1:{free_port()}")

    assert "server runs" in told(caught.value)


def test_redis__a_server_that_restarts_within_a_minute_is_waited_for(redis_place):
    client = opened(redis_place)._backend._client

    retry = client.get_retry()

    assert sum(retry._backoff.compute(failures) for failures in range(1, retry.get_retries() + 1)) > 60
    assert client.connection_pool.make_connection().retry.get_retries() == retry.get_retries()


def test_redis__databases_are_apart(redis_place):
    first, second = opened(redis_place), open_cache(redis_place.url[:-1] + "1")
    first.put_many([(KEY, b"1")])

    assert second.get(KEY) is None
    assert second.put_many([(KEY, b"2")]) == [True]
    with pytest.raises(StorageError, match="DB index"):
        open_cache(redis_place.url[:-1] + "7")


def test_redis__a_full_server_refuses_and_what_was_acknowledged_stays(redis_place):
    redis_place.client.config_set("maxmemory", "6mb")
    cache = opened(redis_place)
    acknowledged = {}

    def fill():
        for number in range(200):
            key, value = f"{number:064x}", os.urandom(65536)
            cache.put(key, value)
            cache.commit()
            acknowledged[key] = value

    with pytest.raises(DiskFullError):
        fill()

    assert acknowledged
    assert cache._backend.read([f"{len(acknowledged):064x}"]) == [None]
    redis_place.client.config_set("maxmemory", "0")
    cache.commit()
    assert cache.get_many(list(acknowledged)) == list(acknowledged.values())
    assert cache.get(f"{len(acknowledged):064x}") is not None


def test_redis__refuses_a_server_that_evicts(redis_place):
    redis_place.client.config_set("maxmemory", "50mb")
    redis_place.client.config_set("maxmemory-policy", "allkeys-lru")

    with pytest.raises(StorageError, match=r"evicts entries.*allkeys-lru.*noeviction"):
        opened(redis_place)
    opened(redis_place, writable=False).close()


def test_redis__what_is_no_string_is_damaged_and_healed(redis_place):
    redis_place.client.rpush(f"evalcube:entry:{KEY}", "a", "b")
    cache = opened(redis_place)

    assert [info.key for info in cache.entries()] == [KEY]
    assert cache.get(KEY) is None
    assert cache.damaged_count == 1
    assert cache.put_many([(KEY, b"new")]) == [True]
    assert cache.get(KEY) == b"new"


def test_redis__reads_no_more_than_an_entry_has_where_another_one_grows_it(redis_place, monkeypatch):
    redis_place.overwrite(KEY, bytes(1000))
    backend = opened(redis_place, writable=False)._backend
    monkeypatch.setattr("evalcube.storage.cache.redis.MOST_BYTES", 10)
    monkeypatch.setattr(backend, "_sizes", lambda keys: [1] * len(keys))

    assert backend.read([KEY, OTHER]) == [Stored(None, hash(bytes(11))), None]
