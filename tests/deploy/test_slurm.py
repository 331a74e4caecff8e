"""What Slurm says of a job, with programs that say what they do on clusters."""

import pytest

from evalcube.deploy import slurm

pytestmark = pytest.mark.cluster


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes a program that runs a line of a shell."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def program(name, line):
        (tmp_path / name).write_text(f"#!/bin/bash\n{line}\n")
        (tmp_path / name).chmod(0o755)

    return program


@pytest.mark.parametrize(
    ("said", "state"),
    [("PREEMPTED", "PREEMPTED"), ("CANCELLED by 0", "CANCELLED"), ("NODE_FAIL", "NODE_FAIL")],
)
def test_state_of__is_what_accounting_remembers(programs, said, state):
    programs("sacct", f"[[ $* == *--jobs=7* ]] && echo '{said}'")

    assert slurm.state_of(7) == state


def test_state_of__is_what_the_controller_says_where_there_is_no_accounting(programs):
    programs("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    programs("scontrol", "echo 'JobId=7 JobState=PREEMPTED Reason=None Requeue=0 Restarts=0 ExitCode=0:15'")

    assert slurm.state_of(7) == "PREEMPTED"


def test_live_jobs__are_those_that_run_or_may_run(programs):
    programs("squeue", "printf '7|PREEMPTED\n8|REQUEUED\n9|PENDING\n'")

    assert slurm.live_jobs("evalcube-x-1") == {8: "REQUEUED", 9: "PENDING"}
