"""Tests come into the tier that they need; whoever starts a process without saying so is told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUITE = """
import multiprocessing, os, subprocess, sys, threading
import pytest

@pytest.fixture(scope="session")
def early():
    subprocess.run(["true"])

@pytest.fixture
def running():
    pass

@pytest.mark.cluster
def test_marked(early): pass

def test_quiet(): pass
def test_uses_a_known_starter(running): subprocess.run(["true"])
def test_late(early): pass
def test_popen(): subprocess.run(["true"])
def test_fork(): os.fork() or os._exit(0)
def test_spawn(): multiprocessing.get_context("spawn").Process(target=print).start()
def test_caught():
    try:
        subprocess.run(["true"])
    except BaseException:
        pass
def test_in_a_thread():
    thread = threading.Thread(target=lambda: pytest.raises(BaseException, subprocess.run, ["true"]))
    thread.start()
    thread.join()
def test_need():
    from tests.tiers import need
    need("hammer", None, "apt install hammer")
"""


def outcomes(folder, *options, **environment):
    """Names of tests that passed and failed, and all that pytest wrote."""
    (folder / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.tiers", "-c", os.devnull, "--rootdir", folder),
            *("-rA", "-p", "no:cacheprovider", "-W", "ignore", *options, folder / "test_suite.py"),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {"PASSED": set(), "FAILED": set(), "ERROR": set()}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in found and "::" in rest:
            found[word].add(rest.split("::")[1].split(" ")[0])
    return found["PASSED"], found["FAILED"] | found["ERROR"], done.stdout


@pytest.mark.cluster
def test_tiers__a_unit_test_that_starts_a_process_fails(tmp_path):
    passed, failed, text = outcomes(tmp_path)

    assert passed == {"test_marked", "test_quiet", "test_uses_a_known_starter"}, text
    assert failed == {f"test_{name}" for name in ("late", "popen", "fork", "spawn", "caught", "in_a_thread")}
    assert "1 skipped: 1 × needs hammer (apt install hammer)" in text


@pytest.mark.cluster
def test_tiers__are_selected_by_name_and_what_is_required_is_not_skipped(tmp_path):
    passed, failed, text = outcomes(
        tmp_path, "-m", "unit", "-k", "quiet or known or need", EVALCUBE_REQUIRE="saw hammer"
    )

    assert (passed, failed) == ({"test_quiet"}, {"test_need"}), text
    assert "needs hammer (apt install hammer), and EVALCUBE_REQUIRE names it" in text
