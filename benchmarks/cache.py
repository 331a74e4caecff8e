"""What an entry of a response cache in a directory costs to put, get, miss, seal and open, in processor time.

Beside it stand the two ways there are: a file for each entry, and one file that entries are appended to.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from evalcube.storage.cache.cache import DirectoryCache

WORDS = ["alpha", "beta", "gamma", "delta"]


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(name: str, count: int, work: Callable[[], object]) -> None:
    """Print processor time and time for each of `count` operations."""
    before, began = cpu(), time.perf_counter()
    work()
    used, passed = cpu() - before, time.perf_counter() - began
    print(f"{name:34} {used / count * 1e6:8.1f} us CPU {passed / count * 1e6:8.1f} us")


def bare(folder: Path, keys: list[str], body: bytes) -> None:
    """What the file system itself takes."""
    for number in range(256):
        (folder / f"{number:02x}").mkdir(parents=True)

    def create() -> None:
        for key in keys:
            with (folder / key[:2] / key[2:]).open("xb", buffering=0) as file:
                file.write(body)

    def append() -> None:
        descriptor = os.open(folder / "all", os.O_WRONLY | os.O_CREAT)
        for _ in keys:
            os.write(descriptor, body)
        os.close(descriptor)

    measure("bare: a file each", len(keys), create)
    measure("bare: appended to one file", len(keys), append)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the cache is made, on the file system in question")
    parser.add_argument("--entries", type=int, default=100_000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    rng, count = random.Random(0), options.entries
    body = json.dumps({"content": " ".join(rng.choices(WORDS, k=200))}).encode()
    keys = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]
    some, absent = keys[:20_000], [key[::-1] for key in keys[:20_000]]
    cache = DirectoryCache(folder / "cache")

    def put() -> None:
        for number, key in enumerate(keys):
            cache.put(key, body + key.encode())
            if number % 100 == 99:
                cache.commit()

    def blocks(wanted: list[str]) -> None:
        for at in range(0, len(wanted), 64):
            cache.get_many(wanted[at : at + 64])

    try:
        measure("put, a commit every 100", count, put)
        measure("close, per entry", count, cache.close)
        measure("open, once", 1, lambda: DirectoryCache(folder / "cache", writable=False))
        cache = DirectoryCache(folder / "cache")
        measure("get", len(some), lambda: [cache.get(key) for key in some])
        measure("get_many of 64", len(some), lambda: blocks(some))
        measure("get, absent", len(some), lambda: [cache.get(key) for key in absent])
        measure("get_many of 64, absent", len(some), lambda: blocks(absent))
        measure("stats, per entry", count, cache.stats)
        bare(folder / "bare", some, body[:400])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
