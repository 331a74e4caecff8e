"""A sweep whose key expires in its midst ends complete: the key is read again where the config says."""

import sys
import threading
from functools import partial

import pytest

from evalcube.stages.infer.endpoint import Batching
from tests.flows.support import (
    evalcube,
    reset,
    set_batches,
    set_key,
    simulator_stats,
    sweep_config,
    write_config,
)
from tests.waiting import wait_until

OLD, NEW = "sk-old-and-expired", "sk-new-and-valid"


@pytest.fixture
def locked(simulator):
    set_key(simulator, OLD)
    yield simulator
    set_batches(simulator)
    reset(simulator)


def rotate(simulator, file, condition):
    """Change the key at the endpoint and in the file once `condition` holds of the simulator's counts."""

    def watch():
        wait_until(lambda: condition(simulator_stats(simulator)), pause=0.005)
        file.write_text(NEW)
        set_key(simulator, NEW)

    watcher = threading.Thread(target=watch)
    watcher.start()
    return watcher


def keyed(tmp_path, simulator, source, **changes):
    config = sweep_config(tmp_path, simulator.base_url, trials=16)
    (tmp_path / "key").write_text(OLD)
    config["models"][0]["simulate"]["latency"] = 0.25  # lasts seconds after the change
    config["models"][0]["limits"]["retries"] = 0
    config["models"][0] |= source | changes
    return write_config(tmp_path, config)


@pytest.mark.parametrize("kind", ["key_file", "key_command"])
def test_run__goes_on_with_the_key_that_is_there_when_one_expires(tmp_path, locked, kind):
    file = tmp_path / "key"
    code = f"print(open({str(file)!r}).read())"
    source = {"key_file": str(file)} if kind == "key_file" else {"key_command": [sys.executable, "-c", code]}
    path = keyed(tmp_path, locked, source)

    watcher = rotate(locked, file, lambda stats: stats["finished"] >= 20)
    code, output, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    watcher.join()

    assert code == 0, errors
    assert "80 of 80 trials done" in output
    assert "http 401" in output  # retried, not failed
    assert "failed" not in output


def test_run__goes_on_with_the_key_that_is_there_when_one_expires_amid_a_batch(tmp_path, locked, monkeypatch):
    quick = partial(Batching, poll=0.1, patience=0.2)
    monkeypatch.setattr("evalcube.flows.run.servers.Batching", quick)
    file = tmp_path / "key"
    set_batches(locked, seconds=0.5)
    path = keyed(tmp_path, locked, {"key_file": str(file)}, batch={"requests": 40})

    watcher = rotate(locked, file, lambda stats: stats["batches"]["batches"] >= 1)
    code, output, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    watcher.join()

    assert code == 0, errors
    assert "80 of 80 trials done" in output
