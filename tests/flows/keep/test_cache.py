"""What a cache holds, whether it is sound, what a sweep needs of it, and copies of it."""

import json
import os
import shutil
import time
from contextlib import closing

import pytest
from typer.testing import CliRunner

from evalcube.flows.cli.keep import cache_commands as commands
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer
from evalcube.flows.keep.cache import References, request_keys
from evalcube.flows.read.reader import Reader
from evalcube.storage.cache.cache import DirectoryCache, open_cache
from evalcube.storage.errors import StorageError
from tests.flows.support import evalcube, refused, simulator_stats, sweep_config, write_config
from tests.simulator.managed import Simulator
from tests.storage.support.cache_stores import SECRET, DirectoryPlace, RedisPlace, redis_server

REQUESTS = 10
ALIEN = ["00" * 32, "ff" * 32]


@pytest.fixture
def place(small_sweep, tmp_path):
    """A folder with a copy of a finished sweep; its cache has two more entries, which no cube references."""
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    shutil.copytree(small_sweep / "cache", tmp_path / "cache")
    cache = DirectoryCache(tmp_path / "cache")
    cache.put_many([(key, b"alien" * 10) for key in ALIEN])
    cache.close()
    return tmp_path


@pytest.fixture
def redis_url(tmp_path, monkeypatch):
    with redis_server(tmp_path) as port:
        monkeypatch.setenv("REDIS_PASSWORD", SECRET)
        yield RedisPlace(port).url


def call(*arguments, code=0):
    """Run a command in this process: its standard output, as JSON where that was asked for."""
    result = CliRunner().invoke(commands, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if "--json" in arguments else result.output


def keys(url):
    return {info.key for info in open_cache(url, writable=False).entries()}


def damage(cache, key, content=b"bad"):
    DirectoryPlace(cache).overwrite(key, content)


def tree(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_stats__of_a_sweep(place):
    before = tree(place)

    found = call("stats", place / "cache", "--json")

    assert (found["entries"], found["damaged"], found["journals"]) == (REQUESTS + 2, 0, 0)
    assert found["bytes"] == sum(
        len(DirectoryPlace(place / "cache").raw(key)) for key in keys(place / "cache")
    )
    assert "12 entries" in call("stats", place / "cache")
    assert tree(place) == before


def test_stats__no_cache(tmp_path):
    with pytest.raises(StorageError, match="no cache here"):
        call("stats", tmp_path / "typo")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"bad", None], ids=["empty", "other", "flipped"])
def test_verify__tells_and_repairs(place, content):
    cache = place / "cache"
    assert call("verify", cache, "--json")["damaged"] == 0
    victim = sorted(keys(cache))[3]
    whole = DirectoryPlace(cache).raw(victim)
    damage(cache, victim, whole[:30] + bytes([whole[30] ^ 1]) + whole[31:] if content is None else content)
    before = tree(place)

    found = call("verify", cache, "--json", code=1)

    assert (found["entries"], found["damaged"], found["repaired"]) == (REQUESTS + 2, 1, 0)
    assert found["keys"] == [victim]
    assert victim in call("verify", cache, code=1)
    assert tree(place) == before
    assert call("verify", cache, "--repair", "--json", code=1)["repaired"] == 1
    assert call("verify", cache, "--json") == {**found, "entries": REQUESTS + 1, "damaged": 0, "keys": []} | {
        "bytes": found["bytes"] - len(whole)
    }
    assert call("stats", cache, "--json")["damaged"] == 1


def test_verify__what_was_repaired_is_asked_again(place, simulator):
    cache = place / "cache"
    for key in sorted(request_keys(Reader(place / "cube.zarr")))[:3]:
        damage(cache, key)
    call("verify", cache, "--repair", code=1)
    shutil.rmtree(place / "cube.zarr")
    path = write_config(place, sweep_config(place, simulator.base_url, trials=2))

    code, _, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=place)

    assert code == 0, errors
    assert simulator_stats(simulator)["requests"] == 3
    assert call("verify", cache, "--json")["entries"] == REQUESTS + 2


def test_gc__tells_first_and_deletes_what_no_cube_references(place):
    cache = place / "cache"
    old = cache / "tmp" / "left"
    old.write_bytes(b"x")
    os.utime(old, (1, 1))
    before = tree(place)

    told = call("gc", cache, "--keep", place / "cube.zarr", "--json")

    expected = {"entries": REQUESTS + 2, "unreferenced": 2, "temporaries": 1, "missing": 0, "in_use": 0}
    assert told == {**expected, "bytes": told["bytes"], "referenced": REQUESTS, "deleted": False}
    assert "again with --yes" in call("gc", cache, "--keep", place / "cube.zarr")
    assert tree(place) == before

    done = call("gc", cache, "--keep", place / "cube.zarr", "--yes", "--json")

    assert done["deleted"] is True
    assert keys(cache) == set(request_keys(Reader(place / "cube.zarr")))
    assert not old.exists()


def test_gc__never_without_a_cube_or_with_one_that_is_not_there(place):
    before = tree(place)
    with pytest.raises(SweepError, match="with --keep"):
        call("gc", place / "cache", "--yes")
    with pytest.raises(StorageError):
        call("gc", place / "cache", "--keep", place / "cube.zarr", "--keep", place / "typo.zarr", "--yes")

    assert tree(place) == before


