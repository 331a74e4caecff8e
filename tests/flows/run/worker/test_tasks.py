"""The tasks of one block, run one after the other in this process: nothing is made or read twice."""

import json
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.deploy.simulator.truth import HEADER, decode
from evalcube.flows.config.load import from_mapping
from evalcube.flows.events import from_message
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import Block, Window
from evalcube.flows.run.servers import serve_models
from evalcube.flows.run.worker import tasks, workspace
from evalcube.flows.run.worker.context import RunContext
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Result
from evalcube.stages.process.assertions import Graded
from evalcube.stages.reply.forms import Record
from evalcube.stages.reply.status import Status
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.regions import Region
from tests.flows.judging import LANDS, judged_config

TRIALS = len(LANDS)


class Node:
    """What the tasks ask of a Dask worker."""

    id = "worker"

    def get_current_task(self):
        return "task"

    def log_event(self, topic, message):
        """Nobody listens."""


@pytest.fixture
def block(tmp_path, monkeypatch):
    """A block of judged trials, its workspace, and counts of what is made and read."""
    plan = build_plan(from_mapping(judged_config(tmp_path, "http://127.0.0.1:9/v1")))
    with serve_models(from_mapping(judged_config(tmp_path, "http://127.0.0.1:9/v1")).models) as served:
        context = RunContext(
            "run",
            plan.spec(),
            plan.trials,
            plan.repeats,
            plan.prices,
            str(tmp_path / "cube.zarr"),
            str(tmp_path / "cache"),
            served.routes,
            "",
        )
    work = Workspace(context)
    counts = {"prepared": 0, "asked": 0}

    def ask(model, jobs, task):  # noqa: ARG001 - the signature of `Workspace.ask`
        counts["asked"] += len(jobs)
        for job in jobs:
            text = '{"reasoning": "r", "score": 4, "reason": "fine"}' if model == "grader" else "Answer: Rome"
            choice = {"message": {"content": text}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 3, "completion_tokens": 2}
            body = json.dumps({"choices": [choice], "usage": usage}).encode()
            work.cache.put(job.digest, Record(200, 0.5, body).encode())
        work.cache.commit()
        return [Result("stored", attempts=1) for _ in jobs]

    def counted(name, function):
        def call(*args):
            counts[name] += 1
            return function(*args)

        return call

    monkeypatch.setattr(tasks, "workspace", lambda _: work)
    monkeypatch.setattr(tasks, "get_worker", Node)
    monkeypatch.setattr(tasks, "secede", lambda: None)
    monkeypatch.setattr(work, "ask", ask)
    monkeypatch.setattr(workspace, "prepare_trials", counted("prepared", workspace.prepare_trials))
    window = Window(Region(0, 0, 0), (1, 1, TRIALS, 1), 0, 0)
    yield SimpleNamespace(
        block=Block(window, 0, 0, np.arange(TRIALS)), work=work, counts=counts, monkeypatch=monkeypatch
    )
    work.close()


def outcome_quality(block, answer, status):
    """How good a simulated judge is told that an output is, whose fact layer scores 2."""
    item = block.work.open_block(block.block)[0]
    item = item._replace(trial=replace(item.trial, answer=answer))
    layers = SimpleNamespace(
        graded_assertions=lambda *_: [
            Graded("equals", "fact", 1.0, True),
            Graded("equals", "fact", 3.0, False),
        ]
    )
    headers = tasks.truth_of_output(layers, item, None, SimpleNamespace(status=status), None, 2)
    truth = decode(headers[HEADER])
    assert truth.repeat == 2
    return truth.quality


def test_truth_of_output__is_what_is_known_of_it(block):
    assert outcome_quality(block, "Rome", Status.CORRECT) == pytest.approx((0.25 + 1.0) / 2)
    assert outcome_quality(block, "Rome", Status.INCORRECT) == pytest.approx(0.25 / 2)
    assert outcome_quality(block, "", Status.CORRECT) == outcome_quality(block, "", Status.INVALID) == 0.25


@pytest.mark.parametrize(("options", "guess"), [(("Rome", "Lima", "Oslo", "Bern"), 0.25), ((), 0.125)])
def test_truth_of_trial__lets_a_model_that_does_not_know_guess(block, options, guess):
    item = block.work.open_block(block.block)[0]
    trial = replace(item.trial, answer="Rome", options=options, guess_chance=0.125)

    truth = decode(tasks.truth_of_trial(item._replace(trial=trial))[HEADER])

    assert (truth.answer, truth.options, truth.guess) == ("Rome", options, guess)
    assert (truth.difficulty, truth.repeat) == (item.cell.difficulty, item.repeat)


def run_chain(block):
    made = tasks.generate("run", block.block)
    delivery = tasks.judge("run", block.block, tasks.infer("run", block.block, made))
    return tasks.process("run", block.block, delivery)


def test_chain__makes_trials_once(block):
    result = run_chain(block)

    assert block.counts["prepared"] == 1
    assert set(result.arrays["status"]) == {Status.CORRECT, Status.INCORRECT}
    assert result.arrays["judge"] == pytest.approx(np.full(TRIALS, 4.0))
    assert not result.causes


