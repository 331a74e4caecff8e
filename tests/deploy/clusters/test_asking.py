"""Questions to workers of which one hangs, ends or fails."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from evalcube.deploy.clusters import ClusterError, Connection
from evalcube.deploy.clusters.asking import PendingAnswer, ask_each
from evalcube.storage.errors import StorageError
from tests.waiting import PATIENCE


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    asyncio.run_coroutine_threadsafe(ended(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def ended():
    """Wait until what was given up has ended: what is left pending would be a warning in whatever test comes next."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class Client:
    """A client of three workers, as Dask has it: the answers of all come together."""

    def __init__(self, loop, *, hangs=(), ends=()):
        self.loop = SimpleNamespace(asyncio_loop=loop)
        self.hangs, self.ends = hangs, ends
        self.calls = []

    async def _run(self, function, *, workers, on_error):
        assert on_error == "ignore"
        self.calls.append(workers)
        if set(self.hangs).intersection(workers):
            await asyncio.Event().wait()
        if set(self.ends).intersection(workers):
            raise OSError("reset by peer")
        return {address: function() for address in workers}


def ask(client):
    return PendingAnswer(client, ask_each(client, lambda: 7, workers=["a", "b", "c"], seconds=0.1)).answer(10)


async def stumble():
    raise AttributeError("'NoneType' object has no attribute 'broadcast'")


@pytest.mark.parametrize(
    ("scheduler", "status", "kind"),
    [(None, "connecting", OSError), (object(), "closed", OSError), (object(), "running", AttributeError)],
)
def test_question__what_dask_stumbles_over_without_a_scheduler_is_an_os_error(loop, scheduler, status, kind):
    client = Client(loop)
    client.scheduler, client.status = scheduler, status

    with pytest.raises(kind):
        PendingAnswer(client, stumble()).answer(10)


def test_explain_if_lost__says_that_the_scheduler_went_away(loop):
    client = Client(loop)
    client.scheduler, client.status = None, "closed"

    with pytest.raises(ClusterError, match="scheduler went away"), Connection(client).explain_if_lost():
        raise RuntimeError("no comm")
    with pytest.raises(StorageError, match="full"), Connection(client).explain_if_lost():
        raise StorageError("full", "here", "Look.")
    client.scheduler, client.status = object(), "running"
    with pytest.raises(RuntimeError), Connection(client).explain_if_lost():
        raise RuntimeError("a defect")


def test_ask_each__is_one_question_where_all_answer(loop):
    client = Client(loop)

    assert ask(client) == {"a": 7, "b": 7, "c": 7}
    assert client.calls == [["a", "b", "c"]]


@pytest.mark.parametrize("how", ["hangs", "ends"])
def test_ask_each__has_the_answers_of_the_others(loop, how):
    assert ask(Client(loop, **{how: ["b"]})) == {"a": 7, "c": 7}


def test_question__calls_whoever_waits_once_it_is_answered(loop):
    called, gate = threading.Event(), asyncio.Event()

    async def wait():
        await gate.wait()
        return 5

    question = PendingAnswer(Client(loop), wait())
    question.when_done(called.set)
    assert not question.done
    loop.call_soon_threadsafe(gate.set)

    assert question.answer(PATIENCE) == 5
    assert called.wait(PATIENCE)
    assert question.done


def test_question__is_given_up_after_its_time(loop):
    with pytest.raises(TimeoutError):
        PendingAnswer.within(Client(loop), asyncio.Event().wait(), seconds=0.05).answer()


def test_question__that_is_dropped_is_an_error_of_the_connection(loop):
    question = PendingAnswer(Client(loop), asyncio.Event().wait())
    question._future.cancel()  # as Dask does when it closes

    with pytest.raises(OSError, match="connection to the scheduler"):
        question.answer()