@pytest.mark.parametrize("skew", [0.0, 3600.0, -2 * 86400.0])
def test_gc__what_was_stored_since_it_began_stays_whatever_clocks_say(place, monkeypatch, skew):
    cache, key = place / "cache", "aa" * 32
    found = References.of

    def stores_meanwhile(*arguments):
        with monkeypatch.context() as patch:
            now = time.time() + skew
            patch.setattr(time, "time", lambda: now)
            with closing(DirectoryCache(cache)) as other:
                other.put_many([(key, b"new")])
        return found(*arguments)

    monkeypatch.setattr(References, "of", stores_meanwhile)
    call("gc", cache, "--keep", place / "cube.zarr", "--yes")

    assert keys(cache) & {key, *ALIEN} == {key}


def test_references__tell_apart_and_count_what_was_not_seen(place):
    wanted = sorted(request_keys(Reader(place / "cube.zarr")))
    references = References.of([str(place / "cube.zarr")], Announcer(()))

    assert references.mark([*ALIEN, *wanted[:4]]).tolist() == [False] * 2 + [True] * 4
    assert (references.total, references.unseen) == (REQUESTS, REQUESTS - 4)
    assert References([]).mark(ALIEN).tolist() == [False, False]


@pytest.mark.parametrize("chosen", [False, True], ids=["all", "of a cube"])
def test_export_import__round_trip(place, chosen):
    file, cube = place / "out" / "replies.tar.zst", ("--cube", place / "cube.zarr") if chosen else ()
    made = call("export", place / "cache", file, *cube, "--json")
    count = REQUESTS + (0 if chosen else 2)
    assert (made["entries"], made["skipped"], made["missing"]) == (count, 0, 0)

    first = call("import", place / "copy", file, "--json")
    again = call("import", place / "copy", file, "--json")

    assert [(one["entries"], one["new"]) for one in (first, again)] == [(count, count), (count, 0)]
    source, copy = open_cache(place / "cache"), open_cache(place / "copy")
    assert keys(place / "copy") == keys(place / "cache") - (set(ALIEN) if chosen else set())
    assert all(copy.get(key) == source.get(key) for key in keys(place / "copy"))


def test_export__leaves_damaged_entries_out_and_says_what_is_missing(place):
    victim = sorted(request_keys(Reader(place / "cube.zarr")))[0]
    damage(place / "cache", victim)

    made = call("export", place / "cache", place / "a", "--json", "--cube", place / "cube.zarr")
    assert (made["entries"], made["skipped"]) == (REQUESTS - 1, 1)
    DirectoryCache(place / "cache").remove([victim])
    made = call("export", place / "cache", place / "a", "--json", "--cube", place / "cube.zarr")
    assert (made["entries"], made["missing"]) == (REQUESTS - 1, 1)


def test_import__the_first_value_stays(place):
    call("export", place / "cache", place / "a")
    copy = open_cache(place / "copy")
    copy.put_many([(ALIEN[0], b"mine")])

    assert call("import", place / "copy", place / "a", "--json")["new"] == REQUESTS + 1
    assert copy.get(ALIEN[0]) == b"mine"


def test_import__a_torn_file_is_refused(place):
    call("export", place / "cache", place / "a")
    (place / "a").write_bytes((place / "a").read_bytes()[:-40])

    with pytest.raises(StorageError, match="archive of"):
        call("import", place / "copy", place / "a")
    with pytest.raises(StorageError, match="read the archive"):
        call("import", place / "copy", place / "absent")


def test_commands__on_a_redis_server(place, redis_url):
    call("export", place / "cache", place / "a")
    assert call("import", redis_url, place / "a", "--json")["new"] == REQUESTS + 2
    assert call("stats", redis_url, "--json")["entries"] == REQUESTS + 2
    assert call("verify", redis_url, "--json")["damaged"] == 0

    done = call("gc", redis_url, "--keep", place / "cube.zarr", "--yes", "--json")

    assert (done["unreferenced"], done["missing"]) == (2, 0)
    call("export", redis_url, place / "b")
    call("import", place / "back", place / "b")
    assert keys(place / "back") == keys(place / "cache") - set(ALIEN)


@pytest.mark.cluster
def test_entries__hold_no_key_and_no_endpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMULATED_KEY", SECRET)
    with Simulator(key_env="SIMULATED_KEY") as guarded:
        config = sweep_config(tmp_path, guarded.base_url, trials=2)
        config["models"][0]["key_env"] = "SIMULATED_KEY"
        path = write_config(tmp_path, config)
        code, _, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
        address = guarded.address.partition("//")[2]
    assert code == 0, errors
    cache = open_cache(tmp_path / "cache")

    values = [cache.get(key) for key in keys(tmp_path / "cache")]

    assert len(values) == REQUESTS
    for value in values:
        assert not [text for text in (SECRET, address, "SIMULATED_KEY") if text.encode() in value]


def test_command_line__exit_codes_and_messages(place):
    damage(place / "cache", ALIEN[0])
    code, output, errors = evalcube("cache", "verify", "cache", "--json", cwd=place)
    assert (code, json.loads(output)["damaged"]) == (1, 1)
    assert "--repair" in errors
    refused(evalcube("cache", "gc", "cache", cwd=place), "with --keep")
