"""States of a cube as commits of an Icechunk repository: equal to the byte, named for good, never lost in silence."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import xarray as xr

from evalcube.flows.cubes.statistics import leaderboard
from evalcube.flows.errors import SweepError
from evalcube.flows.publish.versions import (
    check_out_cube,
    commit_cube,
    repository_log,
    repository_tags,
    tag_commit,
)
from evalcube.flows.rework.verify import verify_cube
from evalcube.flows.run.sweep import run
from evalcube.flows.run.upsample import upsample
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.versions import write
from evalcube.storage.errors import (
    CubeExistsError,
    CubeNotFoundError,
    NotWritableError,
    StorageError,
    UnsupportedUrlError,
)
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, reset, simulator_stats, sweep_config
from tests.storage.support.cache_stores import s3_server

pytest.importorskip("icechunk")


@pytest.fixture(scope="module")
def made(tmp_path_factory, _served):
    """A folder with a finished sweep of a model."""
    reset(_served)
    folder = tmp_path_factory.mktemp("made")
    run(sweep_config(folder, _served.base_url, trials=8), cluster=SHARED)
    return folder


@pytest.fixture
def work(made, tmp_path):
    """A copy of it, as (config of the sweep, cube, repository)."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return str(tmp_path / "cube.zarr"), f"icechunk:{tmp_path / 'versions'}"


def grown(cube, served, trials=12):
    """Measure a cube further."""
    folder = Path(cube).parent
    config = sweep_config(folder, served.base_url, trials=8, cube=cube)
    return upsample(config, trials=trials, cluster=SHARED)


def bytes_of(url):
    space = space_of(url)
    return {key: space.get(key).data for key in space.list() if "lease" not in key and "live" not in key}


def test_commit__is_the_cube_to_the_byte(work):
    cube, repository = work

    done = commit_cube(cube, repository, message="first")

    theirs = bytes_of(repository)
    assert theirs.pop(write.DIGESTS)
    assert theirs == bytes_of(cube)
    assert done.changed == done.objects == len(theirs)
    shown, ours = (leaderboard(address).to_dict() for address in (repository, cube))
    assert shown["rows"] == ours["rows"]
    assert not verify_cube(repository).damages
    with xr.open_zarr(space_of(repository).zarr(), consolidated=False) as dataset:
        assert (dataset["status"] < 5).any()


def test_commit__writes_only_what_has_changed(work, simulator):
    cube, repository = work
    first = commit_cube(cube, repository)
    again = commit_cube(cube, repository)
    grown(cube, simulator)

    second = commit_cube(cube, repository, message="more")

    assert (again.changed, again.commit) == (0, first.commit)
    assert 0 < second.changed < second.objects
    assert second.trials > first.trials
    assert repository_log(repository)[0].message == "more"
    assert [one.trials for one in repository_log(repository)] == [second.trials, first.trials]
    old = leaderboard(f"{repository}#{first.commit}")
    assert old.to_dict()["rows"] != leaderboard(repository).to_dict()["rows"]


def test_tag__stays_for_good(work, simulator):
    cube, repository = work
    first = commit_cube(cube, repository)
    assert tag_commit(repository, "v1") == first.commit
    grown(cube, simulator)
    commit_cube(cube, repository)

    assert [(one.names, one.trials) for one in repository_tags(repository)] == [(["v1"], first.trials)]
    with pytest.raises(CubeExistsError, match="a tag v1 already"):
        tag_commit(repository, "v1")
    with pytest.raises(CubeExistsError, match="a branch main already"):
        tag_commit(repository, "main")
    with pytest.raises(CubeExistsError, match="is a tag, which stays"):
        commit_cube(cube, f"{repository}#v1", replace=True)
    with pytest.raises(UnsupportedUrlError, match="named by letters"):
        tag_commit(repository, "a b")


def test_checkout__can_be_measured_further_and_committed_to_a_branch(work, tmp_path, simulator):
    cube, repository = work
    first = commit_cube(cube, repository)
    theirs = str(tmp_path / "theirs.zarr")

    trials = check_out_cube(repository, theirs)
    assert_same_cube(theirs, cube)
    assert not verify_cube(theirs).damages
    reset(simulator)
    grown(theirs, simulator, trials=8)
    assert simulator_stats(simulator)["requests"] == 0
    grown(theirs, simulator)
    second = commit_cube(theirs, f"{repository}#trial")

    assert trials == first.trials < second.trials
    assert [one.commit for one in repository_log(repository)] == [first.commit]
    assert [one.commit for one in repository_log(f"{repository}#trial")] == [second.commit, first.commit]
    with pytest.raises(CubeExistsError):
        check_out_cube(repository, theirs)


