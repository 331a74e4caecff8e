"""What a scheduler knows of a run, and which workers its tasks may go to."""

import asyncio
from types import SimpleNamespace

import pytest

from evalcube.deploy.clusters.registrar import WANTED, Queue, Registrar, allow, is_chosen, is_known, look
from tests.cases import with_cases


class Thing(SimpleNamespace):
    """A worker or a task, which is only itself."""

    __hash__, __eq__ = object.__hash__, object.__eq__


class Scheduler:
    """A scheduler as far as a registrar looks at it: workers, tasks, and what it was told."""

    def __init__(self):
        self.workers, self.tasks, self.task_groups, self.plugins = {}, {}, {}, {}
        self.rescheduled, self.sent, self.moved, self.removed = [], [], [], []
        self.rpc = SimpleNamespace(remove=lambda address: self.removed.append(("rpc", address)))

    @property
    def running(self):
        return list(self.workers.values())

    def join(self, address, name="w", status="running", **resources):
        self.workers[address] = Thing(
            address=address, name=name, status=SimpleNamespace(name=status), resources=resources, executing=set(),
            long_running=set(), has_what=set(), last_seen=1.0, server_id=f"id-{address}",
        )  # fmt: skip
        return self.workers[address]

    def add(self, key, group, on=None, state="processing"):
        task = Thing(
            key=key,
            group=SimpleNamespace(name=group),
            worker_restrictions="unset",
            processing_on=on,
            who_has={on},
        )
        self.tasks[key] = task
        if on is not None:
            on.executing.add(task)
        counts = self.task_groups.setdefault(group, SimpleNamespace(name=group, states={})).states
        counts[state] = counts.get(state, 0) + 1
        return task

    def _reschedule(self, key, stimulus_id):
        assert stimulus_id.startswith("run-registrar")
        self.rescheduled.append(key)

    def bulk_schedule_unrunnable_after_adding_worker(self, worker):
        return {f"waits-for-{worker.address}": "processing"} if worker.name == "awaited" else {}

    def transitions(self, wanted, stimulus_id):
        assert stimulus_id
        self.moved.append(wanted)

    def remove_replica(self, task, worker):
        task.who_has.discard(worker)
        worker.has_what.discard(task)

    def worker_send(self, address, message):
        self.sent.append((address, message["op"], message.get("worker", message.get("keys"))))


@pytest.fixture
def scheduler():
    made = Scheduler()
    for address in ("a", "b"):
        made.join(address, name=f"w-{address}")
    return made


def registrar(scheduler, *, names=(), resource="", run="run", endpoints=("e",), group="-group"):
    made = Registrar(run, "client", group, list(endpoints), names, resource)
    asyncio.run(made.start(scheduler))
    scheduler.plugins[made.name] = made
    return made


def test_allow__keeps_the_runs_tasks_where_they_may_go(scheduler):
    own, other = scheduler.add("own", "infer-group"), scheduler.add("other", "theirs")
    run = registrar(scheduler)

    run.allow(["a"])
    assert (own.worker_restrictions, other.worker_restrictions) == ({"a"}, "unset")
    run.allow(["a", "b"])
    assert own.worker_restrictions is None  # nobody is to be kept away
    run.allow([])
    assert own.worker_restrictions == {"nowhere"}


def test_allow__does_nothing_where_nothing_changed(scheduler):
    run = registrar(scheduler)
    run.allow(["a"])
    task = scheduler.add("own", "infer-group")

    run.allow(["a"])
    assert task.worker_restrictions == "unset"
    run.allow(["a"], silent=["gone"])
    assert task.worker_restrictions == {"a"}


def test_allow__moves_what_is_under_way_on_a_worker_that_is_barred(scheduler):
    on_b, on_a = (scheduler.add(key, "infer-group", on=scheduler.workers[key]) for key in "ba")
    scheduler.add("other", "theirs", on=scheduler.workers["b"])

    registrar(scheduler).allow(["a"])

    assert scheduler.rescheduled == ["b"]
    assert on_b.worker_restrictions == on_a.worker_restrictions == {"a"}


def test_allow__has_tasks_begin_that_waited_for_a_worker(scheduler):
    scheduler.join("c", name="awaited")

    registrar(scheduler).allow(["a", "b", "c"])

    assert scheduler.moved == [{"waits-for-c": "processing"}]


def test_allow__gives_up_what_a_silent_worker_has(scheduler):
    silent = scheduler.workers["b"]
    lost, kept, other = (
        scheduler.add(key, group) for key, group in (("x", "g-group"), ("y", "g-group"), ("z", "o"))
    )
    for task, holders in ((lost, {silent}), (kept, {silent, scheduler.workers["a"]}), (other, {silent})):
        task.who_has = holders
        silent.has_what.add(task)

    registrar(scheduler).allow(["a"], silent=["b", "gone"])

    assert scheduler.moved == [{"x": "released"}]
    assert silent.has_what == {other}
    ((address, op, keys), (peer, told, worker)) = scheduler.sent
    assert (address, op, sorted(keys)) == ("b", "free-keys", ["x", "y"])
    assert (peer, told, worker) == ("a", "remove-worker", "b")
    assert scheduler.removed == [("rpc", "b")]


