"""The cluster whose workers are jobs, with a Slurm that takes all and runs nothing."""

import logging
import stat
import sys
import time
from pathlib import Path

import pytest
from distributed.comm.core import CommClosedError

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.slurm import JobSettings, Slurm, crew
from evalcube.deploy.clusters.slurm.queue import JobState
from tests.waiting import PATIENCE

pytestmark = pytest.mark.cluster  # a scheduler listens


@pytest.fixture
def calls(monkeypatch):
    found = []
    monkeypatch.setattr(crew.queue, "submit", lambda script: found.append(script) or len(found))
    monkeypatch.setattr(crew.queue, "states", lambda _: {1: JobState("PENDING", "Priority")})
    monkeypatch.setattr(crew.queue, "cancel", lambda jobs, name: found.append((list(jobs), name)))
    return found


def slurm(tmp_path, **changes):
    return Slurm(JobSettings(logs=str(tmp_path / "logs")), "my sweep", interface="lo", **changes)


def test_connect__workers_get_a_key_that_only_this_user_can_read(tmp_path, calls):
    with slurm(tmp_path, jobs=2).connect() as connection:
        assert connection.client.scheduler.address.startswith("tls://127.0.0.1:")
        [folder] = (tmp_path / "logs").iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {
            path.name: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in folder.iterdir()
        } == dict.fromkeys(("ca.pem", "cert.pem", "key.pem"), 0)
        key = (folder / "key.pem").read_text()
        assert "PRIVATE KEY" in key
        assert f"--tls-key {folder}/key.pem" in calls[0]
        assert key not in calls[0]
        assert connection.dashboard.startswith("http://127.0.0.1:")
        assert connection.replaces

    assert list((tmp_path / "logs").iterdir()) == []
    name = folder.name.removesuffix(".tls")
    assert calls[2:] == [([1, 2], name)]


@pytest.mark.usefixtures("calls")
def test_tend__asks_slurm_beside_the_driver_and_returns_news_once(tmp_path, monkeypatch):
    monkeypatch.setattr("evalcube.deploy.clusters.slurm.cluster._LOOK_SECONDS", 0.0)
    with slurm(tmp_path).connect() as connection:
        notes = list(connection.tend({}))
        deadline = time.monotonic() + PATIENCE
        while len(notes) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
            notes += connection.tend({})

        assert notes[0].startswith("submitted to Slurm as evalcube-my-sweep-")
        assert notes[1:] == ["1 jobs wait in the queue (Priority)"]


@pytest.mark.usefixtures("calls")
def test_connect__a_worker_that_ends_in_the_middle_of_a_question_is_no_news(tmp_path, monkeypatch):
    # Not pytest's own handler: Dask, which silences those of its loggers meanwhile, may have got hold of it.
    said, handler, logger = [], logging.Handler(), logging.getLogger("asyncio")
    handler.emit = lambda record: said.append(str(record.exc_info[1]))
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, handler])

    with slurm(tmp_path).connect():
        for error in (CommClosedError("in TLS"), ValueError("a defect")):
            logger.error("never retrieved", exc_info=error)
    logger.error("never retrieved", exc_info=CommClosedError("later"))

    assert said == ["a defect", "later"]


@pytest.mark.usefixtures("calls")
def test_connect__a_refusal_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(_):
        raise ClusterError("sbatch refused the job: no")

    monkeypatch.setattr(crew.queue, "submit", refuse)

    with pytest.raises(ClusterError, match="sbatch refused"), slurm(tmp_path).connect():
        pass

    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.usefixtures("calls")
def test_connect__says_which_folder_cannot_be_made(tmp_path):
    (tmp_path / "logs").write_text("")

    with (
        pytest.raises(ClusterError, match=r"logs: the folder of the jobs' logs cannot be made"),
        slurm(tmp_path).connect(),
    ):
        pass

    assert Path(tmp_path / "logs").read_text() == ""


def test_connect__names_the_extra_that_encryption_needs(tmp_path, monkeypatch, calls):
    monkeypatch.setitem(sys.modules, "cryptography", None)

    with pytest.raises(ClusterError, match=r"cryptography .*pip install 'evalcube\[slurm\]'"):
        slurm(tmp_path).connect().__enter__()

    assert calls == []
