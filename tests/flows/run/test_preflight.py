"""Who may take part in a run, before its start and later."""

import time

import pytest

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.code import State
from evalcube.flows.errors import SweepError
from evalcube.flows.run import preflight
from evalcube.flows.run.preflight import Admission
from evalcube.storage.reach import leave_tokens


class Answer:
    done = True

    def __init__(self, value):
        self.value = value

    def answer(self):
        return self.value


class Carried:
    """A cluster whose workers answer as a test says."""

    carried = True

    def __init__(self, **states):
        self.workers = states
        self.barred = []

    def states(self, name, workers):
        assert name == "run"
        return Answer({address: self.workers[address] for address in workers if address in self.workers})

    def bar(self, name, addresses):
        assert name == "run"
        self.barred.append(addresses)
        return Answer(None)


def ready(who="1", **changes):
    return State(**{"ready": True, "id": who, "time": time.time(), **changes})


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(preflight, "_LATE_SECONDS", -1.0)
    monkeypatch.setattr(preflight, "_MOST_QUESTIONS", float("inf"))
    monkeypatch.setattr(preflight, "_OTHERS_SECONDS", 0.2)


def test_first__names_the_worker_that_cannot_take_part_and_how_many_more():
    lacks = "zarr 2.18.7 is too old (needs >= 3.0.8). Install what evalcube requires on every worker"
    code = Carried(a=ready(), b=State(False, lacks, "2", "node2"), c=State(False, lacks, "3", "node3"))

    with pytest.raises(SweepError) as caught:
        Admission(code, "run").first(["a", "b", "c"])

    assert str(caught.value).startswith("worker b (node2): zarr 2.18.7 is too old (needs >= 3.0.8).")
    assert "1 more workers cannot take part either" in str(caught.value)


def test_first__begins_without_a_worker_that_does_not_answer_and_gives_it_no_tasks():
    notes, code = [], Carried(a=ready())

    assert Admission(code, "run", note=notes.append).first(["a", "b"]) == ["a"]

    assert code.barred == [["b"]]
    assert "1 workers of 2 do not answer (b): the run begins without them" in notes[0]


def test_admitted__takes_late_workers_in_once_they_are_ready_and_names_a_refused_one_once():
    notes, code = [], Carried(a=ready())
    admission = Admission(code, "run", note=notes.append)
    admission.first(["a"])

    code.workers |= {"late": ready("2"), "bad": State(False, "does not see the cube", "3", "node3")}
    seen = [admission.admitted(["a", "bad", "late"]) for _ in range(4)]

    assert seen[0] == ["a"]  # nobody waits for an answer
    assert seen[-1] == ["a", "late"]
    assert code.barred[-1] == ["bad"]
    assert notes == ["worker bad (node3) takes no part in the run: does not see the cube"]


def test_admitted__forgets_who_is_gone():
    code = Carried(a=ready())
    admission = Admission(code, "run")
    admission.first(["a"])

    assert admission.admitted([]) == []


def test_first__warns_of_a_clock_that_is_minutes_off():
    notes, code = [], Carried(a=ready(time=time.time() - 300, host="node1"))

    Admission(code, "run", note=notes.append).first(["a"])

    (note,) = notes
    assert note.startswith("the clock of worker a (node1) is 5.0 minutes behind: have it set (NTP)")


def test_first__waits_for_the_answers_that_workers_leave(tmp_path, monkeypatch):
    for name in ("cube", "cache"):
        (tmp_path / name).mkdir()
    tokens = leave_tokens("r", tmp_path / "cube", tmp_path / "cache")
    assert [token.answer("1") for token in tokens] == ["", ""]
    code = Carried(a=ready("1"), b=ready("2"))
    monkeypatch.setattr(preflight, "_ANSWER_SECONDS", 0.1)

    with pytest.raises(
        SweepError, match=r"worker b: wrote into the cube .* and this process does not see it"
    ):
        Admission(code, "run", tokens).first(["a", "b"])


def test_admitted__gives_nobody_a_share_whose_tasks_may_still_be_taken_away():
    code = Carried(a=ready())
    admission = Admission(code, "run")
    admission.first(["a"])
    pending = Answer(None)
    pending.done = False
    code.bar = lambda _, addresses: code.barred.append(addresses) or pending

    assert admission.admitted(["a", "late"]) == ["a"]
    code.workers["late"] = ready("2")
    seen = [admission.admitted(["a", "late"]) for _ in range(4)]
    pending.done = True

    assert seen == [["a"]] * 4
    assert code.barred == [["late"]]
    assert admission.admitted(["a", "late"]) == ["a", "late"]


def test_admitted__does_not_take_tasks_from_one_that_was_out_of_sight_for_a_moment():
    code = Carried(a=ready(), b=ready("2"))
    admission = Admission(code, "run")
    admission.first(["a", "b"])

    assert [admission.admitted(there) for there in (["a"], ["a", "b"])] == [["a"], ["a", "b"]]
    assert code.barred == []


def test_first__goes_on_with_workers_that_take_the_places_of_others_and_says_that_it_waits(monkeypatch):
    monkeypatch.setattr(preflight, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(preflight, "_NOTE_SECONDS", -1.0)
    notes, code = [], Carried(b=ready())
    looks = iter([["a"], [], [], ["b"]])

    assert Admission(code, "run", note=notes.append).first(["a"], lambda: next(looks)) == ["b"]

    assert notes == [
        "1 workers get ready; nothing is asked meanwhile",
        "all workers have gone: waiting for others; nothing is asked meanwhile",
        "1 workers get ready; nothing is asked meanwhile",
    ]


def test_first__of_a_cluster_whose_workers_all_left_says_so(monkeypatch):
    monkeypatch.setattr(preflight, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(preflight, "_PATIENCE_SECONDS", 0.2)

    with pytest.raises(ClusterError, match="after all had gone, within"):
        Admission(Carried(), "run").first(["a"], list)
