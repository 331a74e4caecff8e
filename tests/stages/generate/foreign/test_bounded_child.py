"""What the bounded process answers in its forks, and what it can reach."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evalcube.stages.generate.foreign import bounded
from evalcube.stages.generate.foreign.bounded import Failure
from tests.stages.generate.foreign.conftest import DOOR
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def test_ask__forgets_one_request_before_the_next(door):
    assert door("grow()") == ["warm", "used"]
    assert door("grow()  # again") == ["warm", "used"]


def test_ask__lets_one_fork_answer_as_many_as_the_limits_say(door):
    assert [len(door(f"grow()  # {i}", answers=3)) for i in range(5)] == [2, 3, 4, 2, 3]


@pytest.mark.parametrize("trouble", ["1 / 0", "loop()", "'a' * 2_000_000", "{1, 2}", "os._exit(1)"])
def test_ask__lets_no_fork_go_on_that_failed(door, trouble):
    assert len(door("grow()", answers=9)) >= 2
    assert isinstance(door(trouble, answers=9, cpu_seconds=1), Failure)

    assert len(door("grow()  # again", answers=9)) == 2


def test_ask__bounds_the_time_of_each_of_several_requests(door):
    work = "[i for i in iter(lambda: sum(os.times()[:2]) > {}, True)] and os.times()[0]"
    seconds = [door(work.format(end), answers=9, cpu_seconds=1) for end in (0.7, 1.3)]

    assert not any(isinstance(one, Failure) for one in seconds)  # together they took more
    assert "out of time" in door("loop()", answers=9, cpu_seconds=1).reason


@pytest.mark.parametrize(
    ("code", "limits", "reason"),
    [
        ("loop()", {"cpu_seconds": 1}, "grader ran out of time"),
        ("time.sleep(10_000)", {"wall_seconds": 1}, "grader ran out of time"),
        ("len(bytes(1 << 40))", {}, "grader ran out of memory"),
        ("'a' * 3000", {"answer_bytes": 2000}, "grader said more than 2000 bytes"),
        ("{1}", {}, "grader said what is no JSON"),
        ("1 / 0", {}, "grader raised ZeroDivisionError: division by zero"),
        ("sys.exit(0)", {}, "grader raised SystemExit: 0"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", {}, f"grader ended with signal {int(signal.SIGSEGV)}"),
        ("os._exit(0)", {}, "grader ended without a word"),
        ("open('file', 'wb', 0).write(b'a')", {}, "grader raised OSError: [Errno 27] File too large"),
    ],
)
def test_ask__says_why_there_is_no_answer(door, tmp_path, code, limits, reason):
    code = code.replace("'file'", repr(str(tmp_path / "file")))

    assert door(code, **limits) == Failure(reason)
    assert door("1 + 1") == 2


def test_ask__keeps_what_others_print_out_of_the_answer(door):
    assert door("[print('{\"said\": 1}'), os.write(1, b'{}\\n'), 3][2]") == 3


def test_ask__gives_away_neither_environment_nor_network(door, monkeypatch):
    monkeypatch.setenv("API_KEY", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        reached = door(f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))")

    assert isinstance(reached, Failure)
    assert "secret" not in str(door("dict(os.environ)"))
    assert bounded._child("test", fetches=False).hello["network"] in ("namespace", "blocked")


def test_cut_off__blocks_sockets_where_the_kernel_gives_no_namespace():
    code = (
        "import ctypes, socket\n"
        "from evalcube.stages.generate.foreign import bounded_child\n"
        "ctypes.CDLL = lambda name: object()\n"
        "print(bounded_child.cut_off())\n"
        "socket.create_connection(('127.0.0.1', 9))\n"
    )

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ended.stdout == "blocked\n"
    assert "PermissionError: " in ended.stderr


def test_ask__leaves_no_process_when_who_asked_is_killed(tmp_path):
    (tmp_path / "door_of_tests.py").write_text(DOOR)
    code = (
        "import os\n"
        "from evalcube.stages.generate.foreign import bounded\n"
        "bounded.DOORS['test'] = ('door_of_tests', '')\n"
        "print(bounded.ask('test', {'code': 'os.getppid()'}), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )

    wait_until(lambda: not _runs(int(ended.stdout)))


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False
