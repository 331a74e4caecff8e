"""Who hears of what long work does: one kind of subscriber, called with the same events by every function."""

import threading
import time
from collections import Counter

import pytest

import evalcube as ec
from evalcube.events import Counted, Noted
from evalcube.flows.errors import WrongTypeError
from evalcube.flows.events import Announcer, address_of, process_at
from evalcube.flows.read.reader import Reader
from evalcube.storage.errors import StorageError
from tests.cases import with_cases


def test_announcer__calls_one_subscriber_at_a_time_whichever_threads_tell():
    inside, most, heard = 0, 0, []

    def slow(event):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.001)
        heard.append(event.number)
        inside -= 1

    announcer = Announcer([slow])
    threads = [threading.Thread(target=announcer.count, args=("rows", number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1
    assert sorted(heard) == list(range(8))


def test_noted__has_what_a_server_said_where_it_said_something():
    assert str(Noted("it ended")) == "it ended"
    assert str(Noted("it ended", "no memory")) == "it ended: no memory"


@with_cases("wrong", [print, "print", [print, None], {"a": print}, 7])
def test_announcer__refuses_what_cannot_be_called(wrong):
    with pytest.raises(WrongTypeError, match=r"`subscribers`: .* is no list of functions.*Give a list"):
        Announcer(wrong)


def test_public_functions__tell_what_they_count_and_what_a_person_should_read(
    small_sweep, tmp_path, monkeypatch
):
    def no_answer(_):
        raise StorageError("it is away", "cache", "")

    monkeypatch.setattr(Reader, "cache", no_answer)
    cube, shared = str(small_sweep / "cube.zarr"), str(tmp_path / "shared")
    log = tmp_path / "log.jsonl"
    log.write_text('{"prompt": "1 + 1?", "response": "2", "correct": 1, "model": "mine"}\n')
    calls = {
        "verify": lambda told: ec.verify(cube, subscribers=told),
        "publish": lambda told: ec.publish(cube, shared, tag="v1", subscribers=told),
        "pull": lambda told: ec.pull(shared, tmp_path / "mine.zarr", tag="v1", subscribers=told),
        "merge": lambda told: ec.merge(tmp_path / "both.zarr", [cube], subscribers=told),
        "import_logs": lambda told: ec.import_logs([log], tmp_path / "log.zarr", subscribers=told),
        "report": lambda told: ec.report(cube, tmp_path / "r.html", subscribers=told),
    }

    heard = {}
    for name, call in calls.items():
        events: list[object] = []
        call([events.append])
        heard[name] = Counter(
            event.noun if isinstance(event, Counted) else type(event) for event in events
        ).keys()

    assert heard["verify"] == {"regions compared"}
    assert {"regions compared", "regions written"} <= heard["publish"]
    assert "regions compared" in heard["pull"]
    assert heard["merge"] == {"regions written"}
    assert heard["import_logs"] == {"samples read"}
    assert heard["report"] == {Noted}


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:4321", "inproc://10.0.0.1/7/2"])
def test_address_of__is_that_of_any_process_there(address):
    assert address_of(process_at(address)) == address_of(process_at(address, 77)) == address
