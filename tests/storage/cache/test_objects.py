"""What goes wrong with object stores: one message each, without secrets."""

import http.server
import threading

import pytest
from cache_stores import S3_ENV, SECRET

from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.errors import NotWritableError, StorageError
from tests.ports import free_port
from tests.storage.support import buckets

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
