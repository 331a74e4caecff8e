"""Commands that tests of caches run in processes of their own."""

from __future__ import annotations

import hashlib
import os

from storage_workers import acknowledge, entry, wait_for

from evalcube.storage.cache.cache import open_cache

COUNT = 120


def race(url, env, name, step, start, result, other):
    """Put from the first on or, with step -1, from the last, then report who stored and what all hold.

    After a quarter it waits for the other one, which may be late on a busy machine.
    """
    os.environ.update(env)
    cache = open_cache(url)
    keys = [entry("race", i)[0] for i in range(COUNT)]
    items = [(key, f"{name} {i}".encode()) for i, key in enumerate(keys)][::step]
    acknowledge(f"{result}.ready", "ready")
    wait_for(start)
    stored = cache.put_many(items[:30])
    acknowledge(f"{result}.begun", "begun")
    wait_for(f"{other}.begun")
    for first in range(30, COUNT, 30):
        stored += cache.put_many(items[first : first + 30])
    values = cache.get_many(keys)
    seen = hashlib.sha256(b"".join(value or b"?" for value in values)).hexdigest()
    acknowledge(result, "".join("1" if new else "0" for new in stored[::step]) + f" {seen}")
    cache.close()


def put_then_wait(url, env, count, acks):
    """Put and commit one after another until killed."""
    os.environ.update(env)
    cache = open_cache(url)
    for number in range(count):
        cache.put(*entry("kill", number))
        cache.commit()
        acknowledge(acks, number)
