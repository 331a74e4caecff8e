"""What every space promises; a further implementation joins by its name in `SPACES`."""

import errno
import os
import pickle
import secrets
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evalcube.storage.cube.bucket.objects import Bucket
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.space import LeaseState, LogConflictError, When
from evalcube.storage.errors import CubeExistsError
from tests.storage.support import buckets
from tests.storage.support.memory_space import MemorySpace

SPACES = {
    "directory": Directory,
    "memory": lambda path: MemorySpace(str(path)),
    "bucket": lambda path: Bucket(f"s3://bucket{path}"),
}
SERVERS = {"moto": pytest.mark.cluster, "localstack": pytest.mark.integration}
KINDS = (*SPACES, *(pytest.param(name, marks=mark) for name, mark in SERVERS.items()))


@pytest.fixture(scope="module")
def moto():
    """The address of a bucket on a server, and the environment that leads there."""
    with buckets.served("moto") as found:
        yield found


@pytest.fixture(scope="module")
def localstack():
    """The same on a server of another make."""
    with buckets.served("localstack") as found:
        yield found


@pytest.fixture(params=KINDS)
def made(request, monkeypatch):
    """Makes a space of a kind for a path."""
    if request.param not in SERVERS:
        buckets.in_memory(monkeypatch)
        return SPACES[request.param]
    address, environment = request.getfixturevalue(request.param)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return lambda path: Bucket(f"{address}/{secrets.token_hex(4)}{path}")


@pytest.fixture
def space(made, tmp_path):
    return made(tmp_path)


class Promises(RuleBasedStateMachine):
    """A space beside a dictionary that does the same."""

    make = None

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.space = type(self).make(Path(self.folder.name))
        self.objects = {}
        self.seen = []
        self.contents_of = {}

    def teardown(self):
        self.folder.cleanup()

    keys = st.sampled_from(["a", "b/c", "b/d", "b/e/f", "bb"])
    contents = st.binary(max_size=3)

    @rule(key=keys, data=contents, durable=st.booleans())
    def put(self, key, data, durable):
        self.stored(key, data, self.space.put(key, data, durable=durable))

    @rule(key=keys, data=contents)
    def put_if_absent(self, key, data):
        version = self.space.put(key, data, when=When.ABSENT)
        assert (version is None) == (key in self.objects)
        self.stored(key, data, version)

    @precondition(lambda self: self.seen)
    @rule(data=contents, drawn=st.data())
    def put_if_unchanged(self, data, drawn):
        key, seen = drawn.draw(st.sampled_from(self.seen[-6:]))
        unchanged = self.objects.get(key, (None, None))[1] == seen
        version = self.space.put(key, data, when=seen)
        assert (version is not None) == unchanged
        self.stored(key, data, version)

    @rule(key=keys, durable=st.booleans())
    def delete(self, key, durable):
        self.space.delete(key, durable=durable)
        self.objects.pop(key, None)

    @rule(prefix=st.sampled_from(["b/", "b/e/", "none/"]))
    def clear(self, prefix):
        self.space.clear(prefix)
        self.objects = {key: value for key, value in self.objects.items() if not key.startswith(prefix)}

    def stored(self, key, data, version):
        if version is None:
            return
        # No content ever has the version of another one that was there before.
        assert self.contents_of.setdefault((key, version), data) == data
        self.seen.append((key, version))
        self.objects[key] = (data, version, len(data))

    @invariant()
    def holds_the_same(self):
        assert sorted(self.space.list()) == sorted(self.objects)
        assert sorted(self.space.list("b/")) == sorted(key for key in self.objects if key.startswith("b/"))
        for key in ("a", "b/c", "b/d", "b/e/f", "bb"):
            assert self.space.get(key) == self.objects.get(key)
            assert self.space.version(key) == self.objects.get(key, (None, None))[1]


@pytest.mark.long
def test_space__is_a_dictionary_with_conditions(made):
    machine = type("Machine", (Promises,), {"make": staticmethod(made)}).TestCase
    examples = 15 if made in SPACES.values() else 2  # each step is some requests
    machine.settings = settings(max_examples=examples, stateful_step_count=25, deadline=None)
    machine().runTest()


