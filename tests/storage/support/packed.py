"""What tests of caches do to packs, and how they read them without the code under test's indexes."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evalcube.storage.cache.packs import (
    HEADER_BYTES,
    PACK_MAGIC,
    OpenFile,
    first_record,
    make_record,
    salt_of,
    walk,
)
from evalcube.storage.processes import Owner, heading, machine_id, this_owner, this_process

KEY, OTHER = "ab" * 32, "cd" * 32
ANY_TOKEN = "0" * 15 + "1" + "ab" * 8


def packs(path):
    return sorted((Path(path) / "packs").glob("*.pack"))


def indexes(path):
    return sorted((Path(path) / "packs").glob("*.idx"))


def unindexed(path):
    return [pack for pack in packs(path) if not pack.with_suffix(".idx").exists()]


def records(pack):
    """All records of a file, in their order."""
    handle = OpenFile(pack)
    size = os.fstat(handle.descriptor).st_size
    return list(
        walk(handle.descriptor, first_record(handle.descriptor), size, salt_of(pack.stem), resume=True)
    )


def recorded(pack):
    return [record.key.hex() for record in records(pack)]


def find(path, key):
    """Pack and record of a key, the first one."""
    return next((pack, record) for pack in packs(path) for record in records(pack) if record.key.hex() == key)


def raw(path, key):
    """An entry's content as it stands."""
    pack, record = find(path, key)
    start = record.offset + HEADER_BYTES
    return pack.read_bytes()[start : start + record.length]


def overwrite(path, key, content):
    """Damage an entry in its place; zeros follow a content that is shorter."""
    pack, record = find(path, key)
    if len(content) > record.length:
        pytest.skip("a record of a pack cannot grow")
    with pack.open("r+b") as file:
        file.seek(record.offset + HEADER_BYTES)
        file.write(content.ljust(record.length, b"\0"))


def keys(path):
    return sorted({key for pack in packs(path) for key in recorded(pack)})


def make_pack(path, entries, owner=None, token=ANY_TOKEN):
    """A pack of contents by key that some process has left."""
    pack = Path(path) / "packs" / f"{token}.pack"
    body = b"".join(make_record(bytes.fromhex(key), content, 1.0, salt_of(token)) for key, content in entries)
    pack.write_bytes(heading(PACK_MAGIC, owner or EARLIER_BOOT) + body)
    return pack


def process(**changes):
    return replace(this_process(), **changes)


EARLIER_BOOT = Owner(process(boot="0123-earlier/pid:[1]"), machine_id())
OTHER_HOST = Owner(process(boot="0123-other/pid:[1]", host="elsewhere"), machine_id())
OTHER_MACHINE = Owner(process(boot="0123-other/pid:[1]"), "another id")
OTHER_CONTAINER = Owner(process(boot=process().boot.partition("/")[0] + "/pid:[1]"), machine_id())
ENDED = Owner(process(start=1), machine_id())
LIVING = this_owner()


def give_to(pack, owner):
    """Make a pack without an index one of another process."""
    handle = OpenFile(pack)
    body = pack.read_bytes()[first_record(handle.descriptor) :]
    pack.write_bytes(heading(PACK_MAGIC, owner) + body)
    return pack


def copied(cache, to, owner=EARLIER_BOOT):
    """The directory as another process has left it."""
    shutil.copytree(cache.path, to)
    for pack in unindexed(to):
        give_to(pack, owner)
    return to


def tree(path):
    return {file: file.read_bytes() for file in sorted(Path(path).rglob("*")) if file.is_file()}
