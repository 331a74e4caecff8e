import os
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcube.storage.cache import claims as claims_module
from evalcube.storage.cache.claims import Claims
from evalcube.storage.cache.folders import sweep_files
from evalcube.storage.processes import Owner, ProcessIdentity
from tests.waiting import PATIENCE


def key(number):
    return f"{number:064x}"


KEYS = [key(n) for n in range(5)]


@pytest.fixture
def pair(tmp_path):
    return Claims(tmp_path, "a1"), Claims(tmp_path, "b2")


def test_others__the_older_claim_of_another_run_counts(pair):
    first, second = pair
    older = first.make(KEYS[:3])
    newer = second.make(KEYS)

    assert set(second.others(KEYS, newer)) == set(KEYS[:3])
    assert first.others(KEYS, older) == {}

    older.release()

    assert second.others(KEYS, newer) == {}
    newer.release()


def test_others__a_run_does_not_wait_for_itself(tmp_path):
    run, process = Claims(tmp_path, "a1"), Claims(tmp_path, "a1")
    older, newer = run.make(KEYS), process.make(KEYS)

    assert process.others(KEYS, newer) == {}
    older.release()
    newer.release()


def test_wait__ends_with_the_claim_or_when_told_or_out_of_patience(pair):
    first, second = pair
    held = first.make(KEYS)
    mine = second.make(KEYS)
    names = sorted(set(second.others(KEYS, mine).values()))

    second.wait(names, 60.0, lambda: True)
    begun = time.monotonic()
    second.wait(names, 0.3, lambda: False)
    assert 0.3 <= time.monotonic() - begun < 60.0
    assert second.others(KEYS, mine) == {}, "a claim that was waited for in vain is waited for again"

    held.release()
    second.wait(names, 60.0, lambda: False)
    mine.release()


@pytest.mark.cluster
def test_others__a_killed_process_claims_nothing(tmp_path):
    script = textwrap.dedent(
        """
        import os, pathlib, sys
        from evalcube.storage.cache.claims import Claims
        Claims(pathlib.Path(sys.argv[1]), "gone").make(["0" * 64])
        os.kill(os.getpid(), 9)
        """
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert len(list(tmp_path.glob("*.claim"))) == 1
    claims = Claims(tmp_path, "here")

    mine = claims.make(["0" * 64])

    assert claims.others(["0" * 64], mine) == {}
    mine.release()
    assert list(tmp_path.glob("*.claim")) == []


def test_make__says_nothing_where_it_cannot_be_written(tmp_path):
    claims = Claims(tmp_path / "gone", "a1")

    assert claims.make(KEYS) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_others__garbage_claims_nothing(tmp_path, content):
    (tmp_path / "0-x.claim").write_bytes(content)
    claims = Claims(tmp_path, "a1")
    mine = claims.make(KEYS)

    assert claims.others(KEYS, mine) == {}
    mine.release()


SKEWS = [0.0, 300.0, -300.0, 2 * 86400.0, -2 * 86400.0, 30 * 86400.0]


@pytest.fixture
def skewed(monkeypatch):
    """Sets the time of day off by some seconds, for all code of this process."""
    real, real_ns = time.time, time.time_ns

    def skew(seconds):
        monkeypatch.setattr(time, "time", lambda: real() + seconds)
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(seconds * 1e9))

    return skew


@pytest.mark.parametrize("second_skew", SKEWS)
@pytest.mark.parametrize("first_skew", SKEWS)
def test_others__who_was_first_asks_whatever_clocks_say(pair, skewed, first_skew, second_skew):
    first, second = pair
    skewed(first_skew)
    older = first.make(KEYS[:3])
    skewed(second_skew)
    newer = second.make(KEYS)
    last = first.make(KEYS[3:])

    assert set(second.others(KEYS, newer)) == set(KEYS[:3])
    assert first.others(KEYS[3:], last).keys() == set(KEYS[3:])
    skewed(first_skew)
    assert first.others(KEYS, older) == {}

    for claim in (older, newer, last):
        claim.release()