def test_hooks__keep_away_who_joins_and_forget_who_leaves(scheduler):
    run = registrar(scheduler)
    run.allow(["a", "b"])
    first = scheduler.add("first", "infer-group")
    scheduler.join("c")
    run.add_worker(scheduler, "c")
    assert first.worker_restrictions == {"a", "b"}

    second = scheduler.add("second", "infer-group")
    first.worker_restrictions = "unset"
    run.update_graph(scheduler, tasks=["second", "none"])
    assert (first.worker_restrictions, second.worker_restrictions) == ("unset", {"a", "b"})
    del scheduler.workers["b"]
    run.remove_worker(scheduler, "b")
    scheduler.join("b")
    run.add_worker(scheduler, "b")

    assert first.worker_restrictions == {"a"}  # another process has its address


def test_restrict__keeps_to_the_workers_that_are_chosen(scheduler):
    task = scheduler.add("own", "infer-group")
    registrar(scheduler, names=["w-b"]).allow(["a", "b"])

    assert task.worker_restrictions == {"b"}


@with_cases(
    ("names", "resource", "chosen"),
    [
        ([], "", True),
        (["w"], "", True),
        (["tcp://a"], "", True),
        (["x"], "", False),
        ([], "gpu", True),
        ([], "tpu", False),
        (["w"], "tpu", False),
        (["5"], "gpu", False),
    ],
)
def test_is_chosen__by_name_or_address_and_resource(names, resource, chosen):
    assert is_chosen("tcp://a", "w", {"gpu": 1}, names, resource) == chosen
    assert is_chosen("tcp://a", 5, {"gpu": 1}, ["5"], "")


def test_queue__counts_the_runs_tasks_and_those_of_others(scheduler):
    a, b = scheduler.workers.values()
    run = registrar(scheduler)
    assert run.queue() == Queue()
    scheduler.add("1", "infer-group", on=a)
    b.long_running.add(scheduler.add("2", "process-group"))
    scheduler.add("3", "infer-group", state="queued")
    scheduler.add("4", "infer-group", state="no-worker")
    scheduler.add("5", "infer-group", state="memory")
    for state in ("processing", "queued", "memory"):
        scheduler.add(state, "theirs", state=state)
    scheduler.add("never", f"{WANTED}-1", state="no-worker")

    assert run.queue() == Queue(running=2, waiting=2, others=2)


def test_shares__are_the_runs_that_ask_an_endpoint_in_one_order(scheduler):
    runs = [
        registrar(scheduler, run=name, endpoints=ends) for name, ends in (("z", "e"), ("y", "ef"), ("x", "f"))
    ]
    for run, since in zip(runs, (1.0, 2.0, 2.0), strict=True):
        run.since = since

    assert [run.shares() for run in runs] == [
        {"e": (2, 0)}, {"e": (2, 1), "f": (2, 1)}, {"f": (2, 0)}
    ]  # fmt: skip
    del scheduler.plugins["z-registrar"]
    assert runs[0].shares() == {}
    assert runs[1].shares() == {"e": (1, 0), "f": (2, 1)}


def test_look__tells_who_serves_and_who_may_not_be_used(scheduler):
    scheduler.join("c", name="w-c", status="paused")
    scheduler.join("d", name="w-d", status="closing")
    for number in range(7):
        scheduler.join(f"x{number}", name=f"other-{number}")
    run = registrar(scheduler)
    run.crashes = 3

    view = look("run", ["w-a", "w-b", "w-c", "w-d"], "", dask_scheduler=scheduler)

    assert view.workers == {"a": "w-a", "b": "w-b", "c": "w-c"}
    assert (view.paused, view.leaving, view.crashes) == ({"c"}, {"d"}, 3)
    assert view.others == [f"other-{number}" for number in range(5)]
    assert view.ids["a"] == "id-a"
    assert view.seen.keys() == view.workers.keys()
    assert view.shares == {"e": (1, 0)}
    unknown = look("other", [], "", dask_scheduler=scheduler)
    assert (unknown.shares, unknown.queue, unknown.crashes) == ({}, Queue(), 0)


def test_allow__of_a_run_that_is_there(scheduler):
    registrar(scheduler)
    task = scheduler.add("own", "infer-group")

    allow("other", ["a"], [], dask_scheduler=scheduler)
    assert task.worker_restrictions == "unset"
    allow("run", ["a"], [], dask_scheduler=scheduler)

    assert task.worker_restrictions == {"a"}
    assert is_known("run", dask_scheduler=scheduler)
    assert not is_known("other", dask_scheduler=scheduler)


@pytest.mark.parametrize(("client", "gone"), [("client", True), ("another", False)])
def test_remove_client__takes_the_run_away_with_its_driver(scheduler, client, gone):
    async def leave():
        run = Registrar("run", "client", "-group", [], (), "")
        told = []

        async def broadcast(msg, on_error):
            told.append((msg["op"], msg["name"], on_error))

        scheduler.broadcast, scheduler.remove_plugin = broadcast, told.append
        run.remove_client(scheduler, client)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return told

    assert asyncio.run(leave()) == (["run-registrar", ("plugin-remove", "run", "ignore")] if gone else [])
