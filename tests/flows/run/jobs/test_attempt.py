"""One job of a chain, with a Slurm that is a table and runs that are lines of a shell."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from evalcube.flows.run.jobs import attempt as module
from evalcube.flows.run.jobs.attempt import attempt
from evalcube.flows.run.jobs.chain import MOST_JOBS, Attempt, Chain

pytestmark = pytest.mark.cluster


@pytest.fixture
def slurm(monkeypatch):
    """What was submitted and cancelled; `states` says how jobs are."""

    found = SimpleNamespace(states={}, submitted=[], cancelled=[])

    def submit(script, options):
        assert script == "#!/bin/bash"
        found.submitted.append(options)
        return 100 + len(found.submitted)

    monkeypatch.setattr(module.slurm, "state_of", found.states.get)
    monkeypatch.setattr(module.slurm, "live_jobs", lambda _: found.states)
    monkeypatch.setattr(module.slurm, "submit", submit)
    monkeypatch.setattr(module.slurm, "cancel", found.cancelled.extend)
    before = signal.getsignal(signal.SIGTERM)
    yield found
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def part(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "job.sh").write_text("#!/bin/bash")
    (tmp_path / "submission.json").write_text('{"cube": "c.zarr", "parts": {"a": "c.zarr"}}')
    Chain(3600).write(folder / "chain.json")
    return folder


def run(part, job, line):
    # The words of the run become arguments of the line.
    return attempt(part, job, workers=1, container=f"bash -c '{line}'")


def chain(part):
    return Chain.read(part / "chain.json")


@pytest.mark.usefixtures("slurm")
def test_attempt__runs_no_code_of_the_directory_in_which_it_was_submitted(part):
    run(part, 1, f'echo "$*" > {part}/words')

    assert (part / "words").read_text().startswith(f"-P -m evalcube run {part}/config.yaml")


@pytest.mark.usefixtures("slurm")
def test_attempt__waits_for_another_run_to_leave_the_cube_as_long_as_the_job_lasts(part):
    run(part, 1, f'echo "$*" > {part}/words')

    assert (part / "words").read_text().endswith("--wait 3600\n")


def test_attempt__that_completes_has_no_successor(slurm, part):
    assert run(part, 1, "exit 0") == 0

    assert slurm.submitted == [["--dependency=afternotok:1", "--kill-on-invalid-dep=yes"]]
    assert slurm.cancelled == [101]
    assert chain(part).complete


@pytest.mark.parametrize(("code", "ending"), [(1, "failed"), (2, "failed"), (70, "failed")])
def test_attempt__that_fails_is_followed(slurm, part, code, ending):
    assert run(part, 1, f"exit {code}") == 75

    assert slurm.cancelled == []
    assert [(one.ending, one.code) for one in chain(part).attempts] == [(ending, code)]


def test_attempt__a_run_that_was_stopped_ends_the_chain(slurm, part):
    assert run(part, 1, "exit 130") == 130

    assert slurm.cancelled == [101]
    assert chain(part).before_next(None).stopped.startswith("the run was stopped")


@pytest.mark.parametrize(
    ("state", "ending", "code"),
    [("RUNNING", "time", 75), ("COMPLETING", "", 75), ("CANCELLED", "cancelled", 130), (None, "time", 75)],
)
def test_attempt__that_is_told_to_end_says_why(slurm, part, state, ending, code):
    slurm.states[1] = state

    def tell():
        while not (part / "ready").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    teller = threading.Thread(target=tell)
    teller.start()
    ended = run(part, 1, f'trap "exit 130" TERM; touch {part}/ready; while :; do sleep 0.05; done')
    teller.join()

    assert ended == code
    assert chain(part).attempts[-1].ending == ending
    assert slurm.cancelled == ([101] if ending == "cancelled" else [])


def test_attempt__after_a_cancelled_one_does_nothing(slurm, part):
    chain(part).begun(1).write(part / "chain.json")
    slurm.states[1] = "CANCELLED"

    assert run(part, 2, "exit 0") == 0

    assert chain(part).stopped == "job 1 was cancelled"
    assert slurm.submitted == []
    assert len(chain(part).attempts) == 1


def test_attempt__a_chain_that_is_cancelled_meanwhile_stays_so(slurm, part):
    stop = (
        f'{sys.executable} -c "import json; p = \\"{part}/chain.json\\"; c = json.load(open(p)); '
        'c[\\"stopped\\"] = \\"cancelled\\"; json.dump(c, open(p, \\"w\\"))"; exit 1'
    )

    assert run(part, 1, stop) != 0

    assert chain(part).stopped == "cancelled"
    assert slurm.cancelled == [101]


def test_attempt__the_last_one_has_no_successor(slurm, part):
    earlier = tuple(Attempt(job, "time") for job in range(1, MOST_JOBS))
    replace(chain(part), attempts=earlier).write(part / "chain.json")

    assert run(part, MOST_JOBS, "exit 1") == 1

    assert slurm.submitted == []


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL", "TIMEOUT"])
def test_attempt__after_one_that_slurm_took_away_goes_on_and_counts_nothing(slurm, part, state):
    chain(part).begun(1).write(part / "chain.json")
    slurm.states[1] = state

    assert run(part, 2, "exit 1") == 75

    assert [one.ending for one in chain(part).attempts] == ["time", "failed"]
    assert chain(part).retries == 1


def test_attempt__that_is_given_back_to_the_queue_goes_on_with_the_successor_that_it_has(slurm, part):
    chain(part).begun(1).write(part / "chain.json")
    slurm.states.update({1: "RUNNING", 2: "PENDING"})

    assert run(part, 1, "exit 0") == 0

    assert [(one.job, one.ending) for one in chain(part).attempts] == [(1, "time"), (1, "complete")]
    assert slurm.submitted == []
    assert slurm.cancelled == [2]


def test_attempt__after_jobs_whose_run_could_not_start(slurm, part):
    assert attempt(part, 4, workers=1, container="bash -c 'exit 0'", unbegun=[2, 3]) == 0

    assert [(one.job, one.ending) for one in chain(part).attempts] == [
        (2, "unbegun"), (3, "unbegun"), (4, "complete")
    ]  # fmt: skip
    assert slurm.cancelled == [101]
