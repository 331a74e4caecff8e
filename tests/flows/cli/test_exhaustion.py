"""Memory, threads and files that run out are named with a remedy, and are no defects."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.cli.app import _failed
from evalcube.flows.cli.exhaustion import exhaustion
from evalcube.flows.cli.output import Code
from evalcube.flows.errors import SweepError
from tests.waiting import PATIENCE


def chained(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "resource_name"),
    [
        (MemoryError(), "ulimit -v"),
        (np._core._exceptions._ArrayMemoryError((10**9,), np.dtype(float)), "ulimit -v"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "ulimit -v"),
        (ImportError("x.so: failed to map segment from shared object"), "ulimit -v"),
        (RuntimeError("Zstd compression error: b'Allocation error : not enough memory'"), "ulimit -v"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (ExceptionGroup("several", [ValueError(), MemoryError()]), "ulimit -v"),
        (chained(ValueError("odd"), RuntimeError("can't start new thread")), "ulimit -u"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_failed__names_what_has_run_out(error, resource_name, capsys):
    assert _failed(error) == Code.REFUSED

    told = capsys.readouterr().err
    assert resource_name in told
    assert "defect" not in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "error", [ValueError("odd"), BlockingIOError(errno.EAGAIN, "would wait"), RuntimeError("x")]
)
def test_exhaustion__nothing_has_run_out(error):
    assert exhaustion(error) is None


def test_failed__a_known_error_says_what_is_behind_it(capsys):
    error = chained(SweepError("no worker could be started", "Free ports"), OSError(errno.EMFILE, "Too many"))

    assert _failed(error) == Code.REFUSED

    told = capsys.readouterr().err
    assert "no worker could be started" in told
    assert "ulimit -n" in told


@pytest.mark.cluster
def test_exhaustion__a_process_that_cannot_be_started(monkeypatch):
    def fork_exec(*_):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "_fork_exec", fork_exec)

    with pytest.raises(BlockingIOError) as caught:
        subprocess.Popen([sys.executable, "--version"])

    assert "no thread or process" in exhaustion(caught.value)


def limited(soft, hard, then):
    lines = ("import resource", f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))", then)
    code = "\n".join(lines)
    return subprocess.run(
        [sys.executable, "-c", code, "--version"],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.cluster
def test_open_files__a_limit_that_may_be_raised_is():
    then = (
        "from evalcube import __main__ as command; command._most_open_files();"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )

    assert limited(20, 400, then).stdout == "(400, 400)\n"


@pytest.mark.cluster
def test_open_files__too_few_are_refused_at_once():
    done = limited(20, 20, "from evalcube.__main__ import main; main()")

    assert done.returncode == Code.REFUSED
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "ulimit -n" in done.stderr


LIMITED = (
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))",
    "from evalcube.__main__ import main; main()",
)


@pytest.mark.cluster
def test_run__with_few_files_open_names_their_limit(small_sweep, tmp_path):
    arguments = ("run", small_sweep / "sweep.yaml", "--cube", "c.zarr", "--cache", "cache")
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(LIMITED), *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    assert result.returncode == 2, result.stderr
    assert "ulimit -n" in result.stderr
    assert "defect" not in result.stderr
