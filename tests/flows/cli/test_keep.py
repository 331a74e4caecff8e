"""Commands that look after a cache, on caches of real sweeps."""

import json
import os
import shutil
import time
from contextlib import closing
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from evalcube.flows.cli import keep, output
from evalcube.flows.cli.keep import cache_commands as commands
from evalcube.flows.cli.keep import data_commands
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Announcer
from evalcube.flows.keep.cache import CacheCheck, CollectedEntries, References, request_keys
from evalcube.flows.keep.forget import Forgetting, ForgottenRow
from evalcube.flows.read.reader import Reader
from evalcube.flows.state.damage import Damage, Verification
from evalcube.flows.state.rescoring import Recount, Rescoring
from evalcube.storage.cache.cache import DirectoryCache, open_cache
from evalcube.storage.errors import StorageError
from tests.flows.support import evalcube, refused, simulator_stats, sweep_config, write_config
from tests.hub import GSM, jsonl
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


@pytest.mark.parametrize(
    ("terminal", "shown"),
    [
        (True, "\r\x1b[Krows: 7\r\x1b[Kevalcube: hear\n\r\x1b[Krows: 8\r\x1b[K"),
        (False, "rows: 7\nevalcube: hear\nrows: 8\n"),
    ],
)
def test_progress__one_line_that_changes_on_a_terminal_and_lines_elsewhere(
    monkeypatch, capsys, terminal, shown
):
    monkeypatch.setattr(output, "_REDRAW_SECONDS", -1.0)
    monkeypatch.setattr(output, "_LINE_SECONDS", -1.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)

    with output.progress() as subscribers:
        announcer = Announcer(subscribers)
        announcer.count("rows", 7)
        announcer.note("hear")
        announcer.count("rows", 8)

    assert capsys.readouterr().err == shown


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


