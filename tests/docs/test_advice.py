"""What messages advise can be typed: commands that they name exist, and options that they name are those commands'."""

import ast
import itertools
import re

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_pages import commands

OPTION = re.compile(r"(?<![\w#:/-])--[a-z][a-z-]*[a-z]")
COMMAND = re.compile(r"\bevalcube ((?:[a-z]+ )*[a-z-]+)")
OTHERS = re.compile(r"\b(inspect|lm_eval|pip|dask|squeue|ssh|sbatch) [^`]*")
"""Commands of other programs, up to the end of the text or of its code."""
MODULES = sorted(path for top in ("flows", "stages", "storage") for path in (ROOT / top).rglob("*.py"))
HOLE = "HOLE"


def told(tree):
    """The texts of a module that are more than a word, without docstrings; what is filled in reads `HOLE`."""
    nodes = list(ast.walk(tree))
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if id(node) in inside or id(node) in alone:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
        else:
            continue
        if " " in text.strip() and "\n" not in text.strip() and not text.startswith((" --", "exec ")):
            yield node.lineno, text


def command(words):
    """The command that words begin with, with its name; None if there is none."""
    found, path = commands(), ""
    for word in words:
        if word not in getattr(found, "commands", {}):
            break
        found, path = found.commands[word], f"{path} {word}".strip()
    return (found, path) if path else None


def options(found):
    """All options of a command, or of those below it."""
    below = getattr(found, "commands", {}).values()
    own = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*map(options, below))


def at_hand(module):
    """The options that a text may name without its command: those of commands that this module defines or helps."""
    name = f"evalcube.{'.'.join(module.relative_to(ROOT).with_suffix('').parts)}"

    def callbacks(found):
        yield from [found] if found.callback else []
        for below in getattr(found, "commands", {}).values():
            yield from callbacks(below)

    sources = {each: (ROOT / "flows" / "cli" / f"{each}.py").read_text() for each in names()}
    near = {name, *(f"evalcube.flows.cli.{each}" for each, text in sources.items() if name in text)}
    found = set()
    for each in callbacks(commands()):
        if getattr(each.callback, "__wrapped__", each.callback).__module__ in near:
            found |= options(each)
    return found


def names():
    """The modules of the command line."""
    return [path.stem for path in (ROOT / "flows" / "cli").glob("*.py")]


def untrue(text, near):
    """What a text advises and nobody can type; `near` has the options that need no command beside them."""
    text = OTHERS.sub("", text)
    found, start = [], 0
    marks = list(COMMAND.finditer(text))
    for mark, following in itertools.zip_longest(marks, marks[1:]):
        words = mark[1].split()
        meant = command(words)
        if meant is None:
            continue
        part = text[mark.start() : following.start() if following else len(text)]
        known = options(meant[0])
        found += [f"{meant[1]} has no {name}" for name in OPTION.findall(part) if name not in known | near]
        start = start or mark.start() + 1
    before = text[: start - 1] if start else text
    found += [f"{name} of which command?" for name in OPTION.findall(before) if name not in near]
    return found


def test_untrue__finds_options_of_other_commands_and_of_none():
    assert untrue("Run `evalcube merge A B --prefer first`, or `evalcube cube verify --heal X`", set()) == []
    assert untrue("Give --cache", {"--cache"}) == []
    assert untrue("Convert it: inspect log convert --to eval", set()) == []

    assert untrue("Run `evalcube leaderboard --prefer first`", set()) == ["leaderboard has no --prefer"]
    assert untrue("Give --prefer first", {"--cache"}) == ["--prefer of which command?"]


@pytest.mark.parametrize("top", ["flows/cli", "flows", "stages", "storage"])
def test_messages__advise_options_that_the_command_has(top):
    """A library does not know which command called it: it names the command with the option."""
    wrong = []
    for module in MODULES:
        inside = module.is_relative_to(ROOT / "flows" / "cli")
        if not module.is_relative_to(ROOT / top) or (top == "flows" and inside):
            continue
        source = module.read_text("utf-8")
        if "--" not in source:  # it names no option
            continue
        found = list(told(ast.parse(source)))
        near = at_hand(module) if inside and any(OPTION.search(text) for _, text in found) else set()
        wrong += [
            f"{module.relative_to(ROOT)}:{line}: {what}"
            for line, text in found
            for what in untrue(text, near)
        ]

    assert wrong == []
