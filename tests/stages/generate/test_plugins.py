"""Tasks from entry points: found, refused, named."""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from evalcube.stages.generate import TASKS, Task, TaskError, all_tasks
from evalcube.stages.generate.plugins import GROUP, KnownTasks, package_of
from evalcube.stages.generate.tasks.arithmetic import Arithmetic
from tests.cases import with_cases


class Echo(Arithmetic):
    name = "echo"


class Clash(Arithmetic):
    pass


class Foreign:
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
def test_known_tasks__adds_classes_and_instances(attribute: str) -> None:
    tasks = KnownTasks(TASKS, lambda: [point(attribute, "echo")])

    assert list(tasks) == [*TASKS, "echo"]
    assert isinstance(tasks["echo"], Task)


@with_cases(
    ("attribute", "message"),
    [
        ("absent", "cannot be loaded .AttributeError.* repair or uninstall"),
        ("number", "gives a int, which is no Task of evalcube"),
        ("Foreign", "gives the class Foreign, which is no Task of evalcube"),
        ("Nameless", "does not declare name, version, summary, guess_rule, Params"),
        ("Echo", "gives a task that calls itself 'echo'; give both one name"),
    ],
)
def test_known_tasks__names_a_broken_plugin(attribute: str, message: str) -> None:
    tasks = KnownTasks(TASKS, lambda: [point(attribute)])

    with pytest.raises(TaskError, match=message) as caught:
        tasks["mine"]

    assert f"task plugin 'mine' ({__name__}:{attribute} of group evalcube.tasks)" in str(caught.value)


def test_known_tasks__a_broken_plugin_is_in_nobodys_way() -> None:
    broken = EntryPoint("mine", "no_such_module_here:Task", GROUP)
    tasks = KnownTasks(TASKS, lambda: [broken, point("Echo", "echo")])

    assert tasks["arithmetic"] is TASKS["arithmetic"]
    assert tasks["echo"].name == "echo"
    assert "mine" in tasks
    assert tasks.get("nowhere") is None


def test_known_tasks__bundled_tasks_stay_and_lists_say_so() -> None:
    tasks = KnownTasks(
        TASKS, lambda: [point("Clash", "arithmetic"), EntryPoint("mine", "no_such_module:Task", GROUP)]
    )

    sound, problems = tasks.sound()

    assert tasks["arithmetic"] is TASKS["arithmetic"]
    assert [task.name for task in sound] == list(TASKS)
    assert "'mine'" in problems[0]
    assert "a bundled task" in problems[1]


def test_known_tasks__two_plugins_of_one_name_are_refused_where_they_are_named() -> None:
    tasks = KnownTasks(TASKS, lambda: [point("Echo", "echo"), point("echo", "echo")])

    with pytest.raises(TaskError, match="have one name"):
        tasks["echo"]


def test_all_tasks__holds_the_bundled_ones() -> None:
    assert all_tasks().items() >= TASKS.items()


def test_all_tasks__sees_what_is_installed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, (1, 1))
    assert "echo" not in all_tasks()
    package = tmp_path / "echo-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-games\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[evalcube.tasks]\necho = no_such_module:Echo\n")

    with pytest.raises(TaskError, match=r"'echo' .*package echo-games"):
        all_tasks()["echo"]

    assert package_of("echo") == "echo-games 1.0"
    assert package_of("arithmetic") == ""
