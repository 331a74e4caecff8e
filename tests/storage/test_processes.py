"""Which process writes a file, and whether it is gone: sure only where the machine itself says so."""

import fcntl
import json
import os
from contextlib import ExitStack
from dataclasses import replace

import pytest

from evalcube.storage import processes
from evalcube.storage.processes import (
    FOREIGN_SECONDS,
    Life,
    Owner,
    ProcessIdentity,
    heading,
    is_abandoned,
    is_before_restart,
    life_of,
    lock,
    machine_id,
    read_heading,
    same_kernel,
    this_owner,
    this_process,
)

OUTSIDE = "pid:[4026531836]"
MAGIC = b"ABCD"
GONE = 2**22 + 1
"""An id that no process of Linux can have."""


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """Makes a machine: its boot, its namespace of process ids, and the processes that it has."""
    folder = tmp_path / "proc"
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "self/ns").mkdir(parents=True)
    monkeypatch.setattr(processes, "_PROC", folder)
    monkeypatch.setattr(processes.socket, "gethostname", lambda: "here")
    monkeypatch.setattr(processes, "machine_id", lambda: "m-1")

    def make(boot="b-1", namespace=OUTSIDE, **states):
        (folder / "sys/kernel/random/boot_id").write_text(f"{boot}\n")
        link = folder / "self/ns/pid"
        link.unlink(missing_ok=True)
        link.symlink_to(namespace)
        for pid, (state, start) in {str(os.getpid()): ("R", 77), **states}.items():
            (folder / pid).mkdir(exist_ok=True)
            fields = [state, *["0"] * 18, str(start), "0"]
            (folder / pid / "stat").write_text(f"{pid} (a) b (c)) {' '.join(fields)}")

    make()
    return make


def process(**fields):
    return replace(ProcessIdentity("here", f"b-1/{OUTSIDE}", 5, 50), **fields)


def test_this_process__is_told_by_its_machine(proc):
    assert this_process() == ProcessIdentity("here", f"b-1/{OUTSIDE}", os.getpid(), 77)
    proc(boot="b-2", namespace="pid:[9]")
    assert this_process().boot == "b-2/pid:[9]"


def test_this_process__without_proc_is_its_id(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_PROC", tmp_path)

    assert (this_process().boot, this_process().start, this_process().pid) == ("", 0, os.getpid())
    assert life_of(this_process()) is Life.UNKNOWN  # its id may have come again


def test_machine_id__is_empty_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "Path", lambda _: tmp_path / "id")

    assert machine_id() == ""
    (tmp_path / "id").write_text("abc\n")
    assert machine_id() == "abc"
    (tmp_path / "id").write_bytes(b"\xff")
    assert machine_id() == ""


@pytest.mark.parametrize(
    ("state", "start", "life"),
    [
        ("R", 50, Life.RUNNING),
        ("S", 50, Life.RUNNING),
        ("T", 50, Life.STOPPED),
        ("t", 50, Life.STOPPED),
        ("Z", 50, Life.ENDED),
        ("X", 50, Life.ENDED),
        ("R", 51, Life.ENDED),
        ("T", 51, Life.ENDED),
    ],
)
def test_life_of__is_that_of_the_id_and_the_start(proc, state, start, life):
    proc(**{"5": (state, start)})

    assert life_of(process()) is life


def test_life_of__of_another_machine_boot_or_container_is_unknown(proc):
    proc(**{"5": ("Z", 50)})

    for fields in ({"host": "there"}, {"boot": f"b-2/{OUTSIDE}"}, {"boot": "b-1/pid:[9]"}, {"boot": ""}):
        assert life_of(process(**fields)) is Life.UNKNOWN


def test_life_of__where_proc_hides_it_asks_the_system(proc, monkeypatch):
    assert proc
    assert life_of(process(pid=GONE)) is Life.ENDED
    assert life_of(process(pid=os.getppid())) is Life.UNKNOWN
    assert life_of(process(pid=os.getpid(), start=0)) is Life.UNKNOWN

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(processes.os, "kill", refuse)
    assert life_of(process(pid=GONE)) is Life.UNKNOWN


def test_same_kernel__whatever_the_container(proc):
    assert proc
    assert same_kernel(process(), process(boot="b-1/pid:[9]"))
    assert not same_kernel(process(), process(boot=f"b-2/{OUTSIDE}"))


@pytest.mark.parametrize(
    ("fields", "machine", "before"),
    [
        ({}, "m-1", False),
        ({"boot": f"b-0/{OUTSIDE}"}, "m-1", True),
        ({"boot": f"b-0/{OUTSIDE}"}, "m-2", False),
        ({"boot": f"b-0/{OUTSIDE}"}, "", False),
        ({"boot": f"b-0/{OUTSIDE}", "host": "there"}, "m-1", False),
        ({"boot": "b-0/pid:[9]"}, "m-1", False),
        ({"boot": ""}, "m-1", False),
    ],
)
def test_is_before_restart__only_of_this_machine_and_outside_of_containers(proc, fields, machine, before):
    assert is_before_restart(process(**fields), machine) == before
    proc(namespace="pid:[9]")
    assert not is_before_restart(process(**fields), machine)