def test_data__lists_what_is_here_with_the_commit_that_was_meant(hub):
    def call_data(*arguments):
        return (
            CliRunner()
            .invoke(data_commands, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
            .stdout
        )

    hub.add("acme/sums", {"test.jsonl": jsonl(GSM)})
    address = "hf://acme/sums?split=test"
    assert "nothing was fetched to" in call_data("list")
    fetched = json.loads(call_data("fetch", address, "--json"))["data"]
    told = call_data("fetch", address)

    (row,) = json.loads(call_data("list", "--json"))["data"]
    words = call_data("list").split()
    assert (row["asked"], len(row["commit"]), len(fetched)) == (address, 40, 1)
    assert words[words.index(address) + 1] == row["commit"][:12]
    assert f"{len(GSM)} rows" in told
    assert "licence mit" in told
    assert "to pin it" in told
    hub.add("acme/bare", {"test.jsonl": jsonl(GSM)}, card={})
    assert "licence not stated" in call_data("fetch", "hf://acme/bare?split=test")
    assert [text in call_data("list") for text in (" mit ", " not stated ")] == [True, True]


@pytest.fixture
def printed(monkeypatch, capsys):
    """What a command prints of a result, on both streams, and its exit code."""

    def print_of(command, made, result, **options):
        monkeypatch.setattr(made, result if callable(result) else lambda *_, **__: result)
        code = 0
        try:
            command(**options)
        except typer.Exit as end:
            code = end.exit_code
        words, complaint = capsys.readouterr()
        return code, " ".join(words.split()), " ".join(complaint.split())

    return print_of


def test_rescore__shows_counts_that_changed_and_what_is_left(printed):
    rows = [
        Recount(
            "m",
            "sort",
            {"correct": 3, "invalid": 2, "incorrect": 7},
            {"correct": 5, "incorrect": 7, "invalid": 0},
        )
    ]
    done = Rescoring("c", "9", ("8", "imported"), 4, 0, rows)

    def words(done):
        return printed(
            keep.rescore, "evalcube.flows.keep.rescore.rescore_cube", done, cube="c", output=None, cache=None
        )

    code, text, complaint = words(done)
    assert (code, complaint) == (0, "")
    assert "m sort 3 → 5 7 2 → 0" in text
    assert "grader 8 → 9" in text
    assert "4 regions graded again: 2 trials changed" in text
    assert words(replace(done, lost=3))[2].count("3 regions") == 1
    assert words(replace(done, imported=5))[2].count("5 imported regions") == 1


@pytest.mark.parametrize(
    ("report", "heal", "code", "complaint"),
    [
        (Verification("c", 3, 0), False, 0, ""),
        (Verification("c", 3, 2), False, 0, "2 lines of the ledger"),
        (Verification("c", 3, 0, [Damage("tokens", "is gone", healed=True)]), True, 0, ""),
        (Verification("c", 3, 0, [Damage("tokens", "is gone")]), False, 2, "the cube is damaged"),
        (Verification("c", 3, 0, [Damage("tokens", "is gone", requests=7)]), True, 2, "sends 7 requests"),
        (Verification("c", 3, 0, [Damage("tokens", "is gone")]), True, 2, "needs the sweep's config"),
    ],
)
def test_verify__of_a_cube_says_what_is_damaged_and_what_to_do(printed, report, heal, code, complaint):
    made = "evalcube.flows.state.verify.verify_cube"

    ended, text, said = printed(keep.verify, made, report, cube="c", heal=heal)

    assert ended == code
    assert complaint in said
    assert bool(said) == bool(complaint)
    assert f"3 regions checked: {len(report.damages) or 'none'} damaged" in text
    assert ["healed: `tokens`" in text, "damaged: `tokens`" in text] == [
        any(damage.healed for damage in report.damages),
        any(not damage.healed for damage in report.damages),
    ]
    assert ("lacks 7" in text) == any(damage.requests for damage in report.damages)
    many = replace(report, damages=[Damage("x", "is gone", healed=True)] * (keep.MOST_ROWS + 2))
    assert "... and 2 more" in printed(keep.verify, made, many, cube="c", heal=heal)[1]
    assert "more" not in text


@pytest.mark.parametrize("yes", [False, True])
@pytest.mark.parametrize("cache", ["", "replies"])
def test_forget__asks_before_it_takes_and_says_where_replies_stay(printed, yes, cache):
    shown = Forgetting(
        "c", cache, False, [ForgottenRow("m", "sort", 3, 4), ForgottenRow("m", "dates", 2, 2)], batches=6
    )

    def words(shown, **more):
        def forget(*_, confirmed, **__):
            assert confirmed(shown) == (yes and bool(shown.rows))
            return replace(shown, done=yes and bool(shown.rows), **more)

        made = "evalcube.flows.keep.forget.forget"
        return printed(keep.forget, made, forget, cube="c", where=["task=sort"], cache=bool(cache), yes=yes)

    code, text, complaint = words(shown, replies=9)
    assert code == 0
    assert "all 5 6 m sort 3 4 m dates 2 2" in text
    assert ("nothing is deleted yet" in complaint) == (not yes)
    assert ("5 results are forgotten" in text) == yes
    assert ("replies to 9 requests" in text) == (yes and bool(cache))
    assert ("6 batches under way" in text, "--cache deletes them" in text) == (bool(cache), not cache)
    assert words(shown, kept_replies=8)[0] == 1
    assert words(replace(shown, rows=[]))[1:] == ("no result fulfils this", "")


def test_cache_commands__say_what_is_left_to_do(printed):
    check = CacheCheck(9, 100, 3, 2, ["ab", "cd"])
    made = "evalcube.flows.keep.cache."
    code, text, complaint = printed(keep.verify_cache, f"{made}verify", check, cache="c", repair=True)
    assert (code, "... and 1 more" in text, "2 moved away" in complaint) == (1, True, True)
    code, text, complaint = printed(
        keep.verify_cache, f"{made}verify", replace(check, keys=["a"] * 3), cache="c"
    )
    assert ("more" in text, "--repair" in complaint) == (False, True)
    assert printed(keep.verify_cache, f"{made}verify", replace(check, damaged=0, keys=[]), cache="c")[0] == 0

    found = CollectedEntries(9, 5, 100, 4, 7, 2, 1, deleted=False)
    texts = [
        printed(keep.gc, f"{made}collect", result, cache="c")[1]
        for result in (
            found,
            replace(found, deleted=True, in_use=0),
            replace(found, unreferenced=0, temporaries=0, in_use=0),
        )
    ]
    assert "would delete 4 of 9 entries" in texts[0]
    assert "deleted 5 of 9 entries" in texts[1]
    assert ["1 more are in packs" in text for text in texts] == [True, False, False]
    assert ["--yes" in text for text in texts] == [True, False, False]
    assert all("7 requests are referenced; 2 of them are not" in text for text in texts)
