"""Options that commands share are defined once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import flows.cli

FOLDER = Path(flows.cli.__file__).parent


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
    """What only one command has is defined there, and what several have in `flows.cli.options`."""
    shared = ast.parse((FOLDER / "options.py").read_text())
    names = [node.targets[0].id for node in shared.body if isinstance(node, ast.Assign)]
    texts = [path.read_text() for path in FOLDER.glob("*.py") if path.stem != "options"]

    uses = {name: sum(text.count(f": {name}") for text in texts) for name in names}

    assert names
    assert {name: count for name, count in uses.items() if count < 2} == {}
