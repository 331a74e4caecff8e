"""Nodes whose own folders carry the names of ours, and the archive of our source."""

import io
import json
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalcube.deploy.clusters import ClusterError, ExistingScheduler
from evalcube.deploy.clusters.carried import packed_source
from evalcube.deploy.clusters.existing import Certificates
from tests.waiting import PATIENCE, wait_until

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
        wait_until(lambda: note.exists() and note.read_text().strip())
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


def state_after_install(connection):
    """How far the one worker gets with a plugin that is none."""
    connection.code.install("probe", None, owner="somebody", group="probe", endpoints=[])
    deadline = time.monotonic() + PATIENCE
    while True:
        (address,) = connection.code.look().answer().workers or [None]
        states = connection.code.states("probe", [] if address is None else [address]).answer()
        if address in states and (states[address].ready or states[address].problem):
            connection.code.remove("probe")
            return states[address]
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("file", "hiding"),
    [("evalcube/__init__.py", "evalcube"), ("evalcube.py", "evalcube.py")],
)
def test_install__names_what_hides_our_code_on_a_worker(tmp_path, file, hiding):
    plain, own = folder_with(tmp_path / "plain"), folder_with(tmp_path / "own", file)

    with dask_cluster(plain, own) as address, ExistingScheduler(address).connect() as connection:
        state = state_after_install(connection)

    assert not state.ready
    assert state.problem.startswith(f"{own / hiding} hides evalcube's own '{Path(hiding).stem}'")
    assert state.problem.endswith("Rename it, or start the worker from another directory")


def test_install__a_folder_that_is_no_package_and_packages_of_other_names_hide_nothing(tmp_path):
    own = folder_with(tmp_path / "own", "evalcube/values.yaml", "flows/__init__.py", "storage.py")

    with dask_cluster(own, own) as address, ExistingScheduler(address).connect() as connection:
        state = state_after_install(connection)
        found = connection.client.run(lambda: __import__("evalcube").__file__)

    assert "hides" not in state.problem
    assert set(found.values()) == {str(ROOT / "evalcube" / "__init__.py")}


def test_packed_source__holds_one_package_with_its_stub_and_all_rooms():
    _, archive = packed_source()

    names = set(zipfile.ZipFile(io.BytesIO(archive)).namelist())
    rooms = ("", "flows/", "stages/", "storage/", "deploy/")
    assert {name.split("/")[0] for name in names} == {"evalcube"}
    assert {f"evalcube/{room}__init__.py" for room in rooms} | {"evalcube/__init__.pyi"} <= names
    assert not [name for name in names if name.endswith(".pyc")]


def test_connect__without_certificates_says_what_it_needs():
    with (
        pytest.raises(ClusterError, match="needs certificates: name them in the cluster's `tls`") as caught,
        ExistingScheduler("tls://127.0.0.1:9").connect(),
    ):
        pass

    assert "\n" not in str(caught.value)


def test_connect__names_a_certificate_that_cannot_be_read(tmp_path):
    files = Certificates(str(tmp_path / "ca.pem"), "cert.pem", "key.pem")

    with (
        pytest.raises(ClusterError, match=r"cluster\.tls\.ca: .*ca\.pem cannot be read \(No such file"),
        ExistingScheduler("tls://127.0.0.1:9", tls=files).connect(),
    ):
        pass


@pytest.mark.parametrize("address", ["http://127.0.0.1:8786", "nowhere"])
def test_connect__an_address_of_another_kind_is_named_as_such(address):
    with pytest.raises(ClusterError, match=r"is no address of a scheduler\. Write it like tcp://host:8786"):
        ExistingScheduler(address, timeout=0.5).connect().__enter__()
