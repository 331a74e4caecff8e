"""The process that runs code of others: its limits, what it can reach, and that it forgets each reply."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign import bounded
from evalcube.stages.generate.foreign.bounded import Failure, ask
from tests.stages.generate.foreign.conftest import DOOR

pytestmark = pytest.mark.cluster


def test_ask__remembers_what_it_said(door):
    assert door("os.getpid()") == door("os.getpid()")
    assert door("os.getpid()") != door("os.getpid() + 0")


@pytest.mark.parametrize("trouble", ["time.sleep(10_000)", "os._exit(1)"])
def test_ask__tries_anew_what_may_have_been_the_machines_doing(door, tmp_path, trouble):
    code = f"os.path.exists({str(tmp_path / 'mended')!r}) or {trouble}"
    before = door(code, wall_seconds=1)
    (tmp_path / "mended").touch()

    assert isinstance(before, Failure)
    assert door(code, wall_seconds=1) is True


def test_ask__makes_no_text_of_an_answer_to_know_its_length(door, monkeypatch):
    monkeypatch.setattr(bounded, "repr", lambda _: pytest.fail("made a text"), raising=False)
    assert door("1") == 1
    known = len(bounded._children["test", False]._known)

    assert len(door("'a' * 100_000")) == 100_000
    assert len(bounded._children["test", False]._known) == known


def test_ask__draws_and_hashes_the_same_in_any_process(door):
    first = door("[hash('a'), random.random()]")
    bounded.end()

    assert first == door("[hash('a'), random.random()] ")


def test_ask__starts_the_process_again_that_was_killed(door):
    killed = door("os.getppid()")
    os.kill(killed, signal.SIGKILL)

    assert door("os.getppid() ") != killed


def test_ask__gives_up_a_process_that_dies_whenever_it_is_asked(door):
    with pytest.raises(TaskError, match=r"3 times: .* signal 9 "):
        door("os.kill(os.getppid(), signal.SIGKILL)")


@pytest.mark.parametrize("kills", [1, 3])
def test_ask__starts_again_what_is_killed_at_its_start(tmp_path, monkeypatch, kills):
    mark = tmp_path / "starts"
    killing = f"""
if os.path.getsize({str(mark)!r}) < {kills}:
    open({str(mark)!r}, "a").write(".")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    mark.touch()
    (tmp_path / "door_that_dies.py").write_text(DOOR + killing)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(bounded.DOORS, "dies", ("door_that_dies", "test-extra"))

    try:
        answer = ask("dies", {"code": "1 + 1"})
    except TaskError as error:
        answer = str(error)
    bounded._children.pop(("dies", False)).close()

    assert answer == 2 if kills == 1 else "signal 9 (Killed)" in answer
    assert "pip install" not in str(answer)


def test_ask__a_machine_without_memory_is_named(monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setitem(bounded.DOORS, "full", ("no_such_module", "none"))
    monkeypatch.setattr(bounded.subprocess, "Popen", refuse)

    with pytest.raises(TaskError, match="Cannot allocate memory"):
        ask("full", {})


def test_ask__names_the_extra_that_is_missing(monkeypatch):
    monkeypatch.setitem(bounded.DOORS, "none", ("no_such_module", "none"))

    with pytest.raises(TaskError, match=r"'no_such_module'.*'evalcube\[none\]'"):
        ask("none", {})
