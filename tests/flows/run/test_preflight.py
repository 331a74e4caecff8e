"""Who may take part in a run, before its start and later."""

from types import SimpleNamespace

import pytest

from evalcube.deploy.clusters import ClusterError
from evalcube.deploy.clusters.code import State
from evalcube.flows.errors import SweepError
from evalcube.flows.run import preflight
from evalcube.flows.run.preflight import Members
from evalcube.storage.reach import leave_tokens


class Answer:
    done = True

    def __init__(self, value):
        self.value = value

    def answer(self):
        return self.value


class Carried:
    """A cluster whose workers answer as a test says."""

    is_gone = False

    def __init__(self, **states):
        self.workers = states
        self.allowed, self.silent = [], []

    def states(self, name, workers):
        assert name == "run"
        return Answer({address: self.workers[address] for address in workers if address in self.workers})

    def allow(self, name, addresses, silent=()):
        assert name == "run"
        self.allowed.append(addresses)
        self.silent.append(silent)
        return Answer(None)


def ready(who="1", **changes):
    return State(**{"ready": True, "id": who, **changes})


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(preflight, "_LATE_SECONDS", -1.0)
    monkeypatch.setattr(preflight, "_MOST_QUESTIONS", float("inf"))
    monkeypatch.setattr(preflight, "_OTHERS_SECONDS", 0.2)


LACKS = "zarr 2.18.7 is too old (needs >= 3.0.8). Install what evalcube requires on every worker"


def test_first__leaves_out_and_names_workers_that_cannot_take_part():
    notes, code = [], Carried(a=ready(), b=State(False, LACKS, "2", "node2"))

    assert Members(code, "run", note=notes.append).first(["a", "b"]) == ["a"]

    assert [note.partition(" does")[0] for note in notes] == ["worker b (node2)"]
    assert notes[0].endswith(f": {LACKS}")
    assert code.allowed == [["a"]]


def test_first__of_workers_none_of_which_can_take_part_names_one_and_how_many_more():
    code = Carried(b=State(False, LACKS, "2", "node2"), c=State(False, LACKS, "3", "node3"))

    with pytest.raises(SweepError) as caught:
        Members(code, "run").first(["b", "c"])

    assert str(caught.value).startswith("worker b (node2): zarr 2.18.7 is too old (needs >= 3.0.8).")
    assert "1 more workers" in str(caught.value)


def test_first__begins_without_a_worker_that_does_not_answer_and_gives_it_no_tasks():
    notes, code = [], Carried(a=ready())

    assert Members(code, "run", note=notes.append).first(["a", "b"]) == ["a"]

    assert code.allowed == [["a"]]
    assert "1 workers of" in notes[0]
    assert "(b)" in notes[0]


def test_admit__takes_late_workers_in_once_they_are_ready_and_names_a_refused_one_once():
    notes, code = [], Carried(a=ready())
    admission = Members(code, "run", note=notes.append)
    admission.first(["a"])

    code.workers |= {"late": ready("2"), "bad": State(False, "does not see the cube", "3", "node3")}
    seen = [admission.admit(["a", "bad", "late"]) for _ in range(4)]

    assert seen[0] == ["a"]  # nobody waits for an answer
    assert seen[-1] == ["a", "late"]
    assert code.allowed[-1] == ["a", "late"]
    assert [note.partition(" does")[0] for note in notes] == ["worker bad (node3)"]


def test_first__leaves_out_a_worker_that_alone_cannot_reach_an_endpoint_until_it_can():
    why = {"api:443": "gpt: api:443 cannot be reached (refused)"}
    notes, code = [], Carried(a=ready(), b=ready("2", cut_off=why))
    admission = Members(code, "run", note=notes.append)

    assert admission.first(["a", "b"]) == ["a"]
    assert [note.startswith("worker b does") for note in notes] == [True]
    assert why["api:443"] in notes[0]
    assert code.allowed == [["a"]]

    code.workers["b"] = ready("2")
    seen = [admission.admit(["a", "b"]) for _ in range(3)]

    assert seen[-1] == ["a", "b"]
    assert code.allowed[-1] == ["a", "b"]


def test_first__takes_all_where_nobody_reaches_an_endpoint():
    why = {"api:443": "gpt: api:443 cannot be reached (refused)"}
    notes, code = [], Carried(a=ready(cut_off=why), b=ready("2", cut_off=why), late=ready("3", cut_off=why))
    admission = Members(code, "run", note=notes.append)

    assert sorted(admission.first(["a", "b"])) == ["a", "b"]
    assert [admission.admit(["a", "b", "late"]) for _ in range(3)][-1] == ["a", "b", "late"]
    assert notes == []


def test_first__of_workers_that_reach_different_endpoints_none_can_take_part():
    code = Carried(a=ready(cut_off={"x:1": "x is away"}), b=ready("2", cut_off={"y:1": "y is away"}))

    with pytest.raises(SweepError, match=r"worker a: x is away, .* x:1\. \(1 more"):
        Members(code, "run").first(["a", "b"])


def test_admit__moves_the_blocks_of_who_is_set_aside_and_gives_up_what_silent_ones_have():
    code = Carried(a=ready(), b=ready("2"), c=ready("3"))
    admission = Members(code, "run", note=list)
    admission.first(["a", "b", "c"])
    there = ["a", "b", "c"]

    assert [admission.admit(there, ["b"], ["b"]) for _ in range(3)][-1] == ["a", "c"]
    assert [admission.admit(there, ["b", "c"], ["b"]) for _ in range(3)][-1] == ["a"]
    assert [admission.admit(there) for _ in range(3)][-1] == there

    assert code.allowed == [there, ["a", "c"], ["a"], there]
    assert code.silent == [[], ["b"], [], []]


