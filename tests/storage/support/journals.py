"""What tests of the cache's journal do to its files."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from storage.journal import Owner, _heading, _owner, _records
from storage.processes import machine_id, this_process


def logs(path):
    return sorted((Path(path) / "journal").glob("*.log"))


def file_of(path, key):
    return Path(path) / key[:2] / key[2:]


def has_heading(log):
    with log.open("rb") as file:
        return _owner(file) is not None


def recorded(log):
    with log.open("rb") as file:
        return [key for key, _ in _records(file)]


def process(**changes):
    return replace(this_process(), **changes)


EARLIER_BOOT = Owner(process(boot="0123-earlier/pid:[1]"), machine_id())
OTHER_HOST = Owner(process(boot="0123-other/pid:[1]", host="elsewhere"), machine_id())
OTHER_MACHINE = Owner(process(boot="0123-other/pid:[1]"), "another id")
OTHER_CONTAINER = Owner(process(boot=process().boot.partition("/")[0] + "/pid:[1]"), machine_id())
ENDED = Owner(process(start=1), machine_id())


def give_to(log, owner):
    """Make a journal one of another process."""
    with log.open("rb") as file:
        _owner(file)
        records = file.read()
    log.write_bytes(_heading(owner) + records)
    return log


def copied(cache, to, owner=EARLIER_BOOT):
    """The directory as another process has left it."""
    shutil.copytree(cache.path, to)
    for log in logs(to):
        give_to(log, owner)
    return to


def cut_power(path, keys, rng):
    """Do to entry files what a power cut may do to those that were not synced."""
    for key in keys:
        file = file_of(path, key)
        kind, size = rng.integers(5), file.stat().st_size
        if kind == 0:
            file.unlink()
        elif kind == 1:
            file.write_bytes(b"")
        elif kind == 2:
            os.truncate(file, int(rng.integers(size)))
        elif kind == 3:
            whole = file.read_bytes()
            cut = int(rng.integers(size))
            file.write_bytes(whole[:cut] + bytes(size - cut))
