"""A task whose result goes with its worker is waited for again, and ends no sweep."""

import queue
from functools import partial
from types import SimpleNamespace

import pytest
from distributed.scheduler import KilledWorker

from evalcube.deploy.clusters import ClusterError, Connection
from evalcube.flows.run.driver import Driver
from evalcube.flows.run.in_flight import RegionProgress
from evalcube.flows.run.worker.poison import raise_if_failed
from tests.flows.run.parts import run_parts
from tests.flows.run.worker.test_poison import Done


class Lost:
    """A future that finished, was lost with its worker, and is computed again."""

    def __init__(self):
        self.status = "lost"
        self.waiting = []

    def add_done_callback(self, callback):
        self.waiting.append(callback)

    def computed_again(self):
        self.status = "finished"
        for callback in self.waiting:
            callback(self)


def test_init__has_suspects_run_alone_while_nothing_else_is_under_way():
    plan = SimpleNamespace(judges=(), evaluations=())
    cube, ledger = SimpleNamespace(records=None), SimpleNamespace(newest=dict)
    work = SimpleNamespace(by_evaluation=(), stale=(), uncompared=(0,))
    connection = Connection(None, SimpleNamespace(look=lambda: None))
    driver = Driver(run_parts(connection), SimpleNamespace(plan=plan, cube=cube, ledger=ledger), work, 1)
    is_quiet = driver._poison.is_quiet
    assert is_quiet()

    driver._under_way[1,] = (Lost(), print)
    assert not is_quiet()

    driver._under_way.clear()
    driver._counting._comparisons = [SimpleNamespace(status="pending")]
    assert not is_quiet()


def test_take_arrived__waits_again_for_what_was_lost_with_its_worker():
    driver = Driver.__new__(Driver)
    driver._arrived = queue.Queue()
    driver._workers = SimpleNamespace(note_work=lambda: None)
    future, handled = Lost(), []
    driver._arrived.put((handled.append, future))

    driver._take_arrived()
    assert handled == []

    future.computed_again()
    driver._take_arrived()
    assert handled == [future]


@pytest.mark.parametrize(
    ("begun", "left"),
    [
        ({"one": frozenset({(1,)}), "two": frozenset({(2,)})}, [(3,)]),
        ({"one": frozenset({(1,)})}, []),  # of the other one nobody knows
    ],
)
def test_leave_untouched__waits_for_blocks_of_which_a_worker_has_something(begun, left):
    driver, settled, released = Driver.__new__(Driver), [], []
    driver._under_way = {
        key: (SimpleNamespace(release=partial(released.append, key)), settled.append)
        for key in ((1,), (2,), (3,))
    }

    driver._leave_untouched(SimpleNamespace(answer=lambda: begun), 2)

    assert released == left
    assert settled == [[]] * len(left)
    assert driver._under_way.keys() == {(1,), (2,), (3,)} - set(left)


@pytest.mark.parametrize("status", ["finished", "lost"])
def test_raise_if_failed__nothing_where_there_is_or_will_be_a_result(status):
    raise_if_failed(SimpleNamespace(status=status))


def test_raise_if_failed__tells_what_the_cluster_gave_up():
    with pytest.raises(ClusterError, match="gave up"):
        raise_if_failed(SimpleNamespace(status="cancelled"))


def test_grade_again__keeps_what_is_there_and_waits_for_blocks_whose_results_died():
    driver, added = Driver.__new__(Driver), []
    driver._poison = SimpleNamespace(add=lambda block, settle: added.append((block, settle)))
    region = RegionProgress(None, 0, None)
    first, died, last = Done(1), Done(error=KilledWorker("task", None, 3)), Done(2)

    driver._grade_again(region, [("a", first), ("b", died), ("c", last)])

    assert region.graded == [("a", first), ("c", last)]
    assert region.open_blocks == 1
    ((block, settle),) = added
    settle([(block, again := Done(3))])
    assert region.graded[2:] == [("b", again)]
    assert region.open_blocks == 0