def test_chain__tells_the_driver_what_became_of_each_trial(block):
    events, ask = [], block.work.ask
    block.monkeypatch.setattr(Node, "log_event", lambda _, __, message: events.append(from_message(message)))
    made = tasks.generate("run", block.block)
    first = block.work.open_block(block.block)[0].request.digest
    ask("m", [SimpleNamespace(digest=first)], "another task")  # so that the cache answers it

    def ask_all_but_two(model, jobs, task):
        if model == "grader":
            return ask(model, jobs, task)
        failed = Result("failed", "http 500", "out of order", 3)
        return [*ask(model, jobs[:-2], task), failed, Result("skipped")]

    block.monkeypatch.setattr(block.work, "ask", ask_all_but_two)
    delivery = tasks.judge("run", block.block, tasks.infer("run", block.block, made))
    tasks.process("run", block.block, delivery)

    (event,) = events
    assert (event.key, event.model, event.cached) == (block.block.key, 0, 1)
    assert (event.trials, event.transport, event.missing) == (TRIALS - 2, 1, 1)
    assert (event.causes, event.details) == ({"http 500": 1}, {"http 500": "out of order"})
    counts = block.work.meter.totals()[block.work.plan.evaluations[0].model]
    assert (counts["requests"], counts["answers"]) == (TRIALS - 3 + 3, TRIALS - 3)
    assert counts["seconds"] == pytest.approx(0.5 * (TRIALS - 3))


def test_chain__counts_the_systems_that_answered_and_ends_that_nobody_knows(block):
    ask = block.work.ask

    def put(model, jobs, task):
        if model == "grader":
            return ask(model, jobs, task)
        for number, job in enumerate(jobs):
            choice = {
                "message": {"content": "Answer: Rome"},
                "finish_reason": "stop" if number % 3 else "tired",
            }
            body = {"choices": [choice], **({"system_fingerprint": "fp1"} if number % 2 else {})}
            block.work.cache.put(job.digest, Record(200, 0.5, json.dumps(body).encode()).encode())
        return [Result("stored", attempts=1) for _ in jobs]

    block.monkeypatch.setattr(block.work, "ask", put)

    result = run_chain(block)

    assert result.fingerprints == {"fp1": TRIALS // 2, "unknown end: tired": TRIALS // 3}


def test_chain__of_recorded_trials_counts_none_of_them_again(block):
    events = []
    block.monkeypatch.setattr(Node, "log_event", lambda _, __, message: events.append(from_message(message)))
    block.block = replace(block.block, recorded=True)

    result = run_chain(block)

    (event,) = events
    assert (event.key, event.model, event.causes) == (block.block.key, 0, result.causes)
    assert [result.rated, *result.causes.values()] == [TRIALS, TRIALS]  # no answer is there to be rated
    assert (event.trials, event.cached, event.transport, event.missing) == (0, 0, 0, 0)


@pytest.mark.parametrize("recorded", [False, True])
def test_chain__of_a_block_that_a_stop_finds_waiting_makes_nothing(block, recorded):
    block.work.drain()
    block.block = replace(block.block, recorded=recorded)

    result = run_chain(block)

    assert block.counts == {"prepared": 0, "asked": 0}
    assert result.arrays["status"].tolist() == ([] if recorded else [Status.MISSING] * TRIALS)
    assert not result.causes


def test_chain__that_a_stop_finds_before_it_asks_asks_nothing(block):
    made = tasks.generate("run", block.block)
    block.work.drain()

    delivery = tasks.judge("run", block.block, tasks.infer("run", block.block, made))

    assert (len(delivery.skipped), delivery.asked) == (TRIALS, TRIALS)
    assert block.counts == {"prepared": 1, "asked": 0}
    assert not block.work.drain()


@pytest.mark.parametrize("asked", [0, 1])
def test_drain__names_blocks_of_which_something_was_asked(block, asked):
    results = [Result("failed" if i < asked else "skipped") for i in range(TRIALS)]
    block.monkeypatch.setattr(block.work, "ask", lambda *_: results)

    tasks.infer("run", block.block, tasks.generate("run", block.block))

    assert block.work.drain() == ({block.block.key} if asked else set())


def test_infer__looks_each_request_up_once_and_asks_nothing_that_another_worker_stored(block):
    made = tasks.generate("run", block.block)
    first = block.work.open_block(block.block)[0].request.digest
    with closing(open_cache(block.work.context.cache)) as of_another:
        of_another.put_many([(first, Record(200, 0.5, b"{}").encode())])
    looked_up: list[str] = []
    get_many = block.work.cache.get_many
    block.monkeypatch.setattr(
        block.work.cache, "get_many", lambda keys: (looked_up.extend(keys), get_many(keys))[1]
    )

    delivery = tasks.infer("run", block.block, made)

    assert len(looked_up) == len(set(looked_up)) == TRIALS
    assert block.counts["asked"] == delivery.asked == TRIALS - 1


def test_written__has_the_newest_of_what_the_cache_took_at_hand_once(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace, "_AT_HAND_BYTES", 5)
    written = workspace.RecentReplies(open_cache(tmp_path))
    first, second, third = ("ab" * 32, "cd" * 32, "ef" * 32)

    new = written.put_all([(first, b"123"), (second, b"456"), (second, b"789")])
    written.put_all([(third, b"0")])

    assert new == [True, True, False]
    assert written.take([first, second, third]) == {second: b"456", third: b"0"}
    assert written.take([second]) == {}


def test_opened__takes_the_trials_that_were_made_to_be_compared(block):
    cell = block.work.plan.tasks[0].cells[0].cell
    made = [block.work.make_trial(cell, index) for index in range(TRIALS)]

    opened = [item.trial for item in block.work.open_block(block.block)]

    assert all(mine is theirs for mine, theirs in zip(opened, made, strict=True))
    block.work.forget(block.block)
    assert [item.trial for item in block.work.open_block(block.block)] == made


def test_opened__with_more_under_way_than_is_kept_makes_one_block_again_and_not_each(block):
    block.monkeypatch.setattr(workspace, "_KEPT_TRIALS", 2 * TRIALS)
    blocks = [replace(block.block, index=index) for index in range(3)]
    for one in blocks:
        block.work.open_block(one)

    for one in blocks:  # the answers come, those of the first one first
        block.work.open_block(one)
        block.work.forget(one)

    assert block.counts["prepared"] == 4
