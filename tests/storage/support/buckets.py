"""Buckets for tests: obstore's store in memory, or moto's S3 server, behind the same addresses."""

import os
from contextlib import contextmanager

from obstore.store import MemoryStore

from storage import object_stores
from storage.cube.bucket import conditions
from tests.storage.support.cache_stores import s3_server


class MemoryStores(dict):
    """Stores by address; what is below an address that was asked for before is in the same store."""

    def __missing__(self, address):
        self[address] = MemoryStore()
        return self[address]


def in_memory(monkeypatch):
    """Have each bucket of this process be in its memory; returns the stores by address."""
    stores = MemoryStores()
    monkeypatch.setattr(object_stores, "_connected", lambda address, *_: stores[address])
    monkeypatch.setattr(conditions, "_TRUSTED", set())
    return stores


NAMED = "EVALCUBE_TEST_BUCKET"
"""Variable with the address of a prefix on a real store, whose credentials are in the environment, for use by hand."""


@contextmanager
def served():
    """Yields the address of a bucket and the environment that leads there: moto's, or the one that `NAMED` names."""
    if os.environ.get(NAMED):
        yield os.environ[NAMED], {}
        return
    with s3_server() as environment:
        yield "s3://bucket", environment
