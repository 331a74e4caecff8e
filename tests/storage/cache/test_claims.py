import subprocess
import sys
import textwrap
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.cache.claims import Claims


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
    assert 0.3 <= time.monotonic() - begun < 10.0
    assert second.others(KEYS, mine) == {}, "a claim that was waited for in vain is waited for again"

    held.release()
    second.wait(names, 60.0, lambda: False)
    mine.release()


@pytest.mark.cluster
def test_others__a_killed_process_claims_nothing(tmp_path):
    script = textwrap.dedent(
        """
        import os, pathlib, sys
        from storage.cache.claims import Claims
        Claims(pathlib.Path(sys.argv[1]), "gone").make(["0" * 64])
        os.kill(os.getpid(), 9)
        """
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    claims = Claims(tmp_path, "here")

    mine = claims.make(["0" * 64])

    assert claims.others(["0" * 64], mine) == {}
    mine.release()
    assert list(tmp_path.iterdir()) == []


def test_make__says_nothing_where_it_cannot_be_written(tmp_path):
    claims = Claims(tmp_path / "gone", "a1")

    assert claims.make(KEYS) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.binary(max_size=200))
def test_others__garbage_claims_nothing(tmp_path, content):
    (tmp_path / "0-x.claim").write_bytes(content)
    claims = Claims(tmp_path, "a1")
    mine = claims.make(KEYS)

    assert claims.others(KEYS, mine) == {}
    mine.release()
