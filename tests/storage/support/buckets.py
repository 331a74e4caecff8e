"""Buckets for tests: obstore's store in memory, or the S3 server of moto or LocalStack, behind the same addresses."""

import json
import os
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from obstore.store import MemoryStore

from evalcube.storage import object_stores
from evalcube.storage.cube.bucket import conditions
from tests.ports import free_port
from tests.storage.support.cache_stores import s3_server, server
from tests.storage.support.localstack import localstack_server
from tests.waiting import PATIENCE


class MemoryStores(dict):
    """Stores by address; what is below an address that was asked for before is in the same store."""

    def __missing__(self, address):
        self[address] = MemoryStore()
        return self[address]


def in_memory(monkeypatch):
    """Have each bucket of this process be in its memory; returns the stores by address."""
    stores = MemoryStores()
    monkeypatch.setattr(object_stores, "_cached_connection", lambda address, *_: stores[address])
    monkeypatch.setattr(conditions, "_TRUSTED", set())
    monkeypatch.setattr(object_stores, "_ANSWERED", set())
    return stores


NAMED = "EVALCUBE_TEST_BUCKET"
"""Variable with the address of a prefix on a real store, whose credentials are in the environment, for use by hand."""


SERVERS = {"moto": s3_server, "localstack": localstack_server}
"""S3 servers by name: context managers that yield the environment of a client, with a bucket named `bucket`."""


@contextmanager
def served(name="moto"):
    """Yields the address of a bucket and the environment that leads there: moto's, or the one that `NAMED` names."""
    if name == "moto" and os.environ.get(NAMED):
        yield os.environ[NAMED], {}
        return
    with SERVERS[name]() as environment:
        yield "s3://bucket", environment


@dataclass
class ProxiedStore:
    """A store behind a proxy that does to requests what it is told to."""

    url: str
    """Address of the bucket."""
    environment: dict
    """Leads through the proxy."""
    proxy: str

    def settings(self, **changes):
        """Have the proxy do this from now on; see `tests.storage.support.store_proxy.SETTINGS`."""
        self._ask("settings", changes)

    def counts(self):
        """Requests by method, and what became of them, since the last `reset`."""
        return self._ask("counts", {})

    def release(self):
        """Let requests through that were held."""
        self._ask("release", {})

    def reset(self):
        """Count from 0 again."""
        self._ask("reset", {})

    def _ask(self, what, document):
        request = urllib.request.Request(
            f"{self.proxy}/__{what}", json.dumps(document).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.load(reply)


@contextmanager
def proxied(name="moto"):
    """Yields a server behind a proxy."""
    with SERVERS[name]() as environment:
        port = free_port()
        program = str(Path(__file__).with_name("store_proxy.py"))
        with server([sys.executable, program, str(port), environment["AWS_ENDPOINT_URL"]], port):
            proxy = f"http://127.0.0.1:{port}"
            yield ProxiedStore("s3://bucket", {**environment, "AWS_ENDPOINT_URL": proxy}, proxy)