def test_admit__says_again_whom_to_keep_away_if_the_scheduler_did_not_hear_it():
    code = Carried(a=ready(), b=ready("2"))
    admission = Members(code, "run", note=list)
    admission.first(["a", "b"])
    lost, allow = Answer(None), code.allow
    lost.answer = lambda: (_ for _ in ()).throw(TimeoutError())
    code.allow = lambda *words: allow(*words) and lost

    admission.admit(["a", "b"], ["b"], ["b"])
    code.allow = allow
    admission.admit(["a", "b"], ["b"], ["b"])

    assert (code.allowed[1:], code.silent[1:]) == ([["a"]] * 2, [["b"]] * 2)


def test_set_aside__is_told_once_and_holds():
    notes, code = [], Carried(a=ready(), b=ready("2"))
    admission = Members(code, "run", note=notes.append)
    admission.first(["a", "b"])

    admission.set_aside("b", "its requests fail")
    seen = [admission.admit(["a", "b"]) for _ in range(3)]

    assert seen[-1] == ["a"]
    assert code.allowed[-1] == ["a"]
    assert [(note.partition(" does")[0], note.partition(": ")[2]) for note in notes] == [
        ("worker b", "its requests fail")
    ]


def test_admit__forgets_who_is_gone():
    code = Carried(a=ready())
    admission = Members(code, "run")
    admission.first(["a"])

    assert admission.admit([]) == []


def test_first__waits_for_the_answers_that_workers_leave(tmp_path, monkeypatch):
    for name in ("cube", "cache"):
        (tmp_path / name).mkdir()
    tokens = leave_tokens("r", tmp_path / "cube", tmp_path / "cache")
    assert [token.answer("1") for token in tokens] == ["", ""]
    code = Carried(a=ready("1"), b=ready("2"))
    monkeypatch.setattr(preflight, "_ANSWER_SECONDS", 0.1)

    notes = []
    assert Members(code, "run", tokens, notes.append).first(["a", "b"]) == ["a"]
    assert notes[0].startswith("worker b ")
    assert "wrote into" in notes[0]


def test_admit__gives_nobody_a_share_whose_tasks_may_still_be_taken_away():
    code = Carried(a=ready())
    admission = Members(code, "run")
    admission.first(["a"])
    pending = Answer(None)
    pending.done = False
    code.workers |= {"b": ready("2"), "late": ready("3")}
    admission.admit(["a", "b"])
    code.allow = lambda _, addresses, __=(): code.allowed.append(addresses) or pending
    assert admission.admit(["a", "b"]) == ["a", "b"]
    seen = [admission.admit(["a", "b", "late"])[:2] for _ in range(4)]
    pending.done = True

    assert seen == [["a", "b"]] * 4
    assert code.allowed == [["a"], ["a", "b"]]
    assert "late" in admission.admit(["a", "late"]) == ["a", "late"]


def test_first__goes_on_with_workers_that_take_the_places_of_others_and_says_that_it_waits(monkeypatch):
    monkeypatch.setattr(preflight, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(preflight, "_NOTE_SECONDS", -1.0)
    notes, code = [], Carried(b=ready())
    looks = iter([["a"], [], [], ["b"]])

    assert Members(code, "run", note=notes.append).first(["a"], lambda: next(looks)) == ["b"]

    assert [note.split()[0] for note in notes] == ["1", "all", "1"]


def test_first__of_a_cluster_whose_scheduler_went_away_says_so():
    code = Carried()
    code.is_gone = True

    with pytest.raises(ClusterError, match="scheduler went away"):
        Members(code, "run").first(["a"], list)


def test_first__of_a_cluster_whose_workers_all_left_says_so(monkeypatch):
    monkeypatch.setattr(preflight, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(preflight, "_FIRST_SECONDS", 0.2)

    with pytest.raises(ClusterError, match="all had gone"):
        Members(Carried(), "run").first(["a"], list)


@pytest.mark.parametrize(
    ("addresses", "far"),
    [
        (["tcp://127.0.0.1:5", "tls://localhost:5", "inproc://10.0.0.9/1", "tcp://[::1]:5"], ""),
        (["tcp://here:5", "tcp://10.0.0.1:5"], ""),
        (["tcp://127.0.0.1:5", "tcp://10.0.0.2:5"], "tcp://10.0.0.2:5"),
        ([], ""),
    ],
)
def test_refuse_far_workers__where_a_model_is_served_here_alone(monkeypatch, addresses, far):
    monkeypatch.setattr(preflight.socket, "gethostname", lambda: "here")
    monkeypatch.setattr(preflight.socket, "gethostbyname", lambda _: "10.0.0.1")
    here, there = (
        SimpleNamespace(name="a", endpoint="sim:"),
        SimpleNamespace(name="b", endpoint="https://h/v1"),
    )
    monkeypatch.setattr(preflight, "is_managed", lambda model: model is here)

    preflight.refuse_far_workers([there], addresses)
    if far:
        with pytest.raises(SweepError, match=f"models.a..*worker {far} is elsewhere"):
            preflight.refuse_far_workers([there, here], addresses)
    else:
        preflight.refuse_far_workers([there, here], addresses)


def test_own_address__of_a_host_without_one_is_empty(monkeypatch):
    def unknown(_):
        raise OSError("no such name")

    monkeypatch.setattr(preflight.socket, "gethostbyname", unknown)

    assert preflight._own_address() == ""
