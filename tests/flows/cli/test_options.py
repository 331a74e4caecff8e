"""Options that commands share are defined once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
import typer.main

from evalcube.flows import cli
from evalcube.flows.cli.app import app

FOLDER = Path(cli.__file__).parent


def definitions():
    """(help text, module) of each option and argument in the source."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = (
                node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            )
            if name in ("Option", "Argument"):
                texts = [key.value for key in node.keywords if key.arg == "help"]
                yield ast.literal_eval(texts[0]), path.stem


def test_options__no_help_text_is_written_twice():
    found = Counter(text for text, _ in definitions())

    assert len(found) > 40
    assert [text for text, count in found.items() if count > 1] == []


def test_options__of_several_commands_stand_together():
    """What only one command has is defined there, and what several have in `evalcube.flows.cli.options`."""
    shared = ast.parse((FOLDER / "options.py").read_text())
    names = [node.targets[0].id for node in shared.body if isinstance(node, ast.Assign)]
    texts = [path.read_text() for path in FOLDER.glob("*.py") if path.stem != "options"]

    texts.append((FOLDER / "options.py").read_text())  # `of_part` gives some to many commands
    uses = {name: sum(text.count(f": {name}") + text.count(f": ({name}") for text in texts) for name in names}

    assert names
    assert {name: count for name, count in uses.items() if count < 2} == {}


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
