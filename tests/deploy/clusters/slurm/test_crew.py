"""Keeping jobs in the queue, with a Slurm that is a table."""

import pytest

from evalcube.deploy.clusters.base import ClusterError
from evalcube.deploy.clusters.slurm import crew as module
from evalcube.deploy.clusters.slurm.crew import Crew, tail_of
from evalcube.deploy.clusters.slurm.queue import JobState, SlurmBusyError, printable


class Slurm:
    """Jobs that begin to run when they are submitted, unless told otherwise."""

    def __init__(self):
        self.jobs = {}
        self.refuses = None
        self.silent = False
        self.cancelled = []

    def submit(self, script):
        assert script == "script"
        if self.refuses is not None:
            raise self.refuses
        self.jobs[len(self.jobs) + 1] = JobState("RUNNING", "None")
        return len(self.jobs)

    def states(self, name):
        assert name == "evalcube-x-1"
        if self.silent:
            raise SlurmBusyError("squeue has not answered")
        return dict(self.jobs)

    def cancel(self, jobs, name):
        self.cancelled = [*jobs, name]

    def end(self, number, state="TIMEOUT"):
        self.jobs[number] = JobState(state, "")


@pytest.fixture
def slurm(monkeypatch):
    slurm, now = Slurm(), [0.0]
    slurm.now = now
    for name in ("submit", "states", "cancel"):
        monkeypatch.setattr(module.queue, name, getattr(slurm, name))
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    return slurm


def crew(tmp_path, wanted=2):
    return Crew("evalcube-x-1", "script", wanted, lambda number: tmp_path / f"{number}.log")


def names(*numbers):
    return [f"evalcube-x-1.{number}" for number in numbers]


def test_crew__replaces_jobs_that_have_ended(slurm, tmp_path):
    jobs = crew(tmp_path)
    assert jobs.start() == ["submitted to Slurm as evalcube-x-1"]
    assert jobs.look(names(1, 2)) == []

    slurm.end(1)
    slurm.end(2, "CANCELLED")
    notes = jobs.look([])

    assert sorted(jobs.jobs) == [3, 4]
    assert "1 of the jobs ended (CANCELLED); others are submitted in their place" in notes
    assert "jobs reach their walltime; each is replaced" in notes
    slurm.end(3, "COMPLETED")
    assert jobs.look(names(3)) == []  # what is routine is said once
    assert sorted(jobs.jobs) == [4, 5]


def test_crew__replaces_a_job_that_is_still_cleaned_up_after_and_says_later_how_it_ended(slurm, tmp_path):
    jobs = crew(tmp_path, wanted=1)
    jobs.start()
    slurm.jobs[1] = JobState("COMPLETING", "")
    assert jobs.look([]) == []
    assert list(jobs.jobs) == [1]  # no worker came from it: how it ends is of interest

    assert jobs.look(names(1)) == []
    assert list(jobs.jobs) == [2]
    slurm.end(1, "CANCELLED")
    assert jobs.look([]) == ["1 of the jobs ended (CANCELLED); others are submitted in their place"]
    assert jobs.look([]) == []


def test_crew__three_jobs_in_a_row_that_bring_no_worker_end_the_run_with_their_log(slurm, tmp_path):
    jobs = crew(tmp_path, wanted=1)
    jobs.start()
    for number in (1, 2):
        slurm.end(number, "FAILED")
        jobs.look([])
    (tmp_path / "3.log").write_text(
        "\n".join(f"line {i}" for i in range(40)) + "\nNo module named \x1b[31mdask"
    )
    slurm.end(3, "FAILED")

    with pytest.raises(ClusterError, match=r"3 jobs in a row .* the last one was 3 \(FAILED\)") as caught:
        jobs.look([])

    assert str(caught.value).count("\n  line") == 11
    assert "No module named ?[31mdask" in str(caught.value)


@pytest.mark.parametrize(("state", "came"), [("PREEMPTED", False), ("NODE_FAIL", False), ("FAILED", True)])
def test_crew__does_not_count_what_is_no_fault_of_the_job(slurm, tmp_path, state, came):
    jobs = crew(tmp_path, wanted=1)
    jobs.start()

    for number in range(1, 8):
        if came:
            jobs.look(names(number))
        slurm.end(number, state)
        jobs.look([])

    assert sorted(jobs.jobs) == [8]


