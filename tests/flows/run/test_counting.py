"""When counters are written, of which models, by how many tasks, and what becomes of those that died."""

from types import SimpleNamespace

import pytest

from evalcube.flows.run import counting
from evalcube.flows.run.counting import Counting
from evalcube.storage.cube.regions import Region


class Run:
    """Tasks that are submitted, and the handlers that wait for them; a clock."""

    def __init__(self, monkeypatch, *, regions=(), stale=(), uncompared=(), flush=10.0):
        self.tasks, self.handlers, self.notes, self.now = [], [], [], 100.0
        monkeypatch.setattr(counting, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(counting, "is_killed", lambda future: future.status == "killed")
        monkeypatch.setattr(counting, "raise_if_failed", self._raise_if_failed)
        parts = SimpleNamespace(
            context=SimpleNamespace(run="run"),
            flush_seconds=flush,
            emit=SimpleNamespace(note=self.notes.append),
        )
        store = SimpleNamespace(ledger=SimpleNamespace(newest=lambda: dict.fromkeys(regions)))
        work = SimpleNamespace(stale=stale, uncompared=uncompared)
        self.counting = Counting(parts, store, work, self._submit, lambda *pair: self.handlers.append(pair))

    def _raise_if_failed(self, future):
        if future.status == "error":
            raise ValueError("as the task did")

    def _submit(self, stage, function, *arguments, priority=0):
        task = SimpleNamespace(
            stage=stage, function=function.__name__, arguments=arguments, priority=priority
        )
        self.tasks.append(task)
        task.status = "pending"
        return task

    def of_stage(self, stage):
        return [task for task in self.tasks if task.stage == stage]

    def end(self, status="finished"):
        ((future, done),) = self.handlers
        self.handlers.clear()
        future.status = status
        done(future)

    def record(self, model, trial=0):
        self.counting.add_receipt(SimpleNamespace(region=Region(model, trial, 0)))


def test_write_due__waits_for_its_time_and_for_something_to_count(monkeypatch):
    run = Run(monkeypatch)
    run.counting.write_due(last=True)
    assert run.tasks == []
    assert not run.counting.behind

    run.record(3)
    assert run.counting.behind
    for now, tasks in ((105.0, 0), (110.0, 0), (110.1, 2)):
        run.now = now
        run.counting.write_due(last=False)
        assert len(run.tasks) == tasks
    assert run.counting.behind  # until it is done
    run.end()
    assert not run.counting.behind


def test_write_due__at_the_end_is_at_once(monkeypatch):
    run = Run(monkeypatch, regions=[Region(1, 4, 0), Region(1, 2, 0), Region(0, 0, 0)], stale=[1])
    run.record(1, 3)
    run.counting.write_due(last=True)

    score, analyze = run.tasks
    assert (score.function, score.priority) == ("score", 20)
    assert score.arguments == ("run", [[Region(1, 2, 0), Region(1, 3, 0), Region(1, 4, 0)]], [])
    assert (analyze.stage, analyze.arguments, analyze.priority) == ("analyze", ("run", [1], [score]), 30)


def test_write_due__has_one_writer_at_a_time(monkeypatch):
    run = Run(monkeypatch, stale=[1])
    run.counting.write_due(last=True)
    run.record(2)
    run.counting.write_due(last=True)
    assert len(run.of_stage("analyze")) == 1

    run.end()
    run.counting.write_due(last=True)

    assert [task.arguments[1] for task in run.of_stage("analyze")] == [[1], [2]]


def test_write_due__takes_some_models_at_a_time_in_tasks_of_some_regions(monkeypatch):
    regions = [Region(model, trial, 0) for model in range(30) for trial in range(8)]
    run = Run(monkeypatch, regions=regions, stale=range(30))
    run.counting.write_due(last=True)

    (analyze,) = run.of_stage("analyze")
    assert analyze.arguments[1] == list(range(25))
    counted = [[len(part) for part in task.arguments[1]] for task in run.of_stage("score")]
    assert sum(map(len, counted)) == 25
    assert all(sum(part) <= 32 for part in counted)
    assert len(counted) == 7
    assert analyze.arguments[2] == run.of_stage("score")
    run.end()
    run.counting.write_due(last=True)
    assert run.of_stage("analyze")[1].arguments[1] == list(range(25, 30))


def test_write_due__takes_a_twentieth_of_the_time_at_most(monkeypatch):
    run = Run(monkeypatch, stale=[1])
    run.now = 200.0
    run.counting.write_due(last=False)
    run.now = 203.0  # it took three seconds: the next one is due sixty after it began
    run.end()
    run.record(1)
    for now, tasks in ((210.1, 1), (260.0, 1), (260.1, 2)):
        run.now = now
        run.counting.write_due(last=False)
        assert len(run.of_stage("analyze")) == tasks


def test_write_due__after_a_quick_one_is_as_often_as_is_asked_for(monkeypatch):
    run = Run(monkeypatch, stale=[1])
    run.now = 200.0
    run.counting.write_due(last=False)
    run.now = 200.1
    run.end()
    run.record(1)
    run.now = 210.05
    run.counting.write_due(last=False)

    assert len(run.of_stage("analyze")) == 2


def test_done__counts_again_what_died_three_times_at_most(monkeypatch):
    run = Run(monkeypatch, stale=[1, 2], uncompared=["sort", "dates"])
    run.counting.compare_prompts()
    first, second = run.of_stage("generate")
    assert [task.arguments for task in (first, second)] == [("run", "sort"), ("run", "dates")]
    assert run.counting.comparing
    first.status, second.status = "killed", "finished"
    assert not run.counting.comparing

    for deaths in range(3):
        run.counting.write_due(last=True)
        assert run.of_stage("score")[-1].arguments[2] == ([first, second] if deaths == 0 else [second])
        run.end("killed")
        assert run.counting.behind
    assert len(run.notes) == 1
    run.counting.write_due(last=True)
    run.end("killed")

    assert not run.counting.behind
    assert [task.arguments[1] for task in run.of_stage("analyze")] == [[1, 2]] * 4


def test_done__raises_what_the_task_raised(monkeypatch):
    run = Run(monkeypatch, stale=[1])
    run.counting.write_due(last=True)

    with pytest.raises(ValueError, match="as the task did"):
        run.end("error")
