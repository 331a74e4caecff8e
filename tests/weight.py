"""Weight of the product: code lines by room, and commands, options, keys and names, beside their ceilings.

``python -m tests.weight`` prints both tables and fails above a ceiling of ``pyproject.toml``. Lines have one ceiling
for each floor; a commit that raises it says for whom, and what went.
"""

from __future__ import annotations

import ast
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tests.docs.pages import ROOT
from tests.docs.surface import declared

FLOORS = ("flows", "stages", "storage", "deploy")
_SOME_SIZE = 100
"""Code lines from which on a file has tests of its own name: smaller ones are tested beside what uses them."""
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Room(NamedTuple):
    """What the Python files of a folder weigh, those below it included."""

    lines: int
    files: int
    names: int
    """Functions, classes and values that a file has for others: at its top and without a leading underscore."""


def weigh(file: Path) -> Room:
    """A file by itself."""
    tree = ast.parse(file.read_text())
    docstrings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for child in node.body
        if isinstance(child, ast.Expr)
        and isinstance(child.value, ast.Constant)
        and isinstance(child.value.value, str)
        for line in range(child.lineno, (child.end_lineno or child.lineno) + 1)
    }
    with tokenize.open(file) as text:
        code = {
            line
            for token in tokenize.generate_tokens(text.readline)
            if token.type not in _SILENT
            for line in range(token.start[0], token.end[0] + 1)
        }
    return Room(len(code - docstrings), 1, len(set(_public(tree))))


def _public(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def rooms(root: Path = ROOT) -> dict[str, Room]:
    """Each folder that has files of its own or rooms of its own, such as ``flows/run``."""
    found: dict[str, Room] = {}
    for file in sorted(file for top in FLOORS for file in (root / top).rglob("*.py")):
        room = "/".join(file.relative_to(root).parent.parts[:2])
        before = found.get(room, Room(0, 0, 0))
        found[room] = Room(*(sum(pair) for pair in zip(before, weigh(file), strict=True)))
    return found


def floor_lines(measured: dict[str, Room]) -> dict[str, int]:
    """Return the code lines of each floor."""
    lines = dict.fromkeys(FLOORS, 0)
    for name, room in measured.items():
        lines[name.partition("/")[0]] += room.lines
    return lines


def totals(measured: dict[str, Room]) -> dict[str, int]:
    """Return what has one figure for the whole product."""
    surface = declared()
    package = [weigh(file) for file in (ROOT / "evalcube").glob("*.py")]
    return {
        "lines": sum(room.lines for room in (*measured.values(), *package)),
        "files": sum(room.files for room in (*measured.values(), *package)),
        "commands": len(surface["commands"]),
        # A short form is no option of its own.
        "options": sum(name.startswith("--") for options in surface["commands"].values() for name in options),
        "keys": len(surface["config"]),
        "names": len(surface["names"]),
        "unmirrored": len(unmirrored()),
    }


def unmirrored(root: Path = ROOT) -> list[Path]:
    """Return the files of some size whose tests are not under their name in the same folder of ``tests``."""
    return [
        file.relative_to(root)
        for file in (file for top in FLOORS for file in sorted((root / top).rglob("*.py")))
        if file.name != "__init__.py"
        and weigh(file).lines >= _SOME_SIZE
        and not list((root / "tests" / file.relative_to(root).parent).glob(f"test_{file.stem}*.py"))
    ]


def above(ceilings: dict[str, int], measured: dict[str, int]) -> list[str]:
    """What weighs more than it may; what has no ceiling may weigh nothing."""
    return [
        f"{name}: {value} is above its ceiling of {ceilings.get(name, 0)}"
        for name, value in measured.items()
        if value > ceilings.get(name, 0)
    ]


def main() -> int:
    """Print the tables; return 1 above a ceiling."""
    ceilings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["evalcube"]["weight"]
    measured = rooms()
    floors, product = floor_lines(measured), totals(measured)
    by_room = Table("room", "code lines", "files", "public names", box=None)
    for name, room in measured.items():
        by_room.add_row(name, str(room.lines), str(room.files), str(room.names))
    beside = Table("", "", "ceiling", box=None)
    for name, count in floors.items():
        beside.add_row(name, str(count), str(ceilings["floors"].get(name, 0)))
    for name, count in product.items():
        beside.add_row(name, str(count), str(ceilings.get(name, 0)))
    console = Console(width=100)
    console.print(by_room, "", beside)
    excess = above(ceilings["floors"], floors) + above(ceilings, product)
    for line in excess:
        console.print(
            f"{line}: shorten or delete, or raise it in a commit that says who needs it", style="red"
        )
    return bool(excess)


if __name__ == "__main__":
    sys.exit(main())
