"""What a user has submitted is known from this user's own records alone."""

import json

import pytest

from evalcube.deploy import slurm
from evalcube.flows.run.jobs.chain import Chain
from evalcube.flows.run.jobs.submissions import (
    Submission,
    SubmittedPart,
    cancel,
    lines_about,
    outlooks,
    remember,
    submissions,
    submissions_of,
)
from tests.flows.support import evalcube, refused


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def submission(tmp_path, name="evalcube-x-1a2b3c", submitted="2026-01-01T00:00:00+00:00", **changes):
    cube = str(tmp_path / "c.zarr")
    part = SubmittedPart("a", f"{name}-a", 7, str(tmp_path / "c.parts" / "a.zarr"))
    fields = {
        "name": name,
        "submitted": submitted,
        "cube": cube,
        "folder": str(tmp_path / "jobs"),
        "parts": (part,),
    }
    return Submission(**{**fields, **changes})


def test_records__are_found_by_name_cube_and_part(tmp_path):
    assert submissions() == []
    first = submission(tmp_path)
    second = submission(tmp_path, "evalcube-y-000000", "2026-01-02T00:00:00+00:00")
    for one in (second, first):
        remember(one)

    assert submissions() == [first, second]
    assert submissions_of("evalcube-x-1a2b3c") == [first]
    assert submissions_of(first.cube) == [first, second]
    assert submissions_of(first.parts[0].cube) == [first, second]
    assert submissions_of("elsewhere.zarr") == []


@pytest.mark.parametrize(
    "change",
    [{"job_name": "x; rm -rf ~"}, {"job_name": "other-users-job"}, {"job": "7 8"}, {"more": 1}],
)
def test_records__that_hold_no_job_of_ours_are_left_out(tmp_path, change):
    remember(submission(tmp_path))
    [path] = (tmp_path / "state" / "evalcube" / "jobs").iterdir()
    document = json.loads(path.read_text())
    document["parts"][0] |= change
    path.write_text(json.dumps(document))

    assert submissions() == []


def test_cancel__stops_the_chain_before_its_jobs_end(tmp_path, monkeypatch):
    one = submission(tmp_path)
    place = tmp_path / "jobs" / "a"
    place.mkdir(parents=True)
    Chain(60).begun(7).write(place / "chain.json")
    calls = []
    monkeypatch.setattr(slurm, "live_jobs", lambda _: {7: "RUNNING"})
    monkeypatch.setattr(
        slurm,
        "cancel",
        lambda jobs, name: calls.append((jobs, name, Chain.read(place / "chain.json").stopped)),
    )

    assert cancel(one) == 1

    assert calls == [({7}, "evalcube-x-1a2b3c-a", "cancelled")]


@pytest.fixture
def queued(monkeypatch):
    """Slurm's jobs by their names, to be filled; those that are cancelled leave it."""
    found = {}

    def states(name):
        return {job: state for job, state in found.get(name, {}).items() if state in slurm._LIVE}

    monkeypatch.setattr(slurm, "live_jobs", states)
    monkeypatch.setattr(slurm, "cancel", lambda _, name: found.pop(name, None))
    return found


def submitted(tmp_path, queued, *states):
    """Several submissions of one cube, each with a job in one of the states, or none."""
    made = []
    for number, state in enumerate(states):
        name = f"evalcube-x-{number:06}"
        one = submission(tmp_path, name, f"2026-01-0{number + 1}T00:00:00+00:00", folder=str(tmp_path / name))
        (tmp_path / name / "a").mkdir(parents=True)
        Chain(60).begun(number).write(tmp_path / name / "a" / "chain.json")
        queued[f"{name}-a"] = {number: state} if state else {}
        remember(one)
        made.append(one)
    return made


def test_cancel__of_a_cube_ends_each_chain_that_works_on_it(tmp_path, queued):
    made = submitted(tmp_path, queued, "RUNNING", "RUNNING")

    assert [cancel(one) for one in submissions_of(made[0].cube)] == [1, 1]

    assert queued == {}
    folders = [tmp_path / one.name / "a" / "chain.json" for one in made]
    assert [Chain.read(path).stopped for path in folders] == ["cancelled", "cancelled"]


def test_cancel__leaves_the_reason_for_which_a_chain_has_ended(tmp_path, queued):
    [one] = submitted(tmp_path, queued, "")
    path = tmp_path / one.name / "a" / "chain.json"
    Chain(60, stopped="its jobs are used up").write(path)

    cancel(one)

    assert Chain.read(path).stopped == "its jobs are used up"


def test_lines_about__show_all_that_go_on_and_the_newest(tmp_path, queued):
    made = submitted(tmp_path, queued, "", "RUNNING", "")

    lines = lines_about(made[0].cube)

    assert [line for line in lines if line.startswith("submitted")] == [
        f"submitted as {one.name}, {one.submitted}; logs in {one.folder}" for one in made[1:]
    ]
    assert "a: job 1 RUNNING" in lines


def test_outlook__of_a_job_whose_prologue_failed_shows_the_end_of_its_log(tmp_path, queued):
    [one] = submitted(tmp_path, queued, "")
    folder = tmp_path / one.name / "a"
    Chain(60).write(folder / "chain.json")
    assert str(outlooks(one)[0]) == "a: no job is in the queue, and none has begun"
    (folder / "7.log").write_text("old\n" * 5000 + "module: \x1b[31mnot found\n\n" + "x" * 1000 + "\n")

    first, *log = str(outlooks(one)[0]).splitlines()

    assert first == "a: job 7 ended before its run could start, and no job goes on"
    assert log[-2:] == ["  | module: ?[31mnot found", f"  | {'x' * 300}..."]
    assert len(log) == 5
    Chain(60).begun(7).write(folder / "chain.json")
    assert str(outlooks(one)[0]).endswith("the last one, 7, ended: killed")
    (folder / "8.log").write_text("module: not found\n")
    assert str(outlooks(one)[0]).startswith("a: job 8 ended before its run could start")
    Chain(60, stopped="cancelled").write(folder / "chain.json")
    assert str(outlooks(one)[0]).startswith("a: ended: cancelled")


def test_outlook__does_not_say_that_no_job_goes_on_where_slurm_is_silent(tmp_path, queued, monkeypatch):
    [one] = submitted(tmp_path, queued, "RUNNING")

    def silent(_):
        raise slurm.SlurmBusyError("silent")

    monkeypatch.setattr(slurm, "live_jobs", silent)

    assert str(outlooks(one)[0]) == (
        "a: Slurm does not answer here, so that it is not known whether a job goes on"
    )


def test_stop__ends_the_jobs_of_a_cube_or_of_a_name_and_says_where_there_is_nothing(tmp_path, queued):
    first, second, _ = submitted(tmp_path, queued, "RUNNING", "PENDING", "")

    assert "1 job ended" in evalcube("stop", second.name, cwd=tmp_path)[1]
    assert "1 job ended" in evalcube("stop", first.cube, cwd=tmp_path)[1]
    refused(evalcube("stop", second.name, cwd=tmp_path), "no run works on")
    assert not any(queued.values())
