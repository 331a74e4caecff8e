"""Nodes whose own folders carry the names of ours, and the archive of our source."""

import json
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed.comm import CommClosedError

from deploy.clusters import ClusterError, ExistingScheduler, asking, existing
from deploy.clusters.existing import PACKAGES, pack_source

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def dask_cluster(scheduler_folder, worker_folder):
    """A scheduler and a worker, started in these directories by a Python that finds evalcube, too."""
    note = scheduler_folder / "scheduler.json"
    common = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(note))
    processes = []

    def start(folder, *arguments):
        # `-m` has the current directory at the head of the module path, as `dask worker` has it.
        command = [sys.executable, "-m", "dask", *arguments, *common]
        processes.append(
            subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )

    try:
        start(scheduler_folder, "scheduler", "--port", "0")
        deadline = time.monotonic() + 30
        while not note.exists() or not note.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        start(worker_folder, "worker", "--no-nanny", "--nthreads", "1")
        yield json.loads(note.read_text())["address"]
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:  # Dask's own shutdown now and then waits for ever
                process.kill()
                process.wait()


def folder_with(path, *files):
    for name in files:
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    path.mkdir(exist_ok=True)
    return path


@pytest.mark.parametrize(
    ("file", "hiding"),
    [("flows/__init__.py", "flows"), ("storage.py", "storage.py"), ("evalcube.py", "evalcube.py")],
)
def test_connect__names_what_hides_our_code_on_a_worker(tmp_path, file, hiding):
    plain, own = folder_with(tmp_path / "plain"), folder_with(tmp_path / "own", file)

    with (
        dask_cluster(plain, own) as address,
        pytest.raises(ClusterError) as caught,
        ExistingScheduler(address).connect(),
    ):
        pass

    message = str(caught.value)
    assert f"{own / hiding} hides evalcube's own '{Path(hiding).stem}' on tcp://127.0.0.1:" in message
    assert message.endswith("Rename it, or start that node from another directory.")
    assert "\n" not in message


def test_connect__names_what_hides_our_code_on_the_scheduler(tmp_path):
    plain, own = folder_with(tmp_path / "plain"), folder_with(tmp_path / "own", "deploy/__init__.py")

    with (
        dask_cluster(own, plain) as address,
        pytest.raises(ClusterError, match="hides evalcube's own 'deploy' on the scheduler") as caught,
        ExistingScheduler(address).connect(),
    ):
        pass

    assert str(caught.value).startswith(f"{own / 'deploy'} ")


def test_connect__a_folder_that_is_no_package_hides_nothing(tmp_path):
    own = folder_with(tmp_path / "own", "deploy/values.yaml", "flows/first.py")

    with dask_cluster(own, own) as address, ExistingScheduler(address).connect() as connection:
        found = connection.client.run(lambda: __import__("deploy").__file__)

    assert set(found.values()) == {str(ROOT / "deploy" / "__init__.py")}


def test_pack_source__holds_the_face_with_its_stub_and_all_packages(tmp_path):
    archive = pack_source(tmp_path)

    names = set(zipfile.ZipFile(archive).namelist())
    face = {path.name for path in ROOT.glob("evalcube.py*")}
    assert {name for name in names if "/" not in name} == face
    assert {f"{package}/__init__.py" for package in PACKAGES} <= names
    assert not [name for name in names if name.endswith(".pyc")]


class Dying:
    """A client some of whose calls meet a worker that dies."""

    def __init__(self, deaths):
        self.deaths = deaths

    def run(self, function):
        self.deaths -= 1
        if self.deaths >= 0:
            raise CommClosedError("reset by peer")
        return {"a worker": function()}

    def run_on_scheduler(self, function):
        return function()


def test_on_each_node__asks_again_where_a_worker_died(monkeypatch):
    monkeypatch.setattr(asking.time, "sleep", lambda _: None)

    assert existing._on_each_node(Dying(2), lambda: 7) == {"a worker": 7, "the scheduler": 7}
    with pytest.raises(ClusterError, match="end while they are asked"):
        existing._on_each_node(Dying(100), lambda: 7)
