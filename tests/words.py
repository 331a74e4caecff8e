"""Vague words of the code: locals, functions named by participles, docstring sections of internals.

``python -m tests.words`` prints the counts by room and fails where one is above its ceiling in ``pyproject.toml``:
none may grow. A change that lowers a count lowers its ceiling, too.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.docs.pages import ROOT
from tests.weight import FLOORS, above

VAGUE = set("found one place given other others what said told made kept known rest things".split())
"""Names of locals that say nothing of what they hold."""
_IRREGULAR = set(
    "told kept made meant said found given known taken shown begun sent "
    "left held built gone drawn read written worn lost".split()
)
_NO_PARTICIPLES = set("need seed feed speed embed exceed proceed red id shared cached limited based".split())
_SECTION = re.compile(r"^\s*(Parameters|Returns|Raises|Yields|Attributes)\s*\n\s*-{3,}", re.MULTILINE)
COUNTS = ("vague_locals", "participle_functions", "internal_sections")


def is_participle(name: str) -> bool:
    """Return whether a function is named by a single participle, such as ``_kept``."""
    word = name.strip("_")
    if "_" in word or word in _NO_PARTICIPLES:
        return False
    return word.endswith("ed") or word in _IRREGULAR


def count_words(tree: ast.Module, *, formulas: bool = False) -> Counter[str]:
    """Count a module's vague words; ``formulas`` are documented as public functions are."""
    counts = Counter(dict.fromkeys(COUNTS, 0))
    for function in _functions(tree):
        stored = {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        counts["vague_locals"] += len(stored & VAGUE)
        counts["participle_functions"] += is_participle(function.name)
        section = _SECTION.search(ast.get_docstring(function) or "")
        counts["internal_sections"] += section is not None and not formulas
    return counts


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def rooms(root: Path = ROOT) -> dict[str, Counter[str]]:
    """Return the counts of each room, such as ``flows/run``."""
    counts: dict[str, Counter[str]] = {}
    for file in sorted(file for floor in FLOORS for file in (root / floor).rglob("*.py")):
        room = "/".join(file.relative_to(root).parent.parts[:2])
        words = count_words(ast.parse(file.read_text()), formulas="formulas" in file.parts)
        counts.setdefault(room, Counter()).update(words)
    return counts


def main() -> int:
    """Print the table; return 1 above a ceiling."""
    ceilings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["evalcube"]["words"]
    counts = rooms()
    product = {name: sum(room[name] for room in counts.values()) for name in COUNTS}
    table = Table("room", *(name.replace("_", " ") for name in COUNTS), box=None)
    for room, words in counts.items():
        table.add_row(room, *(str(words[name]) for name in COUNTS))
    table.add_row("the product", *(str(count) for count in product.values()))
    table.add_row("ceiling", *(str(ceilings.get(name, 0)) for name in COUNTS))
    console = Console(width=100)
    console.print(table)
    excess = above(ceilings, product)
    for line in excess:
        console.print(
            f"{line}: words counted: tests/words.py. Name it by a verb or a noun of the domain",
            style="red",
        )
    return bool(excess)


if __name__ == "__main__":
    sys.exit(main())
