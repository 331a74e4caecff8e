"""What every space promises; a further implementation joins by its name in `SPACES`."""

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storage.cube.directory import Directory
from storage.cube.space import LogConflictError, When

SPACES = {"directory": Directory}


@pytest.fixture(params=SPACES)
def space(request, tmp_path):
    return SPACES[request.param](tmp_path)


def test_get__what_was_put_last_with_its_version(space):
    assert (space.get("a/b.json"), space.version("a/b.json")) == (None, None)

    first = space.put("a/b.json", b"one")
    second = space.put("a/b.json", b"other", durable=False)

    assert first != second
    assert space.get("a/b.json") == (b"other", second)
    assert space.version("a/b.json") == second
    assert space.get("a/b.json", 3).data == b"oth"
    assert space.at("a").get("b.json") == space.get("a/b.json")
    assert space.get("a/b.json/below") is None


def test_put__only_where_there_is_nothing(space):
    version = space.put("key", b"one", when=When.ABSENT)

    assert space.put("key", b"two", when=When.ABSENT) is None
    assert space.get("key") == (b"one", version)


def test_put__only_over_the_version_that_was_seen(space):
    old = space.put("key", b"one")
    new = space.put("key", b"two", when=old)

    assert space.put("key", b"three", when=old) is None
    assert space.get("key") == (b"two", new)
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
        assert space.get(f"key{number}") == (b"%d" % winner, versions[winner])


def test_put__on_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    space = Directory(tmp_path)

    assert space.put("key", b"one", when=When.ABSENT)
    assert space.put("key", b"two", when=When.ABSENT) is None
    assert space.get("key").data == b"one"
    assert list(space.list()) == ["key"]


def test_put__does_not_bring_a_deleted_space_back(space):
    gone = space.at("gone")

    for key in ("key", "folder/key"):
        with pytest.raises(FileNotFoundError):
            gone.put(key, b"one")
    assert not gone.is_there()


def test_list__keys_below_a_prefix_without_what_is_on_its_way(space, tmp_path):
    for key in ("a", "b/c", "b/d/e", "bb/f"):
        space.put(key, b"")
    (tmp_path / "b" / ".c.123.partial").write_bytes(b"half")
    (tmp_path / "b" / "0.123.partial").write_bytes(b"half")

    assert sorted(space.list()) == ["a", "b/c", "b/d/e", "bb/f"]
    assert sorted(space.list("b/")) == ["b/c", "b/d/e"]
    assert list(space.list("nothing/")) == list(space.list("a/")) == []


def test_delete_and_clear__may_be_repeated(space):
    for key in ("a", "b/c", "b/d/e"):
        space.put(key, b"")
    for _ in range(2):
        space.delete("a")
        space.clear("b/")

    assert list(space.list()) == []


def test_sync__refuses_what_is_not_there(space):
    space.put("a/b", b"1")

    space.sync(["a/b", "a/", "none/"])
    with pytest.raises(FileNotFoundError):
        space.sync(["a/c"])


def test_log__lines_of_one_writer(space):
    log, other = space.log("log"), space.log("log")
    assert list(log.lines()) == []
    log.append(b"one\n")
    other.append(b"two\n")

    with pytest.raises(LogConflictError):
        log.append(b"three\n")
    assert list(log.lines()) == [b"one\n", b"two\n"]


def test_lease__is_the_holders_until_another_one_takes_it(space):
    record = space.lease("lease")
    with record.alone(create=True):
        assert record.read() is None
        held = record.take(b"me", 1000.0, absent=True)
        with pytest.raises(FileExistsError):
            record.take(b"late", 1001.0, absent=True)
    held.renew(2000.0)
    assert record.read() == (b"me", 2000.0)

    with record.alone():
        successor = record.take(b"you", 3000.0, absent=False)
    held.renew(4000.0)

    assert (held.is_mine(), successor.is_mine()) == (False, True)
    assert record.read() == (b"you", 3000.0)
    with record.alone():
        successor.withdraw()
    assert (record.read(), successor.is_mine()) == (None, False)
    held.close()
    successor.close()
