"""Tasks from entry points: found, refused, named."""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from evalcube.stages.generate import TASKS, Task, TaskError, all_tasks
from evalcube.stages.generate.plugins import GROUP, with_plugins
from evalcube.stages.generate.tasks.arithmetic import Arithmetic


class Echo(Arithmetic):
    name = "echo"


class Clash(Arithmetic):
    pass


class Nameless(Task):
    def generate(self, params, stream):
        raise NotImplementedError(params, stream)

    def parse(self, text):
        return text

    def difficulty(self, params):
        return float(params is not None)


echo = Echo()
number = 7


def point(attribute: str, name: str = "mine") -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{attribute}", GROUP)


@pytest.mark.parametrize("attribute", ["Echo", "echo"])
def test_with_plugins__adds_classes_and_instances(attribute: str) -> None:
    tasks = with_plugins(TASKS, [point(attribute)])

    assert list(tasks) == [*TASKS, "echo"]
    assert isinstance(tasks["echo"], Task)


@pytest.mark.parametrize(
    ("entry_point", "message"),
    [
        (point("absent"), "cannot be loaded .AttributeError.* repair or uninstall"),
        (EntryPoint("mine", "no_such_module_here:Task", GROUP), "cannot be loaded .ModuleNotFoundError"),
        (point("number"), "gives a int, not a Task"),
        (point("Nameless"), "does not declare name, version, summary, guess_rule, Params"),
        (
            point("Clash"),
            "declares the name 'arithmetic', which evalcube.stages.generate.tasks.arithmetic.Arithmetic already has",
        ),
    ],
)
def test_with_plugins__names_a_broken_plugin(entry_point: EntryPoint, message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        with_plugins(TASKS, [entry_point])

    assert f"task plugin 'mine' ({entry_point.value})" in str(caught.value)


def test_with_plugins__two_plugins_of_one_name_are_refused() -> None:
    with pytest.raises(TaskError, match=r"'echo', which .*Echo already has"):
        with_plugins(TASKS, [point("Echo", "one"), point("echo", "two")])


def test_all_tasks__holds_the_bundled_ones() -> None:
    assert all_tasks().items() >= TASKS.items()


def test_all_tasks__sees_what_is_installed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, (1, 1))
    assert all_tasks().items() >= TASKS.items()
    package = tmp_path / "echo-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: echo\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[evalcube.tasks]\necho = no_such_module:Echo\n")

    with pytest.raises(TaskError, match=r"'echo' .*cannot be loaded"):
        all_tasks()
