"""What a job script does when its run ends, with an scontrol that writes down its arguments."""

import os
import signal
import subprocess

import pytest

from evalcube.deploy.slurm import job_script
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


@pytest.fixture
def job(tmp_path):
    """Runs a job whose run is a line of a shell: (exit code, whether it is requeued)."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/bash\necho "$@" > requeued\n')
    scontrol.chmod(0o755)

    def run(line, *, restarts=0, number=None, prologue=()):
        script = tmp_path / "job.sbatch"
        script.write_text(job_script("j", tmp_path / "%j.log", ["bash", "-c", line], prologue=prologue))
        path = f"{tmp_path}:{os.environ['PATH']}"
        slurm = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts)}
        with subprocess.Popen(
            ["bash", script],
            cwd=tmp_path,
            env={**os.environ, **slurm, "PATH": path},
            stderr=subprocess.DEVNULL,
        ) as process:
            if number is not None:
                wait_until((tmp_path / "ready").exists)
                process.send_signal(number)
            process.wait()
            requeued = tmp_path / "requeued"
            return process.returncode, requeued.exists() and requeued.read_text() == "requeue 7\n"

    return run


@pytest.mark.parametrize(
    ("code", "restarts", "requeued"),
    [(0, 0, False), (1, 2, True), (1, 3, False), (2, 0, False), (70, 0, False), (130, 0, False)],
)
def test_job__that_ends_by_itself_is_requeued_for_failed_requests_alone_and_not_for_ever(
    job, code, restarts, requeued
):
    assert job(f"exit {code}", restarts=restarts) == (0 if requeued else code, requeued)


@pytest.mark.parametrize(
    ("code", "restarts", "requeued"),
    [(130, 19, True), (130, 20, False), (1, 19, True), (0, 0, False), (2, 0, False)],
)
def test_job__whose_time_is_up_stops_its_run_and_is_requeued_while_there_is_work_left(
    job, code, restarts, requeued
):
    run = f"trap 'exit {code}' TERM; touch ready; while :; do sleep 0.05; done"

    assert job(run, restarts=restarts, number=signal.SIGUSR1) == (0 if requeued else code, requeued)


def test_job__whose_prologue_fails_ends_before_its_run(job, tmp_path):
    assert job("touch begun", prologue=["false"]) == (1, False)
    assert not (tmp_path / "begun").exists()