def test_get__what_was_put_last_with_its_version(space):
    assert (space.get("a/b.json"), space.version("a/b.json")) == (None, None)

    first = space.put("a/b.json", b"one")
    second = space.put("a/b.json", b"other", durable=False)

    assert first != second
    assert space.get("a/b.json") == (b"other", second, 5)
    assert space.version("a/b.json") == second
    assert space.get("a/b.json", 3).data == b"oth"
    assert space.at("a").get("b.json") == space.get("a/b.json")
    assert space.get("a/b.json/below") is None


def test_space__travels_as_an_address(space):
    space.put("a/b", b"one")

    there = pickle.loads(pickle.dumps(space.at("a")))  # noqa: S301 - its own

    assert (there.address, there.get("b")) == (space.at("a").address, space.get("a/b"))
    there.put("b", b"two")
    assert space.get("a/b").data == b"two"


def test_put__only_where_there_is_nothing(space):
    version = space.put("key", b"one", when=When.ABSENT)

    assert space.put("key", b"two", when=When.ABSENT) is None
    assert space.get("key") == (b"one", version, 3)


def test_put__only_over_the_version_that_was_seen(space):
    old = space.put("key", b"one")
    new = space.put("key", b"two", when=old)

    assert space.put("key", b"three", when=old) is None
    assert space.get("key") == (b"two", new, 3)
    space.delete("key")
    assert space.put("key", b"three", when=new) is None
    assert space.get("key") is None


@pytest.mark.parametrize("first", [True, False])
def test_put__of_many_on_one_condition_one_wins(space, first):
    for number in range(3):
        when = When.ABSENT if first else space.put(f"key{number}", b"before")
        with ThreadPoolExecutor(4) as pool:
            versions = list(
                pool.map(lambda i, n=number, w=when: space.put(f"key{n}", b"%d" % i, when=w), range(4))
            )
        (winner,) = [i for i, version in enumerate(versions) if version is not None]
        assert space.get(f"key{number}") == (b"%d" % winner, versions[winner], len(b"%d" % winner))


def test_put__on_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    space = Directory(tmp_path)

    assert space.put("key", b"one", when=When.ABSENT)
    assert space.put("key", b"two", when=When.ABSENT) is None
    assert space.get("key").data == b"one"
    assert list(space.list()) == ["key"]


def test_put__does_not_bring_a_deleted_directory_back(tmp_path):
    gone = Directory(tmp_path / "gone")

    for key in ("key", "folder/key"):
        with pytest.raises(FileNotFoundError):
            gone.put(key, b"one")
    assert not gone.is_there()


def test_list__keys_below_a_prefix(space):
    for key in ("a", "b/c", "b/d/e", "bb/f"):
        space.put(key, b"")

    assert sorted(space.list()) == ["a", "b/c", "b/d/e", "bb/f"]
    assert sorted(space.list("b/")) == ["b/c", "b/d/e"]
    assert list(space.list("nothing/")) == list(space.list("a/")) == []


def test_list__leaves_out_files_on_their_way(tmp_path):
    for name in (".c.123.partial", "0.123.partial", "c"):
        (tmp_path / name).write_bytes(b"half")

    assert list(Directory(tmp_path).list()) == ["c"]


def test_delete_and_clear__may_be_repeated(space):
    for key in ("a", "b/c", "b/d/e"):
        space.put(key, b"")
    for _ in range(2):
        space.delete("a")
        space.clear("b/")

    assert list(space.list()) == []


def test_sync__refuses_what_is_not_there(space):
    if isinstance(space, Bucket):
        pytest.skip("a store has acknowledged what it has, and is not asked again")
    space.put("a/b", b"1")

    space.sync(["a/b", "a/", "none/"])
    with pytest.raises(FileNotFoundError):
        space.sync(["a/c"])