@pytest.fixture
def made(tmp_path):
    """Makes files that begin with a heading: their descriptors, one of this process and another one."""
    with ExitStack() as stack:

        def make(owner, data=None):
            path = tmp_path / f"file-{len(list(tmp_path.iterdir()))}"
            path.write_bytes(heading(MAGIC, owner) + b"more" if data is None else data)
            descriptors = [os.open(path, os.O_RDWR) for _ in range(2)]
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)
            os.utime(path, (0, 1000.0))
            return descriptors

        yield make


OWNER = Owner(process(), "m-1")


def test_read_heading__reads_back_what_was_written(made):
    (descriptor, _) = made(OWNER)

    assert read_heading(descriptor, MAGIC) == (OWNER, len(heading(MAGIC, OWNER)))
    assert read_heading(descriptor, b"ABCE") is None
    assert read_heading(made(this_owner())[0], MAGIC)[0] == this_owner()
    long = replace(OWNER, machine="m" * 65_000)
    assert read_heading(made(long)[0], MAGIC)[0] == long


def test_read_heading__of_a_torn_or_damaged_one_is_none(made):
    whole = heading(MAGIC, OWNER)

    for end in range(len(whole)):
        assert read_heading(made(None, whole[:end])[0], MAGIC) is None
    for place in range(0, len(whole), 5):
        changed = whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :]
        assert read_heading(made(None, changed)[0], MAGIC) is None
    for text in (b"[]", b"{}", b'{"machine": "m"}', b"{", json.dumps({"machine": "m", "odd": 1}).encode()):
        packed = processes._HEADING.pack(MAGIC, len(text), processes.zlib.crc32(text)) + text
        assert read_heading(made(None, packed)[0], MAGIC) is None


@pytest.mark.parametrize(
    ("state", "abandoned"), [("R", False), ("T", False), ("Z", True)], ids=["running", "stopped", "ended"]
)
def test_is_abandoned__if_its_process_has_ended(proc, made, state, abandoned):
    proc(**{"5": (state, 50)})

    assert is_abandoned(made(OWNER)[0], MAGIC) == abandoned


def test_is_abandoned__never_while_somebody_holds_its_lock(proc, made):
    proc(**{"5": ("Z", 50)})
    reader, writer = made(OWNER)
    lock(writer)

    assert not is_abandoned(reader, MAGIC)
    assert not is_abandoned(reader, MAGIC, take=True)
    fcntl.flock(writer, fcntl.LOCK_UN)
    assert is_abandoned(reader, MAGIC)
    fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it was given back
    fcntl.flock(writer, fcntl.LOCK_UN)
    assert is_abandoned(reader, MAGIC, take=True)
    with pytest.raises(BlockingIOError):
        fcntl.flock(writer, fcntl.LOCK_SH | fcntl.LOCK_NB)  # it was taken


def test_is_abandoned__asks_for_no_lock_of_a_process_that_runs(proc, made, monkeypatch):
    proc(**{"5": ("R", 50)})
    asked = []
    monkeypatch.setattr(processes.fcntl, "flock", lambda *arguments: asked.append(arguments))

    assert not is_abandoned(made(OWNER)[0], MAGIC)
    assert asked == []


def test_is_abandoned__where_there_are_no_locks_the_heading_alone_is_sure(proc, made, monkeypatch):
    proc(**{"5": ("Z", 50)})

    def refuse(*_):
        raise OSError("no locks here")

    monkeypatch.setattr(processes.fcntl, "flock", refuse)
    (descriptor, _) = made(OWNER)
    lock(descriptor)
    container = made(replace(OWNER, process=process(boot="b-1/pid:[9]")))[0]

    assert is_abandoned(descriptor, MAGIC)
    assert not is_abandoned(container, MAGIC)


def test_is_abandoned__of_another_container_by_its_lock(proc, made):
    proc(**{"5": ("Z", 50)})
    reader, writer = made(replace(OWNER, process=process(boot="b-1/pid:[9]")))

    assert is_abandoned(reader, MAGIC)
    lock(writer)
    assert not is_abandoned(reader, MAGIC)
    assert not is_abandoned(reader, MAGIC, clock=lambda: 1e12)


def test_is_abandoned__of_this_machine_before_it_started_anew(proc, made):
    assert proc
    old = process(boot="b-0/pid:[9]")

    assert is_abandoned(made(Owner(old, "m-1"))[0], MAGIC)
    for owner in (
        Owner(old, "m-2"),
        Owner(replace(old, host="there"), "m-1"),
        Owner(replace(old, boot=""), "m-1"),
    ):
        assert not is_abandoned(made(owner)[0], MAGIC)


@pytest.mark.parametrize(
    ("data", "seconds"), [(None, FOREIGN_SECONDS), (b"", 3600.0), (b"torn heading", 3600.0)]
)
def test_is_abandoned__of_another_machine_only_by_a_clock_after_long(proc, made, data, seconds):
    assert proc
    (descriptor, _) = made(Owner(process(host="there", boot="b-9/x"), "m-9"), data)

    assert not is_abandoned(descriptor, MAGIC)
    assert not is_abandoned(descriptor, MAGIC, clock=lambda: 1000.0 + seconds)
    assert is_abandoned(descriptor, MAGIC, clock=lambda: 1001.0 + seconds)
