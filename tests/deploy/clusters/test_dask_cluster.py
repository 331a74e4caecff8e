"""Schedulers that somebody else runs."""

import os
import platform
import subprocess

import pytest

from evalcube.deploy.clusters import ClusterError, ExistingScheduler, dask_cluster

pytestmark = pytest.mark.cluster


def test_connect__without_certificates_says_what_it_needs():
    with (
        pytest.raises(ClusterError, match="needs certificates: name them in a file of Dask's own") as caught,
        ExistingScheduler("tls://127.0.0.1:9").connect(),
    ):
        pass

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8786", "nowhere"])
def test_connect__an_address_of_another_kind_is_named_as_such(address):
    with pytest.raises(
        ClusterError, match=r"is not the address of a scheduler\. Write it like tcp://host:8786"
    ):
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
