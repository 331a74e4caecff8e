"""Options that commands share are defined once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

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

    uses = {name: sum(text.count(f": {name}") for text in texts) for name in names}

    assert names
    assert {name: count for name, count in uses.items() if count < 2} == {}


NO_TABLE = {
    *(
        "bundle",
        "cache export",
        "cache gc",
        "cache import",
        "cache stats",
        "cache verify",
        "checkout",
        "commit",
    ),
    *(
        "ctl",
        "cube verify",
        "export",
        "import",
        "merge",
        "publish",
        "pull",
        "run",
        "sample",
        "show",
        "tag",
        "upsample",
    ),
}
"""Commands with `--json` that say a few things and show no table of results."""


def test_csv__is_offered_wherever_a_table_is():
    found = {
        name
        for name, command in commands(typer.main.get_command(app))
        if "--json" in (options := {text for one in command.params for text in one.opts})
        and "--csv" not in options
    }

    assert found == NO_TABLE


def commands(group, before=()):
    """Commands with their whole names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command
