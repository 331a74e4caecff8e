"""Options that commands share are defined once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer.main
from typer.testing import CliRunner

from evalcube.flows import cli
from evalcube.flows.cli import options
from evalcube.flows.cli.app import app, app_with
from evalcube.flows.cli.options import MEANINGS, parse_docstring

FOLDER = Path(cli.__file__).parent


def meanings():
    """What the source says of each option and argument: in a docstring, or beside its type."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield from parse_docstring(ast.get_docstring(node) or "")[1].values()
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("Option", "Argument"):
                yield from (("", ast.literal_eval(key.value)) for key in node.keywords if key.arg == "help")


def test_help__names_no_type_beside_a_flag():
    names = ["", "cube", "analyze", *(name for name, _ in commands(typer.main.get_command(app)))]
    pages = {name: CliRunner().invoke(app, [*name.split(), "--help"]).stdout for name in names}

    assert len(pages) > 40
    assert [path for path, page in pages.items() if "<bool>" in page or "--help" not in page] == []
    assert "<str>" in pages["run"]


def test_options__what_is_typed_daily_has_a_short_form():
    short = {"quiet": "-q", "output": "-o"}

    for name, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name in short:
                assert short[parameter.name] in parameter.opts, name


def test_options__no_help_text_is_written_twice():
    found = Counter(text for _, text in meanings())

    assert len(found) > 40
    assert [text for text, count in found.items() if count > 1] == []


def test_options__of_several_commands_stand_together():
    """What only one command has is defined there, and what several have in `evalcube.flows.cli.options`."""
    found = list(commands(typer.main.get_command(app)))
    uses = Counter(parameter.name for _, command in found for parameter in command.params)

    assert MEANINGS
    assert {name: uses[name] for name in MEANINGS if uses[name] < 2} == {}


def test_described__parts_what_a_command_does_from_what_its_options_mean():
    text = """Do it.

    Or not.

    Parameters
    ----------
    cube
        Where it is, or
        was.
    tag : NAME
        Which one.
    """

    assert parse_docstring(text) == (
        "Do it.\n\nOr not.",
        {"cube": ("", "Where it is, or was."), "tag": ("NAME", "Which one.")},
    )


PASTED = {"leaderboard", "table", "rank", "compare", "trials"}
"""Commands whose tables are put into other documents; programs take `--json`."""


@pytest.mark.parametrize("form", ["--csv", "--markdown"])
def test_tables__that_are_pasted_have_the_form(form):
    found = {
        name
        for name, command in commands(typer.main.get_command(app))
        if any(form in one.opts for one in command.params)
    }

    assert found - {"gate"} == PASTED  # its decision is a comment on a merge request


def commands(group, before=()):
    """Commands with their whole names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


def test_named__is_the_one_command_that_is_asked_for_and_all_where_there_is_no_such():
    everything = typer.main.get_command(app).commands

    assert all(list(typer.main.get_command(app_with(name)).commands) == [name] for name in everything)
    assert app_with("--help") is app_with("leaderbord") is app


@pytest.mark.parametrize(
    ("typed", "named"), [((), "--output"), (("-o",), "-o"), (("-q", "--output"), "--output")]
)
def test_flag__is_the_one_that_was_typed_or_the_longest(typed, named):
    context = SimpleNamespace(meta={options.__name__: typed})

    assert options._flag(SimpleNamespace(opts=["-o", "--output"]), context) == named
