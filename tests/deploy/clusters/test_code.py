"""How workers get a run's plugin, and what they and the scheduler say of theirs."""

import asyncio
import pickle
from functools import partial
from types import SimpleNamespace

import pytest

from evalcube.deploy.clusters import code
from evalcube.deploy.clusters.code import EVERYBODY, Code, State, WorkerChoice, give, source_digest, state_of

NO_EVALCUBE = ModuleNotFoundError("No module named 'evalcube'")


def give_to(worker, pickled):
    return asyncio.run(give("run", pickled, worker))


def test_give__names_what_cannot_be_imported_and_the_line_to_type():
    problem = give_to(SimpleNamespace(plugins={}), b"cno_such_package\nPlugin\n.")

    assert problem.startswith(
        "cannot import evalcube (ModuleNotFoundError: No module named 'no_such_package')."
    )
    assert "-m pip install" in problem


def test_give__adds_a_plugin_once():
    added = []

    async def plugin_add(plugin, name):
        worker.plugins[name] = plugin
        added.append(name)

    worker = SimpleNamespace(plugins={}, plugin_add=plugin_add)

    problems = [give_to(worker, pickle.dumps(partial(dict, a=1))) for _ in range(2)]

    assert problems == ["", ""]
    assert (added, worker.plugins) == (["run"], {"run": {"a": 1}})


@pytest.mark.parametrize(
    ("digest", "fits"), [("", True), (source_digest(), True), (source_digest()[::-1], False)]
)
def test_state_of__a_worker_without_the_plugin_is_unfit_with_another_source_alone(digest, fits):
    state = asyncio.run(state_of("run", digest, SimpleNamespace(plugins={}, id=7)))

    assert (state.problem == "") == fits
    assert (state.ready, state.there, state.id) == (False, False, "7")
    assert state.host
    assert fits or "-m pip install" in state.problem


def test_state_of__a_worker_with_the_plugin_is_what_that_says():
    plugin = SimpleNamespace(state=lambda worker: State(True, id=worker.id))
    worker = SimpleNamespace(plugins={"run": plugin}, id="w")

    assert asyncio.run(state_of("run", "another source", worker)) == State(True, "", "w", there=True)


def test_line_to_type__names_the_checkout_or_the_version(tmp_path, monkeypatch):
    assert code.line_to_type("py").startswith("py -m pip install /")
    monkeypatch.setattr(code, "_ROOT", tmp_path)

    assert "evalcube==" in code.line_to_type("py")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (EVERYBODY, ""),
        (WorkerChoice(("a",)), "named a"),
        (WorkerChoice(("a", "b"), "gpu"), "named a or b with the resource gpu"),
        (WorkerChoice((), "gpu"), "with the resource gpu"),
    ],
)
def test_worker_choice__reads_as_whom_it_chooses(choice, words):
    assert str(choice) == words


def scheduler_says(monkeypatch, outcome):
    """How `unfit_scheduler` puts what a scheduler returns or raises, asked for one source."""
    asked = []

    def answer():
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(code, "ask_scheduler", lambda *question: asked.append(question))
    monkeypatch.setattr(code.PendingAnswer, "within", lambda *_: SimpleNamespace(answer=answer))
    problem = Code("client", digest="abc").unfit_scheduler()
    assert asked == [("client", code.unlike, "abc")]
    return problem


def test_unfit_scheduler__is_empty_or_says_why_and_what_to_type(monkeypatch):
    assert scheduler_says(monkeypatch, "") == ""
    for outcome, words in [
        ("has another version", "has another version. "),
        (NO_EVALCUBE, "has no evalcube. "),
        (AttributeError("no Registrar"), "has another version of evalcube, or lacks what it requires (no "),
    ]:
        problem = scheduler_says(monkeypatch, outcome)
        assert problem.startswith(words)
        assert "python -m pip install" in problem
    with pytest.raises(OSError, match="reset"):  # a connection that breaks says nothing about its evalcube
        scheduler_says(monkeypatch, ConnectionResetError("reset"))


def states_of(monkeypatch, answers, given):
    """States of workers, by what each answers and what giving it the plugin leads to; who was given it."""
    offered = []

    async def ask_each(client, function, *args, workers, failures=False):  # noqa: ARG001
        if function is state_of:
            assert (args, failures) == (("run", ""), True)
            return {address: answers[address] for address in workers if address in answers}
        if function is give:
            offered.extend(workers)
            return {address: given[address] for address in workers if address in given}
        return {address: "/its/bin" for address in workers if address != "f"}

    monkeypatch.setattr(code, "ask_each", ask_each)
    monkeypatch.setattr(code, "PendingAnswer", lambda _, asking: asyncio.run(asking))
    return Code("client").states("run", "abcdefg"), offered


def test_states__gives_the_plugin_to_those_that_lack_it_and_could_have_it(monkeypatch):
    ready, new, hopeless = State(True), State(False, there=False), State(False, "other source", there=False)
    starting = State(False)
    answers = {"a": ready, "b": new, "c": new, "d": hopeless, "e": NO_EVALCUBE, "f": KeyError("x")}
    answers["g"] = OSError("gone")

    states, offered = states_of(monkeypatch, {**answers, "h": starting}, {"b": "", "c": "cannot import"})

    assert offered == ["b", "c"]
    assert (states["a"], states["b"], states["d"]) == (ready, new, hopeless)
    assert states["c"] == new._replace(problem="cannot import")
    assert "g" not in states  # a broken connection is no answer
    assert states["e"].problem.startswith("has no evalcube. ")
    assert "/its/bin/python -m pip" in states["e"].problem
    assert states["f"].problem.startswith("has another version of evalcube, or lacks what it requires ('x')")
    assert not states["e"].ready
    assert [states[address].id for address in "ef"] == ["e", "f"]


def test_submit__ranks_runs_before_their_stages():
    calls = []
    client = SimpleNamespace(submit=lambda *args, **options: calls.append((args, options)))

    Code(client, WorkerChoice(priority=2)).submit(len, "ab", key=("k", 1), priority=3)
    Code(client).submit(len, "ab", key=("k", 1), priority=3)

    (args, first), (_, second) = calls
    assert args == (len, "ab")
    assert (first["key"], first["pure"], second["priority"]) == (("k", 1), False, 3)
    assert first["priority"] - second["priority"] > 100
    assert (Code(client).elsewhere, Code(client, digest="x").elsewhere) == (False, True)
