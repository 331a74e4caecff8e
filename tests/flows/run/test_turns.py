"""Servers that take turns, without any server."""

import threading
from types import SimpleNamespace

import pytest

from evalcube.deploy.errors import DeployError
from evalcube.flows.run.turns import Turns
from tests.waiting import PATIENCE


class Server:
    """Stands for a supervisor: remembers what was done with it."""

    def __init__(self, name, log, problem=None):
        self.server = SimpleNamespace(name=f"the server of {name}")
        self.over = ""
        self._name, self._log, self._problem = name, log, problem

    def start(self):
        self._log.append(f"+{self._name}")
        if self._problem:
            raise DeployError(self._problem)

    def stop(self):
        self._log.append(f"-{self._name}")


def settle(turns):
    """Wait for what is being started or stopped."""
    for future in list(turns._changing.values()):
        future.exception()


def walk(turns, work):
    """Give turns until no model has work left; each poll does one piece of each model that may be asked."""
    asked = []
    for _ in range(100):
        turns.poll(lambda label: bool(work[label]))
        settle(turns)
        for label in work:
            if turns.is_over(label):
                work[label] = 0
            elif work[label] and turns.may_ask(label):
                asked.append(label)
                work[label] -= 1
        if not any(work.values()):
            return "".join(asked)
    raise AssertionError(f"stuck: {work}, {asked}")


@pytest.mark.parametrize(("keep", "most"), [(1, 1), (2, 2), (9, 3)])
def test_turns__never_more_than_may_run_and_each_until_it_is_done(keep, most):
    log = []
    servers = {name: Server(name, log) for name in "abc"}
    turns = Turns(servers, "abc", keep)

    asked = walk(turns, {"a": 3, "b": 2, "c": 2})

    assert sorted(asked) == sorted("aaabbcc")
    running, peak = set(), 0
    for entry in log:
        running = running | {entry[1]} if entry[0] == "+" else running - {entry[1]}
        peak = max(peak, len(running))
    assert peak == most
    assert sum(entry[0] == "+" for entry in log) == 3
    if keep == 1:
        assert asked == "aaabbcc"
    turns.stop()


def test_turns__who_runs_goes_first_when_there_is_more_to_do():
    log = []
    turns = Turns({name: Server(name, log) for name in "ab"}, "ab", 1)
    walk(turns, {"a": 1, "b": 1})

    assert walk(turns, {"a": 1, "b": 2}) == "bba"
    assert log == ["+a", "-a", "+b", "-b", "+a"]
    turns.stop()


def test_turns__nothing_is_started_that_has_nothing_to_ask():
    log = []
    turns = Turns({name: Server(name, log) for name in "ab"}, "ab", 1)

    assert walk(turns, {"a": 0, "b": 1}) == "b"
    assert log == ["+b"]
    turns.stop()


def test_turns__two_models_of_one_server_need_it_once():
    log = []
    one = Server("a", log)
    turns = Turns({"x": one, "y": one}, "xy", 1)

    assert sorted(walk(turns, {"x": 2, "y": 1})) == ["x", "x", "y"]
    assert log == ["+a"]
    turns.stop()


def test_turns__a_server_that_does_not_start_is_left_out_and_the_next_has_its_turn():
    log, notes = [], []
    servers = {"a": Server("a", log, "no GPU"), "b": Server("b", log)}
    turns = Turns(servers, "ab", 1, lambda *note: notes.append(": ".join(note)))

    assert walk(turns, {"a": 1, "b": 1}) == "b"
    assert any("no GPU" in note and "left out" in note for note in notes)
    turns.stop()


def test_turns__a_run_ends_if_none_of_them_starts():
    log = []
    turns = Turns({name: Server(name, log, f"no GPU for {name}") for name in "ab"}, "ab", 1)

    with pytest.raises(DeployError, match="no GPU for a"):
        walk(turns, {"a": 1, "b": 1})
    assert log == ["+a", "+b"]
    turns.stop()


def test_turns__one_that_is_given_up_makes_room_for_the_next():
    log = []
    servers = {name: Server(name, log) for name in "ab"}
    turns, work = Turns(servers, "ab", 1), {"a": 5, "b": 1}
    turns.poll(lambda label: bool(work[label]))
    settle(turns)
    turns.poll(lambda label: bool(work[label]))
    assert turns.may_ask("a")

    servers["a"].over = "it died again and again"

    assert turns.is_over("a")
    assert walk(turns, work) == "b"
    turns.stop()


def test_turns__others_are_started_together_and_stopped_if_one_fails():
    log, both = [], threading.Barrier(2, timeout=PATIENCE)

    class Slow(Server):
        def start(self):
            both.wait()  # neither waits for the other to be done
            super().start()

    servers = {"a": Slow("a", log), "b": Slow("b", log, "no GPU")}
    turns = Turns(servers)
    assert turns.may_ask("a")

    with pytest.raises(DeployError, match="no GPU"):
        turns.start()
    turns.stop()

    assert {"-a", "-b"} <= set(log)


def test_turns__a_model_without_a_server_of_its_own_may_always_be_asked():
    turns = Turns({})

    assert not turns.any
    assert turns.may_ask("m")
    assert not turns.is_over("m")