@pytest.mark.parametrize("skew", SKEWS)
def test_sweep_files__leaves_the_claims_of_the_living_whatever_clocks_say(tmp_path, pair, skewed, skew):
    claim = pair[0].make(KEYS)
    skewed(skew)

    assert sweep_files(tmp_path, delete=True) == 0
    os.utime(claim.path, (time.time() - skew - 7200,) * 2)
    assert sweep_files(tmp_path, delete=True) == 1
    claim.release()


class Watching:
    """A monotonic clock that goes on only while somebody sleeps, and what happens meanwhile."""

    def __init__(self):
        self.now = 500.0
        self.meanwhile = lambda: None

    def sleep(self, seconds):
        self.now += seconds
        self.meanwhile()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The claim of another machine's process, and the clock of whoever waits for it."""
    process = ProcessIdentity("far-away", "another boot", 77, 5)
    with monkeypatch.context() as patch:
        patch.setattr(claims_module, "this_owner", lambda: Owner(process, "another machine"))
        far = Claims(tmp_path, "far")
        claim = far.make(KEYS)
    far._renewals.remove(claim._descriptor)
    watching = Watching()
    clock = SimpleNamespace(monotonic=lambda: watching.now, sleep=watching.sleep)
    monkeypatch.setattr(claims_module, "time", clock)
    yield claim, watching
    claim.release()


@pytest.mark.parametrize("skew", SKEWS)
def test_wait__elsewhere_for_a_minute_without_renewal(tmp_path, elsewhere, skew):
    claim, watching = elsewhere
    os.utime(claim.path, (time.time() + skew,) * 2)
    claims = Claims(tmp_path, "here")
    mine = claims.make(KEYS)
    names = sorted(set(claims.others(KEYS, mine).values()))
    assert names == [claim.path.name]

    claims.wait(names, 600.0, lambda: False)

    assert 560.0 <= watching.now < 561.0
    assert not claim.path.exists()
    assert claims.others(KEYS, mine) == {}
    mine.release()


@pytest.mark.long
def test_wait__elsewhere_for_as_long_as_it_is_renewed(tmp_path, elsewhere):
    claim, watching = elsewhere
    claims = Claims(tmp_path, "here")
    mine = claims.make(KEYS)

    def renew():
        if watching.now < 2500:
            os.utime(claim.path, (watching.now // 50,) * 2)
        else:
            claim.path.unlink(missing_ok=True)

    watching.meanwhile = renew
    claims.wait([claim.path.name], 600.0, lambda: False)

    assert 2500 <= watching.now < 2501
    mine.release()


def test_wait__many_that_are_abandoned_together(tmp_path, elsewhere):
    claim, watching = elsewhere
    names = [f"{number:024x}-far.claim" for number in range(10, 15)]
    for name in names:
        (tmp_path / name).write_bytes(claim.path.read_bytes())
        os.utime(tmp_path / name, (0, 0))

    Claims(tmp_path, "here").wait(names, 600.0, lambda: False)

    assert 560.0 <= watching.now < 561.0


def test_make__renews_what_is_held_and_ends_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(claims_module, "_RENEW_SECONDS", 0.01)
    claims = Claims(tmp_path, "a1")
    first, second = claims.make(KEYS[:1]), claims.make(KEYS[1:])
    for claim in (first, second):
        os.utime(claim.path, (1, 1))
    first.release()

    deadline = time.monotonic() + PATIENCE
    while second.path.stat().st_mtime == 1:
        assert time.monotonic() < deadline
    second.release()
    while claims._renewals._thread is not None:
        assert time.monotonic() < deadline
    third = claims.make(KEYS)
    assert claims._renewals._thread is not None
    third.release()


def test_make__without_locks_the_later_one_waits(tmp_path, monkeypatch):
    def locked(*_):
        raise OSError("No locks available")

    monkeypatch.setattr(claims_module, "locked", locked)
    test_others__the_older_claim_of_another_run_counts((Claims(tmp_path, "a1"), Claims(tmp_path, "b2")))