def test_log__lines_of_one_writer(space):
    log, other = space.log("log"), space.log("log")
    assert list(log.lines()) == []
    log.append(b"one\n")
    log.flush()
    other.append(b"two\n")
    other.flush()

    log.append(b"three\n") if isinstance(space, Bucket) else None
    with pytest.raises(LogConflictError):
        log.flush() if isinstance(space, Bucket) else log.append(b"three\n")
    assert list(log.lines()) == [b"one\n", b"two\n"]


def taken(space, data, at):
    return space.lease("lease").take(lambda _: LeaseState(data, at))


def test_lease__is_the_holders_until_another_one_takes_it(space):
    record = space.lease("lease")
    assert record.read() is None
    held = taken(space, b"me", 1000.0)
    assert held.renew(2000.0)
    assert record.read()[:2] == (b"me", 2000.0)

    successor = taken(space, b"you", 3000.0)
    renewed = [held.renew(4000.0), held.renew(4000.0, late=True), successor.renew(3500.0, late=True)]
    held.withdraw()

    assert renewed == [False, False, True]
    assert (held.is_mine(), successor.is_mine()) == (False, True)
    assert record.read()[:2] == (b"you", 3500.0)
    successor.withdraw()
    assert (record.read(), successor.is_mine()) == (None, False)
    held.close()
    successor.close()


def test_lease__stays_where_the_successor_refuses(space):
    held = taken(space, b"me", 1000.0)

    def refuse(found):
        raise LookupError(found[:2])

    with pytest.raises(LookupError) as caught:
        space.lease("lease").take(refuse)

    assert caught.value.args == ((b"me", 1000.0),)
    assert held.is_mine()
    held.close()


def test_lease__of_many_takers_each_sees_the_one_before(space):
    def count(number):
        seen = []

        def successor(found):
            seen.append(found)
            return LeaseState(b"%d" % number, 0.0)

        held = space.lease("lease").take(successor)
        held.close()
        return None if seen[-1] is None else int(seen[-1].data)

    with ThreadPoolExecutor(4) as pool:
        before = list(pool.map(count, range(12)))

    # A chain: everybody but the last was replaced once, and by one only.
    assert sorted(-1 if number is None else number for number in before) == sorted(
        {-1, *range(12)} - {int(space.lease("lease").read().data)}
    )


def test_take__where_locks_keep_nobody_out(tmp_path):
    space = Directory(tmp_path)
    found = []

    def late(record):
        found.append(record)
        if record is None:  # another one comes in between, as if there were no lock
            (tmp_path / "lease").write_bytes(b"faster")
            os.utime(tmp_path / "lease", (1000.0, 1000.0))
        return LeaseState(b"me", 2000.0)

    held = space.lease("lease").take(late)

    assert [record and record[:2] for record in found] == [None, (b"faster", 1000.0)]
    assert space.lease("lease").read()[:2] == (b"me", 2000.0)
    assert held.is_mine()
    held.close()


@pytest.mark.cluster
def test_put__leaves_nothing_on_a_full_disk(small_disk):
    disk = small_disk("16k")

    for durable in (True, False):
        with pytest.raises(OSError, match="No space left"):
            Directory(disk).put("key", bytes(10**6), durable=durable)

    assert list(disk.iterdir()) == []


def test_assemble__all_of_it_appears_or_nothing(made, tmp_path):
    space = made(tmp_path / "made")

    def fill(draft):
        draft.put("zarr.json", b"{}")
        log = draft.at("records").log("lines")
        log.append(b"one\n")
        log.append(b"two\n")
        log.close()
        draft.sync(["zarr.json"])
        assert not space.is_there()

    def fail(draft):
        fill(draft)
        raise KeyError("half way")

    with pytest.raises(KeyError):
        space.assemble(fail)
    assert not space.is_there()
    assert list(tmp_path.iterdir()) == []
    space.assemble(fill)

    assert space.get("zarr.json").data == b"{}"
    assert list(space.at("records").log("lines").lines()) == [b"one\n", b"two\n"]
    with pytest.raises(CubeExistsError):
        space.assemble(lambda draft: draft.put("zarr.json", b"other"))
    assert space.get("zarr.json").data == b"{}"
