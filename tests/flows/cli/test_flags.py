"""Library errors name parameters; the command line translates them to its flags."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

import evalcube as ec
from evalcube.flows.cli.app import app
from evalcube.flows.cli.measure import by_model
from evalcube.flows.cli.options import Command, in_flags
from evalcube.flows.config.suites import load_suite
from evalcube.flows.errors import SweepError
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.run.upsample import upsample
from tests.cases import with_cases


def commands(group: typer.core.TyperGroup) -> Iterator[typer.core.TyperCommand]:
    for command in group.commands.values():
        if hasattr(command, "commands"):
            yield from commands(command)
        else:
            yield command


def error_of(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(item) for item in arguments])
    assert isinstance(result.exception, ec.EvalcubeError), result.output
    return str(result.exception)


def test_commands__all_translate():
    found = list(commands(typer.main.get_command(app)))

    assert len(found) > 20
    assert [command.name for command in found if not isinstance(command, Command)] == []


@pytest.mark.parametrize(
    ("call", "arguments", "library", "command_line"),
    [
        (
            lambda cube: leaderboard(cube, mode="C_X"),
            ("leaderboard", "--mode", "C_X"),
            "`mode`: there is no 'C_X'",
            "--mode: there is no 'C_X'",
        ),
        (
            lambda cube: leaderboard(cube, version="v3"),
            ("leaderboard", "--score", "v3"),
            "`version`: there is no 'v3'",
            "--score: there is no 'v3'",
        ),
        (
            lambda cube: upsample(cube, trials=1, budget="2M"),
            ("upsample", "--trials", 1, "--budget", "2M"),
            "`trials`, `budget` exclude each other",
            "--trials, --budget exclude each other",
        ),
        (
            lambda cube: ec.leaderboard(cube, ec.Part(["task"])),
            ("leaderboard", "--where", "task"),
            "`where`: 'task' is no NAME=VALUE",
            "--where: 'task' is no NAME=VALUE",
        ),
    ],
    ids=["same name", "another flag", "two at once", "part"],
)
def test_errors__name_parameters_in_the_library_and_flags_in_the_command(
    small_sweep, call, arguments, library, command_line
):
    cube = small_sweep / "cube.zarr"
    name, *options = arguments

    with pytest.raises(SweepError) as refused:
        call(cube)

    assert str(refused.value).startswith(library)
    assert error_of(name, cube, *options).startswith(command_line)


def test_errors__of_models_beside_a_config_too():
    with pytest.raises(ec.ConfigError, match=r"^`models`: a URL"):
        load_suite("quick", ["https://h/v1"])

    assert error_of("plan", "quick", "--model", "https://h/v1").startswith("--model: a URL")


def test_errors__name_the_flag_that_was_typed_of_several_of_one_parameter():
    limit = error_of("plan", "quick", "--limit=8:2")

    assert limit.startswith("--limit: '8:2' is empty")
    assert error_of("plan", "quick", "--trials", "8:2").startswith("--trials: '8:2' is empty")


def test_in_flags__leaves_words_that_are_no_parameters_of_the_command():
    text = in_flags("`cubes` needs `prices` and `evalcube plan`; see `cubes`", {"cubes": "--keep"})

    assert text == "--keep needs `prices` and `evalcube plan`; see --keep"


def test_parameters__of_the_library_are_those_of_the_commands():
    """A flag is found by its parameter's name, so commands call it as the library does."""
    table = {
        command.name: {p.name for p in command.params} for command in commands(typer.main.get_command(app))
    }

    for name, function in (("upsample", upsample), ("leaderboard", leaderboard)):
        own = set(inspect.signature(function).parameters)
        shared = {"trials", "repeats", "precision", "budget", "purpose", "version", "mode"} & own
        assert shared <= table[name]


@pytest.mark.parametrize(
    "arguments",
    [
        ("metrics", "a.zarr", "--k", "1", "--k", "2"),
        ("trials", "a.zarr", "--status", "invalid", "--status=refused"),
    ],
)
def test_command__refuses_an_option_that_would_hide_its_first_value(arguments):
    result = CliRunner(env={"TERMINAL_WIDTH": "200"}).invoke(app, list(arguments))

    assert result.exit_code == 2
    assert "given 2 times" in _unboxed(result.output)


def _unboxed(text):
    """A message without the box around it, which folds it where the terminal ends."""
    return " ".join(text.replace("│", " ").split())


@with_cases(
    "arguments",
    [
        "plan quick --model sim: --check --only task=sort",
        "plan quick --model sim: --detect 2 --repeats 3",
        "plan quick --model sim: --task sort --check",
        "plan quick --model sim: --scheduler tcp://host:8786",
        "upsample sweep.yaml --trials 4 --goal intervals",
        "compare a.zarr --limit 3",
        "compare a.zarr --cache replies",
        "compare a.zarr --flips --weigh trials",
    ],
)
def test_command__refuses_an_option_that_would_say_nothing(arguments):
    assert re.search("exclude each other|go(es)? with", error_of(*arguments.split()))


@with_cases("command", ["run", "plan", "submit"])
def test_command__refuses_a_condition_before_it_fetches_a_data_set(command, monkeypatch):
    monkeypatch.setattr("evalcube.flows.config.suites.load_sweep", lambda *_: pytest.fail("fetches"))

    assert error_of(command, "gsm8k", "--only", "task").startswith("--only: 'task' is no NAME=VALUE")


def test_by_model__names_may_be_those_of_servers():
    assert by_model("--endpoint", ["org/m:7b=http://h:1/v1"]) == {"org/m:7b": "http://h:1/v1"}
    assert by_model("--endpoint", ["http://h:1/a=b/v1"]) == "http://h:1/a=b/v1"
    with pytest.raises(SweepError, match="--key-env: a name"):
        by_model("--key-env", ["a=ONE", "a=TWO"])


def test_command__takes_flags_and_lists_again(tmp_path):
    result = CliRunner().invoke(
        app, ["metrics", str(tmp_path / "no"), "--json", "--json", "--where", "task=a", "--where", "tier=b"]
    )

    assert "no cube" in str(result.exception)


def test_command__names_a_value_that_is_refused():
    found = CliRunner().invoke(app, ["show", "x.zarr", "--task", "sort", "--trial", "first"])

    assert found.exit_code == 2
    assert "got 'first'" in found.output