def test_crew__counts_a_job_again_that_preemption_gave_back_to_the_queue(slurm, tmp_path):
    jobs = crew(tmp_path)
    jobs.start()
    jobs.look(names(1, 2))

    slurm.end(1, "COMPLETING")  # it may come back or not: its place is filled meanwhile
    jobs.look([])
    assert sorted(jobs.jobs) == [2, 3]
    slurm.end(1, "PENDING")
    assert jobs.look([]) == []
    assert sorted(jobs.jobs) == [1, 2, 3]
    slurm.end(2, "PREEMPTED")
    assert jobs.look([]) == ["1 of the jobs ended (PREEMPTED); others are submitted in their place"]
    assert sorted(jobs.jobs) == [1, 3]


def test_crew__refused_at_once_ends_and_refused_later_waits(slurm, tmp_path):
    slurm.refuses = ClusterError("sbatch refused the job: Invalid partition")
    with pytest.raises(ClusterError, match="Invalid partition"):
        crew(tmp_path).start()

    slurm.refuses = None
    jobs = crew(tmp_path)
    jobs.start()
    slurm.refuses = ClusterError("sbatch refused the job: QOSMaxSubmitJobPerUserLimit")
    slurm.end(1, "CANCELLED")
    assert "1 of 2 jobs for now: sbatch refused the job: QOSMaxSubmitJobPerUserLimit" in jobs.look(names(2))
    slurm.refuses = None
    jobs.look(names(2))
    assert len(jobs.jobs) == 1  # it is not asked again each time
    slurm.now[0] += 61
    jobs.look(names(2))
    assert len(jobs.jobs) == 2

    slurm.refuses = ClusterError("sbatch refused the job: Invalid account")
    for number in jobs.jobs:
        slurm.end(number, "CANCELLED")
    slurm.now[0] += 61
    with pytest.raises(ClusterError, match="Invalid account"):
        jobs.look([])


def test_crew__a_controller_that_does_not_answer_changes_nothing(slurm, tmp_path):
    jobs = crew(tmp_path)
    jobs.start()
    slurm.silent = True
    slurm.now[0] += 1000

    assert jobs.look([]) == []
    assert sorted(jobs.jobs) == [1, 2]

    slurm.refuses = SlurmBusyError("no answer")
    with pytest.raises(SlurmBusyError):
        crew(tmp_path).start()


def test_crew__a_job_that_is_not_listed_has_ended_but_not_at_once(slurm, tmp_path):
    jobs = crew(tmp_path, wanted=1)
    jobs.start()
    del slurm.jobs[1]
    slurm.jobs[7] = JobState("COMPLETED", "")  # of an earlier look
    assert jobs.look([]) == []
    assert list(jobs.jobs) == [1]

    slurm.now[0] += 61
    assert "1 of the jobs ended (gone)" in jobs.look([])[0]


def test_crew__says_why_jobs_wait_and_not_again_until_it_changes(slurm, tmp_path):
    jobs = crew(tmp_path)
    jobs.start()
    slurm.jobs[1] = slurm.jobs[2] = JobState("PENDING", "Priority")
    assert jobs.look([]) == ["2 jobs wait in the queue (Priority)"]
    assert jobs.look([]) == []
    slurm.jobs[2] = JobState("PENDING", "Resources")
    assert jobs.look([]) == ["2 jobs wait in the queue (Priority, Resources)"]
    slurm.now[0] += 601
    assert jobs.look([]) == ["2 jobs wait in the queue (Priority, Resources)"]


def test_crew__cancels_its_jobs_by_number_and_by_name(slurm, tmp_path):
    jobs = crew(tmp_path)
    jobs.start()

    jobs.end()

    assert slurm.cancelled == [1, 2, "evalcube-x-1"]


def test_tail_of__is_bounded_and_there_may_be_none(tmp_path):
    (tmp_path / "log").write_bytes(b"x" * 100_000 + b"\n\xff\x07end\n")

    assert tail_of(tmp_path / "log").endswith("\n  \N{REPLACEMENT CHARACTER}?end")
    assert len(tail_of(tmp_path / "log")) < 5000
    assert tail_of(tmp_path / "none") == ""


def test_printable__is_one_line_of_bounded_length():
    assert printable("a\n\n  b\x1b[0m") == "a; b?[0m"
    assert len(printable("x" * 1000)) == 303
