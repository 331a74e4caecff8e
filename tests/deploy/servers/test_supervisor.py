"""How a server is looked after: started again when it ends or hangs, so many times, and given up in words."""

import threading
from types import SimpleNamespace

import pytest

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers import supervisor
from evalcube.deploy.servers.supervisor import Supervisor


class Server:
    """A server that ends, hangs or does not start, in an order that a test says."""

    name, log_tail = "srv", "1\n2\n3\n4\n5\n6"

    def __init__(self, notices=(), healthy=(), starts=()):
        self.notices, self.healthy, self.starts = list(notices), list(healthy), list(starts)
        self.calls = []

    @property
    def exit_notice(self):
        return self.notices.pop(0) if self.notices else ""

    def is_healthy(self, seconds):
        self.calls.append(("probe", seconds))
        return self.healthy.pop(0) if self.healthy else True

    def start(self):
        self.calls.append("start")
        if error := self.starts.pop(0) if self.starts else None:
            raise error

    def stop(self):
        self.calls.append("stop")


@pytest.fixture
def watch(monkeypatch):
    """Looks after a server for so many moments of a clock that a test sets: what was noted."""

    def run(server, *, moments=1, seconds=0.0, **options):
        clock = SimpleNamespace(now=0.0, left=moments)
        monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: clock.now))
        notes = []
        made = Supervisor(server, note=lambda *note: notes.append(note), **options)

        def wait(_):
            clock.now += seconds
            clock.left -= 1
            return clock.left < 0

        made._stop = SimpleNamespace(wait=wait, is_set=lambda: False)
        made._look_after()
        return made, notes

    return run


def test_look_after__starts_a_server_again_that_ended(watch):
    server = Server(notices=["srv ended with code 1"])

    made, notes = watch(server, moments=3)

    assert server.calls == ["stop", "start"]
    assert [note for note, _ in notes] == [
        "srv ended with code 1 and is started again (2 of 3 restarts left)", "srv is back"
    ]  # fmt: skip
    assert [said for _, said in notes] == ["2 | 3 | 4 | 5 | 6", ""]
    assert made.over == ""


@pytest.mark.parametrize(
    ("healthy", "restarts"),
    [([True] * 5, 0), ([False, False, True, False, False], 0), ([False, False, False, True, True], 1)],
)
def test_look_after__takes_three_unanswered_probes_in_a_row_for_a_server_that_hangs(watch, healthy, restarts):
    server = Server(healthy=healthy)

    watch(server, moments=len(healthy), seconds=30.0)

    assert server.calls.count(("probe", 10.0)) == len(healthy)
    assert server.calls.count("start") == restarts


def test_look_after__probes_every_half_minute(watch):
    server = Server()

    watch(server, moments=12, seconds=10.0)

    assert server.calls.count(("probe", 10.0)) == 4


def test_start_again__tries_until_the_restarts_are_used_up_and_says_why(watch, tmp_path):
    broken = DeployError("no GPU")
    server = Server(notices=["srv ended"], starts=[broken, broken, broken])

    made, notes = watch(server, given_up=tmp_path / "given up", moments=9)

    assert server.calls.count("start") == 3
    assert [note.partition(" and")[0] for note, _ in notes[:3]] == ["srv ended", "no GPU", "no GPU"]
    assert notes[-1][0] == "no GPU, and 3 restarts are used up: no further restart"
    assert made.over == "no GPU, and 3 restarts are used up: 2 | 3 | 4 | 5 | 6"
    assert (tmp_path / "given up").read_text() == made.over
    assert [path.name for path in tmp_path.iterdir()] == ["given up"]


def test_give_up__of_a_server_that_said_nothing_has_no_colon(watch, monkeypatch):
    monkeypatch.setattr(Server, "log_tail", "")
    monkeypatch.setattr(Supervisor, "restarts", 0)

    made, notes = watch(Server(notices=["srv ended"]))

    assert made.over == "srv ended, and 0 restarts are used up"
    assert len(notes) == 1


def test_stop__ends_a_server_and_who_looks_after_it(monkeypatch):
    monkeypatch.setattr(supervisor, "_POLL_SECONDS", 0.001)
    server = Server()
    made = Supervisor(server)
    made.stop()
    assert server.calls == ["stop"]

    made.start()
    thread = made._thread
    assert isinstance(thread, threading.Thread)
    made.stop()

    assert not thread.is_alive()
    assert server.calls[1] == "start"
    assert server.calls[-1] == "stop"
