"""Errors of a user's own code are told as such: whose it is, and where."""

import errno
import importlib
import sys
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace

import pytest

from evalcube.flows.cli import app, plugins
from evalcube.flows.cli import plugins as config_plugins
from evalcube.flows.cli.output import ExitStatus
from evalcube.flows.run.worker.poison import raise_if_failed

SOURCE = """
import json


def grade(reply, context):
    return 1 / 0


def parse(reply, context):
    return json.loads(reply)


def misuse(function):
    function(None)
"""


@pytest.fixture
def grader(tmp_path):
    file = tmp_path / "my_graders.py"
    file.write_text(SOURCE)
    module = ModuleType("my_graders")
    exec(compile(SOURCE, str(file), "exec"), module.__dict__)  # noqa: S102 - a module that is nowhere installed
    return module


def raised(function, *arguments):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        function(*arguments)
    return caught.value


def test_plugin_fault__names_module_file_line_and_error(grader, tmp_path):
    told = plugins.blame_plugin(raised(grader.grade, "42", None))

    assert told == (
        f"your module 'my_graders' failed in grade ({tmp_path / 'my_graders.py'}, line 6): "
        "ZeroDivisionError: division by zero. Correct it, or leave it out"
    )


def test_plugin_fault__is_that_of_who_called_a_library(grader):
    assert "failed in parse" in plugins.blame_plugin(raised(grader.parse, "{", None))


def test_plugin_fault__names_the_plugin_and_its_package(grader, monkeypatch):
    point = EntryPoint("strict", "my_graders:grade", "evalcube.graders")._for(
        SimpleNamespace(name="acme-evals")
    )
    found = SimpleNamespace(groups={"evalcube.graders", "console_scripts"})
    monkeypatch.setattr(
        config_plugins, "entry_points", lambda **of: [point] if of.get("group") == point.group else found
    )

    told = plugins.blame_plugin(raised(grader.grade, "42", None))

    assert told.startswith("plugin 'strict'")


class Strict:
    def generate(self, params):
        return params


def test_plugin_fault__of_one_that_does_not_take_what_it_is_given_names_it(monkeypatch):
    point = EntryPoint("strict", "mine:Strict", "evalcube.tasks")._for(SimpleNamespace(name="acme-evals"))
    monkeypatch.setattr(plugins, "installed_plugins", lambda: [point])
    error = raised(Strict().generate, 1, 2)
    error.__traceback__ = raised(raise_if_failed, None).__traceback__  # as where evalcube calls

    told = plugins.blame_plugin(error)

    assert told.startswith("plugin 'strict'")


def test_plugin_fault__is_that_of_who_calls_evalcube_wrongly(grader):
    ours = {"__name__": "evalcube.calls"}
    exec("def call(function, argument):\n    function(argument)", ours)  # noqa: S102 - stands for evalcube

    told = plugins.blame_plugin(raised(ours["call"], grader.misuse, raise_if_failed))

    assert told.startswith("your module 'my_graders' failed in misuse (")


def test_plugin_fault__is_none_of_evalcube_itself():
    assert plugins.blame_plugin(raised(raise_if_failed, None)) is None


def test_plugin_fault__is_that_of_who_called_what_a_user_installed(tmp_path, monkeypatch):
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "library_of_a_user.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(folder)
    grade = importlib.import_module("library_of_a_user").grade

    assert "failed in raised" in plugins.blame_plugin(raised(grade, "42", None))


def test_failed__of_a_plugin_is_refused_and_of_evalcube_a_bug(grader, capsys):
    assert app._report_failure(raised(grader.grade, "42", None)) == ExitStatus.REFUSED
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "defect" not in told

    assert app._report_failure(raised(raise_if_failed, None)) == ExitStatus.BUG
    assert "defect of evalcube" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), RuntimeError("can't start new thread")],
)
def test_failed__for_want_of_disk_space_or_threads_is_no_bug(capsys, error):
    assert app._report_failure(error) == ExitStatus.REFUSED

    assert "disk space" in capsys.readouterr().err


def test_raise_if_failed__keeps_the_lines_of_the_worker(grader):
    error = raised(grader.grade, "42", None)
    trace = error.__traceback__
    future = SimpleNamespace(
        status="error", exception=lambda: error.with_traceback(None), traceback=lambda: trace
    )

    assert "my_graders" in plugins.blame_plugin(raised(raise_if_failed, future))
    assert "my_graders" not in sys.modules
