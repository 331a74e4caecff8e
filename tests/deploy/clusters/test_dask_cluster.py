"""Schedulers that somebody else runs."""

import concurrent.futures
import os
import platform
import subprocess
from types import SimpleNamespace

import pytest

from evalcube.deploy.clusters import ClusterError, ExistingScheduler, dask_cluster

pytestmark = pytest.mark.cluster


def test_connect__without_certificates_says_what_it_needs():
    with (
        pytest.raises(ClusterError, match="needs certificates") as caught,
        ExistingScheduler("tls://127.0.0.1:9").connect(),
    ):
        pass

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8786", "nowhere"])
def test_connect__an_address_of_another_kind_is_named_as_such(address):
    with pytest.raises(ClusterError, match="like tcp://host:8786"):
        ExistingScheduler(address, timeout=0.5).connect().__enter__()


def test_words__of_a_long_message_are_its_end():
    said = dask_cluster._words(
        RuntimeError("stdout:\nwell\nstderr:\n" + "noise\n" * 1000 + "error: invalid\tpartition\n")
    )

    assert said.endswith("noise; error: invalid?partition")
    assert len(said) == dask_cluster._LONGEST


def test_key_folder__removes_those_of_killed_runs_of_this_machine_alone(tmp_path):
    with subprocess.Popen(["true"]) as process:
        pass
    ours = f".evalcube-keys-{platform.node()}-"
    names = {f"{ours}{os.getppid()}", ".evalcube-keys-elsewhere-1", f"{ours}x"}
    for name in (*names, f"{ours}{process.pid}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").touch()

    with dask_cluster._key_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.name for path in tmp_path.iterdir()} == names | {folder.name}

    assert not folder.exists()


def test_tend__begins_ended_jobs_again_and_waits_after_a_failure(monkeypatch):
    clock, begun = [0.0], []

    def begin(gone, _):
        begun.append((gone, concurrent.futures.Future()))
        return begun[-1][1]

    monkeypatch.setattr(dask_cluster, "monotonic", lambda: clock[0])
    monkeypatch.setattr(dask_cluster, "_begin_anew", lambda _, gone: gone)
    monkeypatch.setattr(dask_cluster, "_loop_of", lambda _: None)
    monkeypatch.setattr(dask_cluster, "asyncio", SimpleNamespace(run_coroutine_threadsafe=begin))
    jobs = SimpleNamespace(worker_spec={"a": {}, "b": {}}, workers={"a": None, "b": None})
    monkeypatch.setattr(dask_cluster, "SpecCluster", SimpleNamespace)
    tended = dask_cluster._Tended(SimpleNamespace(cluster=jobs), code=object())

    def look(seconds, *present):
        clock[0] += seconds
        return [note.split()[0] for note in tended.tend({name: name for name in present})]

    assert look(0, "a", "b-0") == look(10, "a") == []
    assert look(0.5, "a") == ["1"]
    assert begun[0][0] == ["b"]
    assert look(30, "a") == []  # it is under way
    begun[0][1].set_exception(RuntimeError("no such partition"))
    assert len(look(0, "a")) == 1
    del jobs.workers["b"]
    assert look(59.5, "a") == []
    assert len(begun) == 1
    assert look(0.5, "a") == []  # what never came is begun again, and no news
    assert [gone for gone, _ in begun] == [["b"], []]
    begun[1][1].set_result(None)
    jobs.workers["b"] = None
    assert look(60, "a", "b") == []
    assert len(begun) == 2
