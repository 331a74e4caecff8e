"""What goes wrong with object stores and Redis servers: told in one message, without secrets."""

import http.server
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from cache_stores import S3_ENV, SECRET, RedisPlace, opened, redis_server

from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cache.remote import Stored
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.errors import DiskFullError, NotWritableError, StorageError, UnsupportedUrlError
from evalcube.storage.urls import absolute, object_prefix, redacted, redis_address
from tests.ports import free_port
from tests.storage.support import buckets
from tests.waiting import PATIENCE

KEY, OTHER = "ab" * 32, "cd" * 32


class CarelessS3(http.server.BaseHTTPRequestHandler):
    """Answers every request with one status, and ignores conditions."""

    protocol_version = "HTTP/1.1"
    status = 200

    def _reply(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        self.send_header("ETag", '"1"')
        body = b"<?xml version='1.0'?><DeleteResult></DeleteResult>" if self.command == "POST" else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self._reply
        raise AttributeError(name)

    def log_message(self, *_):
        pass


@pytest.fixture
def careless(monkeypatch):
    """A function that starts a store which answers with a status."""
    pytest.importorskip("obstore")
    servers = []

    def start(status):
        handler = type("Handler", (CarelessS3,), {"status": status})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        use_s3(monkeypatch, server.server_port)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def use_s3(monkeypatch, port):
    for name, value in {**S3_ENV, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}.items():
        monkeypatch.setenv(name, value)


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


def test_objects__refuses_a_store_that_ignores_put_if_absent(careless):
    careless(200)

    with pytest.raises(StorageError) as caught:
        open_cache("s3://bucket/x")

    assert "ignores put-if-absent" in told(caught.value)
    assert "s3://bucket/x" in str(caught.value)


def test_objects__refused_credentials(careless):
    careless(403)

    with pytest.raises(StorageError) as caught:
        open_cache("s3://bucket/x")

    assert "AWS_SECRET_ACCESS_KEY" in told(caught.value, kind=NotWritableError)


def test_objects__no_bucket_and_no_store(careless, monkeypatch):
    careless(404)
    with pytest.raises(StorageError) as caught:
        open_cache("s3://bucket/x")
    assert "no such bucket" in told(caught.value)

    monkeypatch.setattr("evalcube.storage.object_stores.RETRIES", {"max_retries": 1})
    use_s3(monkeypatch, free_port())
    with pytest.raises(StorageError) as caught:
        open_cache("s3://bucket/x")
    assert "Check the network" in told(caught.value)


def test_objects__are_all_there_later_than_a_time_that_nobody_knows(monkeypatch):
    buckets.in_memory(monkeypatch)
    cache = open_cache("s3://bucket/cache")
    cache.put_many([(KEY, b"1")])
    monkeypatch.setattr(Bucket, "stored_at", lambda *_: None)  # what was put to learn it is gone

    assert list(cache.entries(there_now=True)) == []
    assert [one.key for one in cache.entries()] == [KEY]


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
    with pytest.raises(StorageError, match="cannot open the cache: encoding with 'idna'"):
        open_cache("redis://a..b/0")


def test_redis__no_server(monkeypatch):
    pytest.importorskip("redis")
    monkeypatch.setattr("evalcube.storage.cache.redis._RETRIES", 1)

    with pytest.raises(StorageError) as caught:
        open_cache(f"redis://127.0.0.1:{free_port()}")

    assert "Check that the server runs" in told(caught.value)


def test_redis__a_server_that_restarts_within_a_minute_is_waited_for(redis_place):
    client = opened(redis_place)._backend._client

    retry = client.get_retry()

    assert sum(retry._backoff.compute(failures) for failures in range(1, retry.get_retries() + 1)) > 60
    assert client.connection_pool.make_connection().retry.get_retries() == retry.get_retries()


@pytest.mark.integration
def test_bucket__a_store_that_took_a_probe_is_waited_for_while_it_is_away(monkeypatch):
    pytest.importorskip("obstore")
    with buckets.proxied() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        cache = open_cache(f"{store.url}/away")
        store.settings(down=True)
        # Longer than a store is tried again that never answered.
        timer = threading.Timer(4.0, store.settings)
        timer.start()

        assert cache.put_many([(KEY, b"1")]) == [True]
        timer.join()


def test_redis__databases_are_apart(redis_place):
    first, second = opened(redis_place), open_cache(redis_place.url[:-1] + "1")
    first.put_many([(KEY, b"1")])

    assert second.get(KEY) is None
    assert second.put_many([(KEY, b"2")]) == [True]
    with pytest.raises(StorageError, match="DB index is out of range"):
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

    with pytest.raises(DiskFullError, match="the server's memory is full"):
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


@pytest.mark.parametrize(
    "url",
    [
        f"s3://AKIATEST:{SECRET}@bucket/x",
        f"s3://AKIATEST:{SECRET}/more@bucket/x",
        f"s3://{SECRET}@bucket",
        f"s3://bucket/x?secret={SECRET}",
        f"az://bucket/x#{SECRET}"[:12] + f"?sig={SECRET}",
        f"redis://:{SECRET}@host:6379/0",
        f"redis://user:{SECRET}@host",
        f"redis://:{SECRET}/x@host",
        f"rediss://host/0?password={SECRET}",
    ],
)
def test_open_cache__refuses_credentials_in_addresses_and_does_not_repeat_them(url):
    with pytest.raises(UnsupportedUrlError) as caught:
        open_cache(url)

    told(caught.value, kind=UnsupportedUrlError)
    assert SECRET not in redacted(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///x",
        "s3://b:80/x",
        "s3://b/x//y",
        "gs://b/../c",
        "redis://",
        "redis:///0",
        "redis://h:x/0",
    ],
)
def test_open_cache__malformed_addresses(url):
    with pytest.raises(UnsupportedUrlError, match="Write it like"):
        open_cache(url)
    for wrong in (
        "redis://h/-1",
        "redis://h/one",
        "redis://h:99999",
        "redis://h?password_env=a-b",
        "redis://[h/0",
    ):
        with pytest.raises(UnsupportedUrlError):
            redis_address(wrong)


def test_addresses__in_plain_form(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert object_prefix("gs://my-bucket/") == "gs://my-bucket"
    assert object_prefix("s3://b//a//") == "s3://b/a"
    assert str(redis_address("rediss://[::1]:7000/3")) == "rediss://[::1]:7000/3"
    assert absolute("s3://b/x") == "s3://b/x"
    assert absolute("x/y") == str(tmp_path / "x/y")
    assert re.fullmatch(r"redis://h:6379/0", str(redis_address("redis://h")))