def test_commit__refuses_to_lose_trials(work, tmp_path, simulator):
    cube, repository = work
    theirs = str(tmp_path / "theirs.zarr")
    shutil.copytree(cube, theirs)
    grown(theirs, simulator)
    commit_cube(theirs, repository)

    with pytest.raises(SweepError, match=r"has \d+ trials that '.*' lacks"):
        commit_cube(cube, repository)

    assert commit_cube(cube, repository, replace=True).changed
    assert commit_cube(theirs, repository).changed  # it has all of that, and more


def test_commit__refuses_a_branch_that_moved_meanwhile(work, simulator, monkeypatch):
    cube, repository = work
    commit_cube(cube, repository)
    grown(cube, simulator)
    # Somebody else commits between the look at the branch and the write.
    look = write.tip_of

    def stale(address):
        found = look(address)
        monkeypatch.setattr(write, "tip_of", look)
        commit_cube(cube, repository, message="theirs")
        return found

    monkeypatch.setattr(write, "tip_of", stale)
    with pytest.raises(StorageError, match="somebody has committed to main meanwhile"):
        commit_cube(cube, repository, message="ours")
    assert repository_log(repository)[0].message == "theirs"


def test_commit__refuses_a_cube_under_work(work):
    cube, repository = work
    with Lease.acquire(Cube.open(cube).records), pytest.raises(SweepError, match="a run works on"):
        commit_cube(cube, repository)


def test_killed_commit__leaves_the_branch_as_it_was(work, simulator):
    cube, repository = work
    first = commit_cube(cube, repository)
    grown(cube, simulator)
    code = f"""
        import os, signal
        from evalcube.storage.cube.versions import write
        put, left = write._put, [3]
        def dying(*arguments):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            put(*arguments)
        write._put = dying
        from evalcube.flows.publish.versions import commit_cube
        commit_cube({cube!r}, {repository!r})
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert [one.commit for one in repository_log(repository)] == [first.commit]
    assert commit_cube(cube, repository).changed


def test_checkout__refuses_what_was_not_committed(work, tmp_path, monkeypatch):
    cube, repository = work
    commit_cube(cube, repository)
    digests = write._digests
    monkeypatch.setattr(write, "_digests", lambda files: {**digests(files), "status/zarr.json": "0" * 64})

    with pytest.raises(StorageError, match=r"status/zarr\.json is not what was committed"):
        check_out_cube(repository, str(tmp_path / "out.zarr"))
    assert not (tmp_path / "out.zarr").exists()


def test_commits__are_read_only_and_named_where_there_are_none(work, tmp_path):
    cube, repository = work
    with pytest.raises(CubeNotFoundError):
        leaderboard(repository)
    commit_cube(cube, repository)

    with pytest.raises(CubeNotFoundError, match=r"no tag, branch or commit 'v9'.*main"):
        leaderboard(f"{repository}#v9")
    with pytest.raises(NotWritableError, match="evalcube checkout"):
        space_of(repository).put("x", b"")
    with pytest.raises(UnsupportedUrlError, match="begins with icechunk:"):
        commit_cube(cube, str(tmp_path / "no"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    with pytest.raises(CubeExistsError, match="something else is there"):
        commit_cube(cube, f"icechunk:{tmp_path / 'taken'}")


def test_commits__lie_in_buckets(work, monkeypatch):
    cube, _ = work
    with s3_server() as environment:
        for name, value in dict(environment).items():
            monkeypatch.setenv(name, value)
        repository = "icechunk:s3://bucket/versions"
        done = commit_cube(cube, repository)
        tag_commit(repository, "v1")
        space = space_of(f"{repository}#v1")

        assert leaderboard(f"{repository}#v1").to_dict()["rows"] == leaderboard(cube).to_dict()["rows"]
        assert os.environ["AWS_SECRET_ACCESS_KEY"].encode() not in pickle.dumps((space, space.zarr()))
        check_out_cube(f"{repository}#v1", "s3://bucket/out.zarr")
        assert not verify_cube("s3://bucket/out.zarr").damages
        assert commit_cube("s3://bucket/out.zarr", f"{repository}#other", replace=True).trials == done.trials
        with pytest.raises(StorageError):
            commit_cube(cube, "icechunk:s3://nowhere/versions")
