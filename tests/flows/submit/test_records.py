"""What a user has submitted is known from this user's own records alone."""

import json

import pytest

from deploy.clusters.slurm import queue
from flows.errors import SweepError
from flows.submit import watch
from flows.submit.chain import Chain
from flows.submit.records import Submission, SubmittedPart, remember, submissions, submissions_of


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
    Chain(60, 600).begun(7).write(place / "chain.json")
    calls = []
    monkeypatch.setattr(queue, "states", lambda _: {7: queue.JobState("RUNNING", "")})
    monkeypatch.setattr(
        queue,
        "cancel",
        lambda jobs, name: calls.append((jobs, name, Chain.read(place / "chain.json").stopped)),
    )

    assert watch.cancel(one) == 1

    assert calls == [({7}, "evalcube-x-1a2b3c-a", "cancelled")]


def test_wanted__asks_which_one_where_there_are_several(tmp_path):
    with pytest.raises(SweepError, match="nothing was submitted"):
        watch.wanted(None)
    remember(submission(tmp_path))
    assert watch.wanted(None).name == "evalcube-x-1a2b3c"
    remember(submission(tmp_path, "evalcube-y-000000"))
    with pytest.raises(SweepError, match="which one is meant"):
        watch.wanted(None)
    with pytest.raises(SweepError, match="no jobs were submitted for 'z'"):
        watch.wanted("z")
