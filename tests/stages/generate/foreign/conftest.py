"""A door of tests in the bounded process, and a folder with a task of lm-eval."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from evalcube.stages.generate.foreign import bounded
from evalcube.stages.generate.foreign.bounded import ProcessLimits, ask
from evalcube.stages.named_code import allow_code, folder_code
from tests.stages.generate.foreign.lm_eval_tasks import QUESTIONS
from tests.tiers import need

DOOR = """
import os, random, signal, socket, sys, time
state = []

def warm():
    state.append("warm")

def grow():
    state.append("used")
    return state

def loop():
    while True:
        pass

def recurse():
    return [recurse()]

def answer(given):
    return eval(given["code"])
"""


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    """A door of ours, behind which all tests ask the same process."""
    folder = tmp_path_factory.mktemp("doors")
    (folder / "door_of_tests.py").write_text(DOOR)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setitem(bounded.DOORS, "test", ("door_of_tests", "test-extra"))
        yield "test"
        bounded._children.pop(("test", False)).close()


@pytest.fixture
def door(doors, request):
    """Asks what no other test has asked, whose answers are remembered."""
    return lambda code, **limits: ask(
        doors, {"code": f"{code}  # {request.node.name!a}"}, ProcessLimits(**limits)
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a task that a config of the user's names."""
    need("lm-eval", find_spec("lm_eval"), "pip install 'evalcube[lm-eval]'")
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in QUESTIONS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    allow_code([folder_code(".")])
    return tmp_path
